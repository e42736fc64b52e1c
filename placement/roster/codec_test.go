// SPDX-License-Identifier: Apache-2.0

package roster

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

func samples() map[string]Message {
	origin := Origin{
		Gateway:  "gw-1",
		Endpoint: "10.0.0.1:443",
		State:    placement.Draining,
		Counts:   placement.Counts{Incarnation: 1 << 63, Sequence: 300, Attached: 2, Held: 1, Reserved: maxCount},
	}
	return map[string]Message{
		"heartbeat": Heartbeat{Origin: origin, Digest: 0x0102030405060708, Layout: 0x1112131415161718},
		"delta": Delta{Origin: origin, From: 299, Changes: []Change{
			{"m-1", 1 << 40, OpAttached}, {"ü", 0, OpHeld}, {"", 3, OpLeft}, {"later", 4, Op(77)},
		}},
		"empty delta": Delta{Origin: origin},
		"snapshot": Snapshot{Origin: origin, Digest: 9, Page: 1, Pages: 2, Entries: []Entry{
			{"m-1", 5, true}, {"m-2", 6, false},
		}},
		"request": SnapshotRequest{From: "gw-2", Gateway: "gw-1", Incarnation: 7, Have: 8},
	}
}

func TestCodecRoundTrip(t *testing.T) {
	for name, m := range samples() {
		t.Run(name, func(t *testing.T) {
			b := Append([]byte("before"), m)
			got, err := Decode(b[len("before"):])
			require.NoError(t, err)
			require.Equal(t, m, got)

			// A newer peer may say more.
			got, err = Decode(append(b[len("before"):], "and more"...))
			require.NoError(t, err)
			require.Equal(t, m, got)

			// A message broken off is an error wherever it ends, unless it
			// ends where an earlier version ended it.
			for n := range len(b) - len("before") {
				if _, ok := m.(Heartbeat); ok && n == len(b)-len("before")-8 {
					continue
				}
				_, err = Decode(b[len("before") : len("before")+n])
				require.ErrorIs(t, err, ErrInvalidMessage, "%d bytes", n)
			}
		})
	}
	require.Equal(t, []byte{1}, Append([]byte{1}, nil))
}

// earlierHeartbeat is the sample as a version without Layout writes it.
const earlierHeartbeat = "0101" + "0467772d31" + "0c31302e302e302e313a343433" + "02" + "80808080808080808001" + "ac02" + "02" + "01" + "ffffffff07" + "0807060504030201"

func TestCodecEarlierHeartbeat(t *testing.T) {
	b, err := hex.DecodeString(earlierHeartbeat)
	require.NoError(t, err)
	want := samples()["heartbeat"].(Heartbeat)
	want.Layout = 0
	got, err := Decode(b)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, b, Append(nil, got))
}

// The layout is a promise to other versions.
func TestCodecLayout(t *testing.T) {
	for name, want := range map[string]string{
		"heartbeat": earlierHeartbeat + "1817161514131211",
		"request":   "0104" + "0467772d32" + "0467772d31" + "07" + "08",
	} {
		require.Equal(t, want, hex.EncodeToString(Append(nil, samples()[name])))
	}
}

func TestDecodeUnknown(t *testing.T) {
	for _, b := range [][]byte{{2, 1}, {1, 0}, {1, 5, 1, 2, 3}, {0, 0}} {
		_, err := Decode(b)
		require.ErrorIs(t, err, ErrUnknownMessage)
	}
}

