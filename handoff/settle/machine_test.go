// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"container/heap"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

const second = time.Second

// start is when every test's settle begins.
var start = time.Unix(1_700_000_000, 0)

func at(d time.Duration) time.Time { return start.Add(d) }

// gateways are A, B, ... with so many supervisors.
func gateways(loads ...int) []placement.Gateway {
	all := make([]placement.Gateway, len(loads))
	for i, n := range loads {
		id := ring.GatewayID(rune('A' + i))
		all[i] = placement.Gateway{
			ID: id, Endpoint: string(id), State: placement.Ready, Known: true,
			Counts: placement.Counts{Incarnation: 1, Attached: n},
		}
	}
	return all
}

// world runs the machine of gateway A in made-up time, over a fleet that it
// keeps itself, and checks at every step what must hold in any settle.
type world struct {
	t      testing.TB
	m      *Machine
	now    time.Time
	posted posts
	seq    int

	gateways []placement.Gateway
	members  []redirect.Supervisor
	gone     map[ring.MemberID]ring.GatewayID // where to; empty: nowhere
	places   map[ring.MemberID]ring.GatewayID // where a place is kept

	answer func(Order) Result      // of a target; default: Told if it is below the limit
	told   func(w *world, o Order) // what a supervisor does; default: it moves after a while

	orders []Order
	times  map[ring.MemberID]time.Time
	report *Report
}

// newWorld is a world of gateways A, B, ... with so many supervisors; those of A have names.
func newWorld(t testing.TB, cfg Config, loads ...int) *world {
	t.Helper()
	m, err := New(cfg)
	require.NoError(t, err)
	w := &world{t: t, m: m, now: start, gone: map[ring.MemberID]ring.GatewayID{}, places: map[ring.MemberID]ring.GatewayID{}, times: map[ring.MemberID]time.Time{}}
	for i, n := range loads {
		id := ring.GatewayID(rune('A' + i))
		w.gateways = append(w.gateways, placement.Gateway{
			ID: id, Endpoint: string(id), State: placement.Ready, Known: true,
			Counts: placement.Counts{Incarnation: 1, Attached: n},
		})
	}
	for i := range loads[0] {
		w.members = append(w.members, redirect.Supervisor{Member: ring.MemberID(fmt.Sprintf("m%04d", i)), Movable: true})
	}
	w.answer = func(o Order) Result {
		if w.gateway(o.To).Load() < o.Limit {
			return Told
		}
		return Refused
	}
	w.told = func(w *world, o Order) { w.after(300*time.Millisecond, func() { w.arrive(o.Member, o.To) }) }
	return w
}

func (w *world) gateway(id ring.GatewayID) *placement.Gateway {
	return &w.gateways[slices.IndexFunc(w.gateways, func(g placement.Gateway) bool { return g.ID == id })]
}

