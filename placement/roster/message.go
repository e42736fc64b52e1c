// SPDX-License-Identifier: Apache-2.0

package roster

import (
	"fmt"
	"math"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// Message is what gateways say to each other: [Heartbeat], [Delta],
// [Snapshot] or [SnapshotRequest]. A message is immutable once it has been
// given away: whoever receives it may keep it, nobody may write to its slices.
type Message interface {
	// speaker is the gateway that made the message.
	speaker() ring.GatewayID
	validate() error
}

// Origin opens every message in which a gateway speaks of itself.
type Origin struct {
	Gateway  ring.GatewayID
	Endpoint string // the peer endpoint; empty: cannot be dialled
	State    placement.State

	// The gateway's own figures. Sequence is the number of the last change
	// that the message takes into account.
	placement.Counts
}

// Heartbeat says that a gateway is alive and how far its record has got. It
// reveals a copy that is behind or wrong, and a gateway whose ring is another.
type Heartbeat struct {
	Origin
	Digest uint64 // of the members at Sequence
	Layout uint64 // how the gateway computes rings: equal if alike; 0: it does not say
}

// Delta carries the changes after From, up to and including Sequence. A member
// that changed more than once appears once, as it ended.
type Delta struct {
	Origin
	From    uint64
	Changes []Change
}

// Snapshot is one page of a whole record at Sequence. All pages of one
// snapshot carry the same Sequence; they may arrive in any order.
type Snapshot struct {
	Origin
	Digest  uint64 // of the members on all pages
	Page    int    // from 0
	Pages   int    // at least 1
	Entries []Entry
}

// SnapshotRequest asks a gateway for its whole record.
type SnapshotRequest struct {
	From        ring.GatewayID        // who asks
	Gateway     ring.GatewayID        // who is asked
	Incarnation placement.Incarnation // the one asked for
	Have        uint64                // the number that the asker's copy has got to
}

// Entry is one member in a gateway's record.
type Entry struct {
	Member     ring.MemberID
	Generation placement.Generation
	Held       bool // its stream broke uncleanly; it is still expected back
}

// Change is one member's new state in a gateway's record.
type Change struct {
	Member     ring.MemberID
	Generation placement.Generation
	Op         Op
}

// Op is what became of a member at a gateway.
type Op uint8

// The ops. The zero value is none of them and changes nothing.
const (
	OpNone     Op = iota
	OpAttached    // has a stream
	OpHeld        // has none any more, but is still expected back
	OpLeft        // is gone
)

var opText = [...]string{"none", "attached", "held", "left"}

// String returns the op's stable text.
func (o Op) String() string {
	if int(o) < len(opText) {
		return opText[o]
	}
	return fmt.Sprintf("op(%d)", uint8(o))
}

// OriginOf returns what the speaker of m says of itself. A [SnapshotRequest] says nothing of that: false.
func OriginOf(m Message) (Origin, bool) {
	if o, ok := m.(interface{ origin() Origin }); ok {
		return o.origin(), true
	}
	return Origin{}, false
}

func (o Origin) origin() Origin                   { return o }
func (o Origin) speaker() ring.GatewayID          { return o.Gateway }
func (m SnapshotRequest) speaker() ring.GatewayID { return m.From }

// maxCount bounds each figure, so that sums over all gateways cannot overflow.
const maxCount = math.MaxInt32

func (o Origin) validate() error {
	if o.Gateway == "" {
		return fmt.Errorf("%w: no gateway", ErrInvalidMessage)
	}
	if o.Incarnation == 0 {
		return fmt.Errorf("%w: gateway %q has no incarnation", ErrInvalidMessage, o.Gateway)
	}
	if !plausible(o.Counts) {
		return fmt.Errorf("%w: gateway %q counts %d, %d, %d", ErrInvalidMessage, o.Gateway, o.Attached, o.Held, o.Reserved)
	}
	return nil
}

func plausible(c placement.Counts) bool {
	for _, n := range [...]int{c.Attached, c.Held, c.Reserved} {
		if n < 0 || n > maxCount {
			return false
		}
	}
	return true
}

func (m Heartbeat) validate() error { return m.Origin.validate() }

func (m Delta) validate() error {
	if m.From >= m.Sequence {
		return fmt.Errorf("%w: delta from %d to %d", ErrInvalidMessage, m.From, m.Sequence)
	}
	return m.Origin.validate()
}

func (m Snapshot) validate() error {
	if m.Page < 0 || m.Page >= m.Pages {
		return fmt.Errorf("%w: page %d of %d", ErrInvalidMessage, m.Page, m.Pages)
	}
	return m.Origin.validate()
}

func (m SnapshotRequest) validate() error {
	if m.From == "" || m.Gateway == "" || m.Incarnation == 0 {
		return fmt.Errorf("%w: snapshot request without asker, gateway or incarnation", ErrInvalidMessage)
	}
	return nil
}