// A length may promise what the input cannot hold; nothing is set aside for it.
func TestDecodeBounded(t *testing.T) {
	origin := Origin{Gateway: "a", Counts: placement.Counts{Incarnation: 1, Sequence: 1}}
	for name, m := range map[string]Message{
		"delta":    Delta{Origin: origin},
		"snapshot": Snapshot{Origin: origin, Pages: 1},
	} {
		t.Run(name, func(t *testing.T) {
			head := Append(nil, m)
			head = head[:len(head)-1]
			for _, b := range [][]byte{
				binary.AppendUvarint(slices.Clone(head), 1<<40),
				binary.AppendUvarint(slices.Clone(head), math.MaxUint64),
				append(binary.AppendUvarint(slices.Clone(head), 1000), make([]byte, 2999)...),
				append(binary.AppendUvarint(slices.Clone(head), 1000), bytes.Repeat([]byte{0xff}, 3000)...), // broken off in the first
			} {
				require.LessOrEqual(t, taken(func() {
					_, err := Decode(b)
					require.ErrorIs(t, err, ErrInvalidMessage)
				}), allowed(b))
			}
			b := append(binary.AppendUvarint(head, 1000), make([]byte, 3000)...)
			require.LessOrEqual(t, taken(func() {
				_, err := Decode(b)
				require.NoError(t, err)
			}), allowed(b), "the smallest elements take the most")
		})
	}
}

// allowed is what Decode may take for an input: one copy of it, an element for
// every three bytes, and something for the message itself and for an error.
func allowed(b []byte) uint64 {
	const element, rounding, rest = 32, 2, 8 << 10
	return uint64(rounding*(len(b)+element*(len(b)/minElement)) + rest)
}

// taken returns the bytes that f allocates, and at times those that somebody else does meanwhile.
func taken(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func FuzzDecode(f *testing.F) {
	for _, m := range samples() {
		f.Add(Append(nil, m))
	}
	earlier, err := hex.DecodeString(earlierHeartbeat)
	require.NoError(f, err)
	f.Add(earlier)
	for name, m := range map[string]Message{
		"delta":    Delta{Origin: Origin{Gateway: "a", Counts: placement.Counts{Incarnation: 1, Sequence: 1}}},
		"snapshot": Snapshot{Origin: Origin{Gateway: "a", Counts: placement.Counts{Incarnation: 1}}, Pages: 1},
	} {
		head := Append(nil, m)
		require.Zero(f, head[len(head)-1], name)
		f.Add(binary.AppendUvarint(head[:len(head)-1], 1<<40))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m Message
		var err error
		input := bytes.Clone(b)
		require.LessOrEqual(t, taken(func() { m, err = Decode(input) }), allowed(b))
		require.Equal(t, b, input, "the input is not written to")
		if err != nil {
			require.Nil(t, m)
			return
		}
		canonical := Append(nil, m)
		require.LessOrEqual(t, len(canonical), len(b))
		again, err := Decode(canonical)
		require.NoError(t, err)
		require.Equal(t, m, again)
		require.True(t, bytes.Equal(canonical, Append(nil, again)))

		r, err := New(epoch, Config{Gateway: "gw-2", Incarnation: 1, Ring: smallRing})
		require.NoError(t, err)
		r.Step(epoch, Received{Message: m})
		r.Step(at(defaultBatch), Tick{})
		audit(t, r)

		// What has been decoded does not change with the input.
		clear(input)
		require.Equal(t, canonical, Append(nil, m))
	})
}

