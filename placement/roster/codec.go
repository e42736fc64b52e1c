// SPDX-License-Identifier: Apache-2.0

package roster

import (
	"encoding/binary"
	"fmt"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// A message is a version, a kind and its fields in order: numbers as uvarints,
// texts as a length and bytes, digests as eight bytes, little endian, lists as
// a length and elements. Later versions of a kind append fields, which earlier
// ones do not read; what they could not do without gets a new kind.
const codecVersion = 1

const (
	kindHeartbeat byte = 1 + iota
	kindDelta
	kindSnapshot
	kindRequest
)

const flagHeld = 1

// minElement is the size of the smallest element of a list: an empty text, a
// number and a byte.
const minElement = 3

// Append appends the encoded message to dst and returns it. A nil message
// appends nothing.
func Append(dst []byte, m Message) []byte {
	switch m := m.(type) {
	case Heartbeat:
		dst = append(dst, codecVersion, kindHeartbeat)
		dst = appendOrigin(dst, m.Origin)
		dst = binary.LittleEndian.AppendUint64(dst, m.Digest)
		if m.Layout != 0 { // nothing follows it yet
			dst = binary.LittleEndian.AppendUint64(dst, m.Layout)
		}
	case Delta:
		dst = append(dst, codecVersion, kindDelta)
		dst = appendOrigin(dst, m.Origin)
		dst = binary.AppendUvarint(dst, m.From)
		dst = binary.AppendUvarint(dst, uint64(len(m.Changes)))
		for _, c := range m.Changes {
			dst = appendText(dst, c.Member)
			dst = binary.AppendUvarint(dst, uint64(c.Generation))
			dst = append(dst, byte(c.Op))
		}
	case Snapshot:
		dst = append(dst, codecVersion, kindSnapshot)
		dst = appendOrigin(dst, m.Origin)
		dst = binary.LittleEndian.AppendUint64(dst, m.Digest)
		dst = binary.AppendUvarint(dst, uint64(m.Page))
		dst = binary.AppendUvarint(dst, uint64(m.Pages))
		dst = binary.AppendUvarint(dst, uint64(len(m.Entries)))
		for _, e := range m.Entries {
			dst = appendText(dst, e.Member)
			dst = binary.AppendUvarint(dst, uint64(e.Generation))
			var flags byte
			if e.Held {
				flags |= flagHeld
			}
			dst = append(dst, flags)
		}
	case SnapshotRequest:
		dst = append(dst, codecVersion, kindRequest)
		dst = appendText(dst, m.From)
		dst = appendText(dst, m.Gateway)
		dst = binary.AppendUvarint(dst, uint64(m.Incarnation))
		dst = binary.AppendUvarint(dst, m.Have)
	}
	return dst
}

func appendText[T ~string](dst []byte, text T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

func appendOrigin(dst []byte, o Origin) []byte {
	dst = appendText(dst, o.Gateway)
	dst = appendText(dst, o.Endpoint)
	dst = binary.AppendUvarint(dst, uint64(o.State))
	dst = binary.AppendUvarint(dst, uint64(o.Incarnation))
	dst = binary.AppendUvarint(dst, o.Sequence)
	dst = binary.AppendUvarint(dst, uint64(o.Attached))
	dst = binary.AppendUvarint(dst, uint64(o.Held))
	return binary.AppendUvarint(dst, uint64(o.Reserved))
}

// Decode is the inverse of [Append]. Bytes beyond the fields that it knows are
// ignored. Any input gives a message that [Roster.Step] understands, or an
// error: [ErrUnknownMessage] for what a newer gateway may say, and
// [ErrInvalidMessage] for the rest. It takes memory in proportion to the
// input, which it does not keep; the message's texts share one copy of it.
func Decode(b []byte) (Message, error) {
	if len(b) < 2 {
		return nil, fmt.Errorf("%w: %d bytes", ErrInvalidMessage, len(b))
	}
	if b[0] != codecVersion || b[1] < kindHeartbeat || b[1] > kindRequest {
		return nil, fmt.Errorf("%w: version %d, kind %d", ErrUnknownMessage, b[0], b[1])
	}
	d := decoder{rest: b[2:], text: string(b[2:])}
	var m Message
	switch b[1] {
	case kindHeartbeat:
		m = Heartbeat{Origin: d.origin(), Digest: d.digest(), Layout: d.appended()}
	case kindDelta:
		m = Delta{Origin: d.origin(), From: d.number(), Changes: d.changes()}
	case kindSnapshot:
		m = Snapshot{
			Origin:  d.origin(),
			Digest:  d.digest(),
			Page:    d.count(),
			Pages:   d.count(),
			Entries: d.entries(),
		}
	case kindRequest:
		m = SnapshotRequest{
			From:        ring.GatewayID(d.string()),
			Gateway:     ring.GatewayID(d.string()),
			Incarnation: placement.Incarnation(d.number()),
			Have:        d.number(),
		}
	}
	if d.failed {
		return nil, fmt.Errorf("%w: kind %d, %d bytes, broken off or out of range", ErrInvalidMessage, b[1], len(b))
	}
	if err := m.validate(); err != nil {
		return nil, err
	}
	return m, nil
}

// decoder reads fields. After the first failure it reads zeroes.
type decoder struct {
	rest   []byte
	text   string // ends where rest ends
	failed bool
}

func (d *decoder) fail() {
	d.failed = true
	d.rest = nil
}

func (d *decoder) number() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) count() int {
	v := d.number()
	if v > maxCount {
		d.fail()
		return 0
	}
	return int(v)
}

func (d *decoder) byte() byte {
	if len(d.rest) == 0 {
		d.fail()
		return 0
	}
	v := d.rest[0]
	d.rest = d.rest[1:]
	return v
}

func (d *decoder) digest() uint64 {
	if len(d.rest) < 8 {
		d.fail()
		return 0
	}
	v := binary.LittleEndian.Uint64(d.rest)
	d.rest = d.rest[8:]
	return v
}

// appended reads a digest that earlier versions do not write.
func (d *decoder) appended() uint64 {
	if len(d.rest) == 0 {
		return 0
	}
	return d.digest()
}

func (d *decoder) string() string {
	n := d.number()
	if n > uint64(len(d.rest)) {
		d.fail()
		return ""
	}
	at := len(d.text) - len(d.rest)
	d.rest = d.rest[n:]
	return d.text[at : at+int(n)]
}

// length reads the length of a list, which cannot be more than fits in what is left.
func (d *decoder) length() int {
	n := d.number()
	if n > uint64(len(d.rest)/minElement) {
		d.fail()
		return 0
	}
	return int(n)
}

func (d *decoder) origin() Origin {
	o := Origin{
		Gateway:  ring.GatewayID(d.string()),
		Endpoint: d.string(),
	}
	state := d.number()
	if state > 0xff {
		d.fail()
	}
	o.State = placement.State(state)
	o.Counts = placement.Counts{
		Incarnation: placement.Incarnation(d.number()),
		Sequence:    d.number(),
		Attached:    d.count(),
		Held:        d.count(),
		Reserved:    d.count(),
	}
	return o
}

func (d *decoder) changes() []Change {
	n := d.length()
	if n == 0 {
		return nil
	}
	changes := make([]Change, n)
	for i := range changes {
		changes[i] = Change{
			Member:     ring.MemberID(d.string()),
			Generation: placement.Generation(d.number()),
			Op:         Op(d.byte()),
		}
	}
	return changes
}

func (d *decoder) entries() []Entry {
	n := d.length()
	if n == 0 {
		return nil
	}
	entries := make([]Entry, n)
	for i := range entries {
		entries[i] = Entry{
			Member:     ring.MemberID(d.string()),
			Generation: placement.Generation(d.number()),
			Held:       d.byte()&flagHeld != 0,
		}
	}
	return entries
}
