// SPDX-License-Identifier: Apache-2.0

package roster

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

func memberIDs(n int) []ring.MemberID {
	ids := make([]ring.MemberID, n)
	for i := range ids {
		ids[i] = ring.MemberID(fmt.Sprintf("supervisor-%010d", i))
	}
	return ids
}

func benchRoster(b *testing.B) *Roster {
	r, err := New(epoch, Config{Gateway: "gw-0", Incarnation: 1, Endpoint: "10.0.0.1:443"})
	require.NoError(b, err)
	r.Step(epoch, Tick{})
	return r
}

// A new generation of a member that is here, deltas included.
func BenchmarkAttach(b *testing.B) {
	const members = 100_000
	r, ids := benchRoster(b), memberIDs(members)
	now, i := epoch, 0
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(10 * time.Microsecond)
		r.Step(now, Attached{Member: ids[i%members], Generation: placement.Generation(i + 1)})
		r.Deadline()
		i++
	}
}

// A member comes and goes.
func BenchmarkAttachLeave(b *testing.B) {
	const members = 100_000
	r, ids := benchRoster(b), memberIDs(members)
	now, i := epoch, 0
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(10 * time.Microsecond)
		m := ids[i%members]
		r.Step(now, Attached{Member: m, Generation: 1})
		r.Step(now, Left{Member: m, Generation: 1})
		i++
	}
}

func snapshotOf(b *testing.B, members int) []Snapshot {
	r := benchRoster(b)
	for _, m := range memberIDs(members) {
		r.Step(epoch, Attached{Member: m, Generation: 1_700_000_000_000_000_000})
	}
	var all []Snapshot
	for _, a := range r.Step(epoch, Received{Message: SnapshotRequest{From: "gw-1", Gateway: "gw-0", Incarnation: 1}}) {
		if s, ok := a.(Send).Message.(Snapshot); ok {
			all = append(all, s)
		}
	}
	return all
}

// One whole record: encoded, decoded and taken by a roster that has none.
func BenchmarkSnapshot(b *testing.B) {
	for _, members := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("members=%d", members), func(b *testing.B) {
			all := snapshotOf(b, members)
			b.ReportAllocs()
			for b.Loop() {
				r, err := New(epoch, Config{Gateway: "gw-1", Incarnation: 1, Ring: smallRing})
				require.NoError(b, err)
				var buf []byte
				for _, s := range all {
					buf = Append(buf[:0], s)
					m, err := Decode(buf)
					require.NoError(b, err)
					r.Step(epoch, Received{Message: m})
				}
				require.Equal(b, members, r.Live())
			}
		})
	}
}

func BenchmarkLive(b *testing.B) {
	for _, gateways := range []int{3, 16, 128} {
		b.Run(fmt.Sprintf("gateways=%d", gateways), func(b *testing.B) {
			r := benchRoster(b)
			for i := 1; i < gateways; i++ {
				r.Step(epoch, Received{Message: Heartbeat{Origin: Origin{
					Gateway: ring.GatewayID(fmt.Sprintf("gw-%d", i)),
					Counts:  placement.Counts{Incarnation: 1, Attached: 1000},
				}}})
			}
			b.ReportAllocs()
			for b.Loop() {
				r.Live()
			}
		})
	}
}

// What one member takes beyond the bytes of its own ID, reported as bytes/member.
func BenchmarkMemory(b *testing.B) {
	for _, members := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprintf("members=%d", members), func(b *testing.B) {
			ids := memberIDs(members)
			heap := func() float64 {
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				return float64(m.HeapAlloc)
			}
			var r *Roster
			before := heap()
			for b.Loop() {
				before = heap()
				r = benchRoster(b)
				now := epoch
				for _, m := range ids {
					now = now.Add(10 * time.Microsecond)
					r.Step(now, Attached{Member: m, Generation: 1})
				}
			}
			b.ReportMetric((heap()-before)/float64(members), "bytes/member")
			runtime.KeepAlive(r)
			runtime.KeepAlive(ids)
		})
	}
}