// FuzzReceive is a peer that says anything: messages, each with its length
// before it, and in between the time that a length of 0 lets pass.
func FuzzReceive(f *testing.F) {
	join := func(messages ...Message) (b []byte) {
		for _, m := range messages {
			encoded := Append(nil, m)
			b = append(binary.AppendUvarint(b, uint64(len(encoded))), encoded...)
		}
		return b
	}
	for _, m := range samples() {
		f.Add(join(m, m))
	}
	o := func(sequence uint64) Origin {
		return Origin{Gateway: "gw-1", Counts: placement.Counts{Incarnation: 1, Sequence: sequence}}
	}
	page := func(sequence uint64, page int, m ring.MemberID) Snapshot {
		return Snapshot{Origin: o(sequence), Page: page, Pages: 2, Entries: []Entry{{m, 1, false}}}
	}
	change := func(from, to uint64, op Op) Delta {
		return Delta{Origin: o(to), From: from, Changes: []Change{{"m", placement.Generation(to), op}}}
	}
	f.Add(join(change(0, 1, OpAttached), change(3, 4, OpHeld), change(2, 3, OpLeft), change(1, 2, OpAttached)))
	f.Add(join(page(5, 0, "a"), page(6, 1, "b"), page(5, 1, "c"), page(6, 0, "d"), Heartbeat{Origin: o(6)}))
	f.Add(append(join(change(4, 5, OpAttached)), 0, 0, 0))
	f.Fuzz(func(t *testing.T, script []byte) {
		script = script[:min(len(script), 4096)]
		r, err := New(epoch, Config{Gateway: "gw-2", Incarnation: 1, Ring: smallRing, Outbox: 8})
		require.NoError(t, err)
		now, asks := epoch, 0
		for rest := script; len(rest) > 0; {
			n, head := binary.Uvarint(rest)
			if head <= 0 || n > uint64(len(rest)-head) {
				break
			}
			rest = rest[head:]
			var ev Event = Tick{}
			if n == 0 {
				now = now.Add(time.Second)
			} else if m, err := Decode(rest[:n]); err == nil {
				ev = Received{Message: m}
			}
			rest = rest[n:]
			for _, act := range r.Step(now, ev) {
				if send, ok := act.(Send); ok {
					if _, ok := send.Message.(SnapshotRequest); ok {
						asks++
					}
				}
			}
		}
		audit(t, r)
		// What it keeps, others have said. An element takes three bytes at least.
		kept := int(r.claims.used)
		for _, rec := range r.sorted {
			waiting := 0
			for _, d := range rec.waiting {
				waiting += max(1, len(d.Changes))
			}
			require.LessOrEqual(t, waiting, r.cfg.Outbox)
			for _, entries := range rec.pages.got {
				kept += 1 + len(entries)
			}
		}
		require.LessOrEqual(t, kept, 2*len(script)+2)
		require.LessOrEqual(t, asks, len(r.sorted)*(2+int(now.Sub(epoch)/r.patience()))+len(script)/8, "two for each start of a gateway, and then in turns")
	})
}

// FuzzStep turns bytes into events and deliveries among three rosters.
func FuzzStep(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
	f.Add([]byte{0x20, 0x9c, 0x41, 0x9c, 0x05, 0x9c, 0x9c, 0x22, 0xfe, 0x9c, 0x9c})
	f.Fuzz(func(t *testing.T, script []byte) {
		script = script[:min(len(script), 100)]
		run := func() *fleet {
			c := newFleet(t, "gw-0", "gw-1", "gw-2")
			for i, b := range script {
				fuzzed(c, b, placement.Generation(i))
				for _, id := range c.ids() {
					due, ok := c.nodes[id].Deadline()
					require.True(t, ok)
					require.False(t, due.Before(epoch))
				}
			}
			return c
		}
		a, b := run(), run()
		require.Equal(t, a.sent, b.sent, "the same input gave another output")
		for _, id := range a.ids() {
			audit(t, a.nodes[id])
			a.step(id, Tick{})
			due, _ := a.nodes[id].Deadline()
			require.True(t, due.After(a.now), "a tick when it was due left it due")
		}
	})
}

func TestOriginOf(t *testing.T) {
	want := Origin{Gateway: "a", Endpoint: "a:1", Counts: placement.Counts{Incarnation: 3}}
	for _, m := range []Message{Heartbeat{Origin: want}, Delta{Origin: want}, Snapshot{Origin: want}} {
		o, ok := OriginOf(m)
		require.True(t, ok)
		require.Equal(t, want, o)
	}
	o, ok := OriginOf(SnapshotRequest{From: "a", Gateway: "b"})
	require.False(t, ok)
	require.Zero(t, o)
}
