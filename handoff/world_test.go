// SPDX-License-Identifier: Apache-2.0

package handoff

import (
	"container/heap"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/ring"
)

// world runs a machine in made-up time and checks, at every step, what must
// hold in any drain.
type world struct {
	t      testing.TB
	m      *Machine
	now    time.Time
	served int
	posted posts

	result func(ring.MemberID) Ordered               // of an order; default: told to go to C
	told   func(member ring.MemberID, now time.Time) // what a member does that was told; default: nothing
	ended  func(member ring.MemberID, now time.Time) // what a stream does that is to end; default: ends
	delay  func() time.Duration                      // of an order's result; default: none

	orders   map[ring.MemberID][]time.Time
	underWay map[ring.MemberID]bool
	toldAt   map[ring.MemberID]time.Time
	report   *Report
}

type post struct {
	at    time.Time
	seq   int
	event Event
}

type posts []post

func (p posts) Len() int      { return len(p) }
func (p posts) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p posts) Less(i, j int) bool {
	return p[i].at.Before(p[j].at) || p[i].at.Equal(p[j].at) && p[i].seq < p[j].seq
}
func (p *posts) Push(x any) { *p = append(*p, x.(post)) }
func (p *posts) Pop() any {
	last := (*p)[len(*p)-1]
	*p = (*p)[:len(*p)-1]
	return last
}

// newWorld is a world whose drain of the members begins at start.
func newWorld(t testing.TB, cfg Config, members []Member) *world {
	t.Helper()
	m, err := New(orNoJitter(cfg))
	require.NoError(t, err)
	w := &world{
		t: t, m: m, now: start,
		orders: map[ring.MemberID][]time.Time{}, underWay: map[ring.MemberID]bool{}, toldAt: map[ring.MemberID]time.Time{},
		result: func(member ring.MemberID) Ordered { return Ordered{Member: member, Told: true, Target: "C"} },
		told:   func(ring.MemberID, time.Time) {},
		delay:  func() time.Duration { return 0 },
	}
	w.ended = func(member ring.MemberID, now time.Time) { w.post(now, Closed{member}) }
	w.step(Begin{members})
	w.served = w.m.Report(w.now).Served()
	return w
}

func (w *world) post(at time.Time, e Event) {
	heap.Push(&w.posted, post{at, w.posted.Len(), e})
}

// drain runs until the machine is finished and returns its report.
func (w *world) drain() Report {
	w.t.Helper()
	w.until(func() bool { return w.report != nil })
	return *w.report
}

// until runs until the condition holds.
func (w *world) until(condition func() bool) {
	w.t.Helper()
	for steps := 0; !condition(); steps++ {
		require.Less(w.t, steps, 100*(w.served+100), "the machine does not come to rest")
		next, ok := w.m.Deadline()
		if w.posted.Len() > 0 && (!ok || !next.Before(w.posted[0].at)) {
			p := heap.Pop(&w.posted).(post)
			w.now = p.at
			w.step(p.event)
			continue
		}
		require.True(w.t, ok, "nothing more happens in state %v", w.m.State())
		require.False(w.t, next.Before(w.now), "a tick is wanted in the past")
		w.now = next
		w.step(Tick{})
	}
}

