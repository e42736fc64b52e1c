// SPDX-License-Identifier: Apache-2.0

package roster

import (
	"fmt"
	"math/rand/v2"
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

// Deltas, just decoded, at a copy of 100 000 members, whose generations grow:
// ns/entry is what one entry costs.
func BenchmarkDelta(b *testing.B) {
	const members = 100_000
	for _, entries := range []int{1, 100} {
		b.Run(fmt.Sprintf("entries=%d", entries), func(b *testing.B) {
			r, ids := benchRoster(b), memberIDs(members)
			last := Delta{Origin: Origin{Gateway: "gw-1", Counts: placement.Counts{Incarnation: 1}}}
			next := func(members []ring.MemberID) Event {
				last.From, last.Sequence, last.Changes = last.Sequence, last.Sequence+1, make([]Change, len(members))
				for i, m := range members {
					last.Changes[i] = Change{Member: m, Generation: placement.Generation(last.Sequence), Op: OpAttached}
				}
				return Received{Message: last}
			}
			r.Step(epoch, next(ids))
			var ready []Event
			all, at := 0, 0
			b.ReportAllocs()
			for b.Loop() {
				if len(ready) == 0 {
					b.StopTimer()
					for range 1000 {
						ready = append(ready, next(ids[at:at+entries]))
						at = (at + entries) % members
					}
					b.StartTimer()
				}
				r.Step(epoch, ready[0])
				ready = ready[1:]
				all += entries
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(all), "ns/entry")
			require.Equal(b, members, r.Live())
		})
	}
}

// give asks r for its record, lets time pass until it is there, and returns
// its pages and how long the longest step took.
func give(r *Roster) (all []Snapshot, longest time.Duration) {
	now := epoch
	var ev Event = Received{Message: SnapshotRequest{From: "gw-1", Gateway: "gw-0", Incarnation: 1}}
	for {
		began := time.Now()
		actions := r.Step(now, ev)
		longest = max(longest, time.Since(began))
		for _, a := range actions {
			if s, ok := a.(Send).Message.(Snapshot); ok {
				all = append(all, s)
			}
		}
		if len(all) > 0 {
			return all, longest
		}
		now, ev = now.Add(slicePause), Tick{}
	}
}

func snapshotOf(b *testing.B, members int) []Snapshot {
	r := benchRoster(b)
	for _, m := range memberIDs(members) {
		r.Step(epoch, Attached{Member: m, Generation: 1_700_000_000_000_000_000})
	}
	all, _ := give(r)
	return all
}

// take gives the pages to a new roster.
func take(b *testing.B, all []Snapshot) *Roster {
	r, err := New(epoch, Config{Gateway: "gw-1", Incarnation: 1, Ring: smallRing})
	require.NoError(b, err)
	for _, s := range all {
		r.Step(epoch, Received{Message: s})
	}
	return r
}

var snapshotSizes = []int{1_000, 10_000, 100_000, 1_000_000}

// A whole record, taken by a roster that has none of it, or has it already.
func BenchmarkSnapshot(b *testing.B) {
	for _, members := range snapshotSizes {
		b.Run(fmt.Sprintf("members=%d/new", members), func(b *testing.B) {
			all := snapshotOf(b, members)
			b.ReportAllocs()
			for b.Loop() {
				require.Equal(b, members, take(b, all).Live())
			}
		})
		b.Run(fmt.Sprintf("members=%d/again", members), func(b *testing.B) {
			all := snapshotOf(b, members)
			r := take(b, all)
			b.ReportAllocs()
			for b.Loop() {
				for _, s := range all {
					s.Sequence = r.peer("gw-0").have + 1
					if s.Page == len(all)-1 {
						r.Step(epoch, Received{Message: s})
						break
					}
					r.Step(epoch, Received{Message: s})
				}
				require.Equal(b, members, r.Live())
			}
		})
	}
}

// A whole record on its way: cut into pages, encoded and decoded.
func BenchmarkSnapshotCodec(b *testing.B) {
	for _, members := range snapshotSizes {
		b.Run(fmt.Sprintf("members=%d", members), func(b *testing.B) {
			all := snapshotOf(b, members)
			var buf []byte
			b.ReportAllocs()
			for b.Loop() {
				for _, s := range all {
					buf = Append(buf[:0], s)
					_, err := Decode(buf)
					require.NoError(b, err)
				}
			}
		})
	}
}

// A whole record, as it is cut for somebody who asks, its members having come
// in any order; longest-ns is its longest step, on average: how long an attach
// may have to wait.
func BenchmarkGiveSnapshot(b *testing.B) {
	for _, members := range snapshotSizes {
		b.Run(fmt.Sprintf("members=%d", members), func(b *testing.B) {
			r, ids := benchRoster(b), memberIDs(members)
			for g := range placement.Generation(2) {
				for _, m := range ids {
					r.Step(epoch, Attached{Member: m, Generation: 1_700_000_000_000_000_000 + g})
				}
				rand.Shuffle(members, func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
			}
			var sum time.Duration
			rounds := 0
			b.ReportAllocs()
			for b.Loop() {
				r.dropCut()
				_, longest := give(r)
				sum += longest
				rounds++
			}
			b.ReportMetric(float64(sum.Nanoseconds())/float64(rounds), "longest-ns")
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

// What one member takes beyond the bytes of its own ID, reported as
// bytes/member: where it is served, and in a copy that came in a snapshot.
func BenchmarkMemory(b *testing.B) {
	for _, members := range []int{100_000, 1_000_000} {
		ids := memberIDs(members)
		own := 0
		for _, m := range ids {
			own += len(m)
		}
		heap := func() float64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return float64(m.HeapAlloc)
		}
		measure := func(b *testing.B, taken int, build func() *Roster) {
			built := make([]*Roster, 1)
			before := heap()
			for b.Loop() {
				built[0] = nil
				before = heap()
				built[0] = build()
			}
			b.ReportMetric((heap()-before-float64(taken))/float64(members), "bytes/member")
			runtime.KeepAlive(built)
		}
		b.Run(fmt.Sprintf("members=%d/owner", members), func(b *testing.B) {
			measure(b, 0, func() *Roster { // which shares the bytes of the IDs
				r, now := benchRoster(b), epoch
				for _, m := range ids {
					now = now.Add(10 * time.Microsecond)
					r.Step(now, Attached{Member: m, Generation: 1})
				}
				return r
			})
			runtime.KeepAlive(ids)
		})
		b.Run(fmt.Sprintf("members=%d/copy", members), func(b *testing.B) {
			all := snapshotOf(b, members)
			measure(b, own, func() *Roster { return take(b, all) })
			runtime.KeepAlive(all)
		})
	}
}