type post struct {
	at  time.Time
	seq int
	do  func()
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

func (w *world) after(d time.Duration, do func()) {
	w.seq++
	heap.Push(&w.posted, post{w.now.Add(d), w.seq, do})
}

// arrive lets a supervisor of A be accepted elsewhere.
func (w *world) arrive(m ring.MemberID, to ring.GatewayID) {
	if _, gone := w.gone[m]; gone {
		return
	}
	w.gone[m] = to
	w.gateway("A").Attached--
	if to != "" {
		w.gateway(to).Attached++
		w.release(m)
	}
	w.see()
}

// release ends the place that is kept for a supervisor.
func (w *world) release(m ring.MemberID) {
	if to, ok := w.places[m]; ok {
		delete(w.places, m)
		w.gateway(to).Reserved--
	}
}

func (w *world) sight() redirect.Sight {
	s := redirect.Sight{Self: "A", Gateways: slices.Clone(w.gateways)}
	for _, m := range w.m.Watched() {
		where, gone := w.gone[m]
		if !gone {
			where = "A"
		}
		s.Where = append(s.Where, redirect.Whereabouts{Member: m, At: where})
	}
	return s
}

func (w *world) see() { w.step(Seen{w.sight()}) }

// run settles and returns the report.
func (w *world) run() Report {
	w.t.Helper()
	w.step(Begin{w.sight()})
	w.until(func() bool { return w.report != nil })
	return *w.report
}

func (w *world) until(holds func() bool) {
	w.t.Helper()
	for steps := 0; !holds(); steps++ {
		require.Less(w.t, steps, 100_000, "the machine does not come to rest")
		next, ok := w.m.Deadline()
		if w.posted.Len() > 0 && (!ok || !next.Before(w.posted[0].at)) {
			p := heap.Pop(&w.posted).(post)
			w.now = p.at
			p.do()
			continue
		}
		require.True(w.t, ok, "nothing more happens in state %v", w.m.State())
		w.now = next
		w.see()
		w.step(Tick{})
	}
}

func (w *world) step(e Event) {
	w.t.Helper()
	for _, a := range w.m.Step(w.now, e) {
		switch a := a.(type) {
		case List:
			var here []redirect.Supervisor
			for _, s := range w.members {
				if _, gone := w.gone[s.Member]; !gone {
					here = append(here, s)
				}
			}
			w.step(Listed{here})
		case Order:
			_, again := w.times[a.Member]
			require.False(w.t, again, "%s is told twice", a.Member)
			result := w.answer(a)
			if result == Told {
				w.times[a.Member] = w.now
				w.gateway(a.To).Reserved++
				w.places[a.Member] = a.To
				w.after(redirect.DefaultReserve, func() { w.release(a.Member) })
				w.told(w, a)
			}
			w.orders = append(w.orders, a)
			w.after(time.Millisecond, func() {
				w.see()
				w.step(Ordered{a.Member, result})
			})
			require.LessOrEqual(w.t, w.m.underWay(), w.m.cfg.InFlight)
		case Finished:
			w.report = &a.Report
		}
	}
	if next, ok := w.m.Deadline(); ok {
		require.True(w.t, w.m.running())
		require.True(w.t, next.After(w.now), "%v at %v wants a tick at %v", w.m.State(), w.now, next)
	}
}

// S18: a hundred moves are ordered, twelve supervisors never answer. Nobody is
// told twice, nobody goes in their place, and they are named.
func TestS18(t *testing.T) {
	w := newWorld(t, Config{}, 200, 0)
	mute := func(m ring.MemberID) bool { return m < "m0012" }
	answers := w.told
	w.told = func(w *world, o Order) {
		if !mute(o.Member) {
			answers(w, o)
		}
	}
	report := w.run()
	require.Len(t, w.orders, 100)
	require.Len(t, report.Moved, 88)
	require.Len(t, report.Failed, 12)
	for i, f := range report.Failed {
		require.Equal(t, Failure{ring.MemberID(fmt.Sprintf("m%04d", i)), "B", Silent}, f)
	}
	require.Equal(t, Stuck, report.Ending)
	require.Equal(t, 12, report.Left)
	require.Equal(t, 112, w.gateway("A").Attached)
	require.GreaterOrEqual(t, report.Took, DefaultStable+2*DefaultMoveTimeout, "twelve take two rounds of eight")
	require.Contains(t, report.String(), "settled: stuck, moved=88 failed=12 refused=0 left=12 spread=200->")
}

// One that moves after its time counts as moved, and the report says so as long
// as the settle lasts.
func TestLateMove(t *testing.T) {
	w := newWorld(t, Config{InFlight: 1}, 8, 0)
	answers := w.told
	w.told = func(w *world, o Order) {
		if o.Member == "m0000" {
			w.after(DefaultMoveTimeout+50*time.Millisecond, func() { w.arrive(o.Member, o.To) })
			return
		}
		answers(w, o)
	}
	report := w.run()
	require.Len(t, report.Moved, 4)
	require.Empty(t, report.Failed)
	require.Equal(t, Even, report.Ending)
	require.Equal(t, []int{4, 4}, []int{w.gateway("A").Load(), w.gateway("B").Load()})
}

func TestVanished(t *testing.T) {
	w := newWorld(t, Config{}, 8, 0)
	w.told = func(w *world, o Order) { w.after(second, func() { w.arrive(o.Member, "") }) }
	report := w.run()
	require.Empty(t, report.Moved)
	require.NotEmpty(t, report.Failed)
	for _, f := range report.Failed {
		require.Equal(t, Vanished, f.Cause)
	}
}

func TestBudget(t *testing.T) {
	w := newWorld(t, Config{Budget: 3}, 20, 0)
	report := w.run()
	require.Equal(t, Spent, report.Ending)
	require.Len(t, report.Moved, 3)
	require.Equal(t, 7, report.Left)
	require.Len(t, w.orders, 3)
}

// A refusal is no move, uses up nothing, and the same gateway is not asked again
// at once; who was to move may go elsewhere.
func TestRefused(t *testing.T) {
	w := newWorld(t, Config{Budget: 6}, 9, 0, 0)
	asked := map[ring.GatewayID][]time.Time{}
	w.answer = func(o Order) Result {
		asked[o.To] = append(asked[o.To], w.now)
		if o.To == "C" && len(asked["C"]) < 4 {
			return Refused
		}
		return Told
	}
	report := w.run()
	require.Equal(t, Even, report.Ending)
	require.Len(t, report.Moved, 6)
	require.Equal(t, 3, report.Refused)
	require.Equal(t, []int{3, 3, 3}, []int{w.gateway("A").Load(), w.gateway("B").Load(), w.gateway("C").Load()})
	for i := range 3 {
		require.GreaterOrEqual(t, asked["C"][i+1].Sub(asked["C"][i]), DefaultRetryPause)
	}

	w = newWorld(t, Config{}, 4, 0)
	w.answer = func(Order) Result { return Refused }
	report = w.run()
	require.Equal(t, Stuck, report.Ending, "a gateway that always refuses is given up")
	require.Empty(t, report.Moved)
	require.InDelta(t, (DefaultStable + DefaultPatience).Seconds(), report.Took.Seconds(), 2)
}

// A no says nothing about a question with a higher limit.
func TestRefusedBelowTheShare(t *testing.T) {
	w := newWorld(t, Config{}, 8, 3, 3, 5)
	refused := false
	answer := w.answer
	w.answer = func(o Order) Result {
		if o.To == "C" && !refused { // somebody has come there from D meanwhile
			refused = true
			w.gateway("C").Attached++
			w.gateway("D").Attached--
			return Refused
		}
		return answer(o)
	}
	report := w.run()
	require.Equal(t, Even, report.Ending)
	require.Equal(t, 1, report.Refused)
	require.Equal(t, []int{5, 4, 5, 5}, []int{w.gateway("A").Load(), w.gateway("B").Load(), w.gateway("C").Load(), w.gateway("D").Load()})
	require.Less(t, report.Took, DefaultStable+DefaultLinger+DefaultRetryPause, "C is not left alone for longer")
}

// Who came from the receiver goes back to it first, then whoever else was
// displaced, then the rest in ID order; who cannot move is not asked.
func TestWhoMoves(t *testing.T) {
	w := newWorld(t, Config{}, 10, 0)
	w.members[0].Movable = false
	w.members[4].From = "X"
	w.members[3].From = "Y"
	w.members[9].From = "B"
	w.run()
	var order []ring.MemberID
	for _, o := range w.orders {
		order = append(order, o.Member)
	}
	require.Equal(t, []ring.MemberID{"m0009", "m0003", "m0004", "m0001", "m0002"}, order)
}

func TestNobodyCanMove(t *testing.T) {
	w := newWorld(t, Config{}, 3, 0)
	for i := range w.members {
		w.members[i].Movable = false
	}
	report := w.run()
	require.Equal(t, Stuck, report.Ending)
	require.Equal(t, 1, report.Left)
	require.Less(t, report.Took, DefaultPatience)
}

// One that has left by the time that it would be told is passed over.
func TestAbsent(t *testing.T) {
	w := newWorld(t, Config{InFlight: 1}, 4, 0)
	w.answer = func(o Order) Result {
		if o.Member == "m0000" {
			w.gateway("A").Attached-- // it has said goodbye
			w.gone[o.Member] = ""
			return Absent
		}
		return Told
	}
	report := w.run()
	require.Len(t, report.Moved, 1)
	require.Empty(t, report.Failed)
	require.Equal(t, []int{2, 1}, []int{w.gateway("A").Load(), w.gateway("B").Load()})
}

// While the fleet is not stable nobody is told to move, and it goes on after that.
func TestUnrestWhileMoving(t *testing.T) {
	w := newWorld(t, Config{InFlight: 1}, 100, 0)
	w.step(Begin{w.sight()})
	w.until(func() bool { return len(w.orders) == 10 })
	w.gateway("B").Suspect = true
	w.see()
	require.Equal(t, Waiting, w.m.State())
	since := w.now
	w.after(5*second, func() { w.gateway("B").Suspect = false; w.see() })
	w.until(func() bool { return len(w.orders) == 11 })
	require.Equal(t, 15*second, w.now.Sub(since))
	w.until(func() bool { return w.report != nil })
	require.Len(t, w.report.Moved, 50)
}

func TestHoldsAreWaitedFor(t *testing.T) {
	w := newWorld(t, Config{}, 10, 0)
	w.gateway("A").Held = 1
	w.after(25*second, func() { w.gateway("A").Held = 0; w.see() })
	w.run()
	require.Len(t, w.report.Moved, 5)
	require.GreaterOrEqual(t, w.times["m0000"].Sub(start), 25*second)

	w = newWorld(t, Config{}, 10, 0)
	w.gateway("A").Held = 1
	report := w.run()
	require.Equal(t, Unstable, report.Ending)
	require.Equal(t, "1 supervisor on hold", report.Unrest)
	require.Equal(t, DefaultPatience, report.Took)
}

func TestAbort(t *testing.T) {
	w := newWorld(t, Config{InFlight: 2}, 100, 0)
	w.step(Begin{w.sight()})
	w.until(func() bool { return len(w.m.Report(w.now).Moved) == 4 })
	require.Equal(t, []Action{AlreadyBegun{}}, w.m.Step(w.now, Begin{w.sight()}))
	w.step(Abort{})
	require.Equal(t, Aborted, w.report.Ending)
	require.Equal(t, Ended, w.m.State())
	require.Len(t, w.report.Moved, 4)
	require.LessOrEqual(t, len(w.report.Failed), 2)
	for _, f := range w.report.Failed {
		require.Equal(t, UnderWay, f.Cause)
	}
	_, ok := w.m.Deadline()
	require.False(t, ok)
}

func TestPace(t *testing.T) {
	w := newWorld(t, Config{Interval: 50 * time.Millisecond, InFlight: 100}, 40, 0)
	w.run()
	require.Len(t, w.times, 20)
	var times []time.Time
	for _, at := range w.times {
		times = append(times, at)
	}
	slices.SortFunc(times, time.Time.Compare)
	for i := range times[1:] {
		require.GreaterOrEqual(t, times[i+1].Sub(times[i]), 50*time.Millisecond)
	}
}

func TestValidateNamesEveryFault(t *testing.T) {
	err := Config{
		Stable: -1, Patience: -1, Budget: -1, InFlight: -1, Interval: -1, MoveTimeout: -1, RetryPause: -1, Linger: -1,
	}.Validate()
	for _, field := range []string{"Stable", "Patience", "Budget", "InFlight", "Interval", "MoveTimeout", "RetryPause", "Linger"} {
		require.ErrorContains(t, err, "Config."+field+" is -1")
	}
	_, err = New(Config{Stable: 2 * time.Minute})
	require.ErrorContains(t, err, "Config.Patience is 1m0s; it cannot be below Stable, which is 2m0s")
	require.NoError(t, Config{}.Validate())
}

func TestStableTexts(t *testing.T) {
	require.Equal(t, "idle waiting moving done ended unknown", fmt.Sprint(Idle, Waiting, Moving, Done, Ended, State(200)))
	require.Equal(t, "refused absent told unknown", fmt.Sprint(Refused, Absent, Told, Result(200)))
	require.Equal(t, "under-way silent vanished unknown", fmt.Sprint(UnderWay, Silent, Vanished, Cause(200)))
	require.Equal(t, "running even spent stuck unstable draining aborted unknown",
		fmt.Sprint(Running, Even, Spent, Stuck, Unstable, Draining, Aborted, Ending(200)))
}