// step gives the machine one event, does what it wants, and checks it.
func (w *world) step(e Event) {
	w.t.Helper()
	if o, ok := e.(Ordered); ok {
		w.underWay[o.Member] = false
		if o.Told {
			w.toldAt[o.Member] = w.now
			w.told(o.Member, w.now)
		}
	}
	over := w.m.over()
	deadline := w.m.began.Add(w.m.plan.Deadline())
	for _, a := range w.m.Step(w.now, e) {
		switch a := a.(type) {
		case Order:
			require.True(w.t, w.now.Before(deadline), "%s is asked at the deadline or after it", a.Member)
			require.False(w.t, w.now.Before(start.Add(w.m.plan.Propagation)), "%s is asked before the announcement is over", a.Member)
			require.Equal(w.t, deadline, a.Until)
			require.False(w.t, w.underWay[a.Member], "%s is asked twice at once", a.Member)
			if told, ok := w.toldAt[a.Member]; ok {
				require.GreaterOrEqual(w.t, w.now.Sub(told), w.m.cfg.OrderTimeout, "%s is asked again before its time is up", a.Member)
			}
			require.True(w.t, w.m.byID[a.Member].Movable, "%s cannot move", a.Member)
			require.Equal(w.t, here, w.m.byID[a.Member].fate, "%s has gone", a.Member)
			w.orders[a.Member] = append(w.orders[a.Member], w.now)
			w.underWay[a.Member] = true
			w.post(w.now.Add(w.delay()), w.result(a.Member))
		case Close:
			require.False(w.t, over, "closed after the end")
			w.ended(a.Member, w.now)
		case Finished:
			w.report = &a.Report
			require.Equal(w.t, w.served, a.Report.Served())
			if !a.Report.Aborted {
				require.LessOrEqual(w.t, a.Report.Took, w.m.plan.Total())
			}
		}
	}
	if _, begin := e.(Begin); !begin {
		require.Equal(w.t, w.served, w.m.Report(w.now).Served())
	}
	if next, ok := w.m.Deadline(); ok {
		require.True(w.t, next.After(w.now), "%v at %v wants a tick at %v", w.m.State(), w.now, next)
	}
}

// TestInvariant8: moved + closed + left behind = served at the start, and the
// last order goes out before the deadline, whatever the supervisors do.
func TestInvariant8(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for i := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, i))
		w, wantMoved := randomWorld(t, rng)
		report := w.drain()
		require.LessOrEqual(t, len(report.Moved), wantMoved(), "seed %d, world %d", seed, i)
		if !report.Aborted {
			for _, left := range report.Left {
				require.Equal(t, left.Cause == Immovable, !w.m.byID[left.Member].Movable)
			}
		}
	}
}

// randomWorld is a drain in which everything goes wrong now and then, and a
// count of those who have really moved.
func randomWorld(t testing.TB, rng *rand.Rand) (*world, func() int) {
	cfg := Config{
		Propagation:  time.Duration(1 + rng.Int64N(int64(4*second))),
		Window:       time.Duration(1 + rng.Int64N(int64(12*second))),
		Confirm:      time.Duration(1 + rng.Int64N(int64(12*second))),
		OrderTimeout: time.Duration(1 + rng.Int64N(int64(10*second))),
		RetryPause:   time.Duration(1+rng.Int64N(int64(3*second))) + second/4,
		InFlight:     1 + rng.IntN(20),
		Jitter:       rng.Float64,
	}
	cfg.OrderTimeout += second
	members := fleet(rng.IntN(60))
	for i := range members {
		members[i].Movable = rng.IntN(10) > 0
	}
	w := newWorld(t, cfg, members)
	went := map[ring.MemberID]bool{}
	after := func(limit time.Duration) time.Time { return w.now.Add(time.Duration(rng.Int64N(int64(limit)))) }
	for _, one := range members {
		if rng.IntN(10) == 0 {
			w.post(after(30*second), Closed{one.ID})
		}
	}
	if rng.IntN(5) == 0 {
		w.post(after(25*second), Abort{})
	}
	w.delay = func() time.Duration { return time.Duration(rng.Int64N(int64(second))) }
	w.result = func(member ring.MemberID) Ordered {
		return Ordered{Member: member, Told: rng.IntN(3) > 0, Target: "C"}
	}
	w.ended = func(member ring.MemberID, _ time.Time) {
		if rng.IntN(5) > 0 {
			w.post(after(2*second), Closed{member})
		}
	}
	w.told = func(member ring.MemberID, _ time.Time) {
		switch rng.IntN(5) {
		case 0:
			w.post(after(12*second), Closed{member})
		case 1: // says nothing
		default:
			went[member] = true
			w.post(after(12*second), Moved{Member: member, To: "C"})
		}
	}
	return w, func() int { return len(went) }
}
