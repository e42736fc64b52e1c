// SPDX-License-Identifier: Apache-2.0

package roster

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
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
	b := Append(nil, Delta{Origin: Origin{Gateway: "a", Counts: placement.Counts{Incarnation: 1, Sequence: 1}}})
	b = binary.AppendUvarint(b[:len(b)-1], 1<<40)
	_, err := Decode(b)
	require.ErrorIs(t, err, ErrInvalidMessage)
	require.Less(t, testing.AllocsPerRun(10, func() { _, _ = Decode(b) }), 12.0)
}

func FuzzDecode(f *testing.F) {
	for _, m := range samples() {
		f.Add(Append(nil, m))
	}
	earlier, err := hex.DecodeString(earlierHeartbeat)
	require.NoError(f, err)
	f.Add(earlier)
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Decode(b)
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
