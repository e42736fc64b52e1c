// SPDX-License-Identifier: Apache-2.0

package handoff

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/ring"
)

// S18: a hundred orders, twelve supervisors never answer.
func TestS18(t *testing.T) {
	cfg := Config{KillAfter: 60 * second, Confirm: 25 * second}
	w := newWorld(t, cfg, fleet(100))
	w.told = func(member ring.MemberID, now time.Time) {
		if member >= "m0012" {
			w.post(now.Add(300*time.Millisecond), Moved{Member: member, To: "C"})
		}
	}
	report := w.drain()

	require.Len(t, report.Moved, 88)
	require.Len(t, report.Left, 12)
	for i, left := range report.Left {
		require.Equal(t, LeftBehind{ring.MemberID(fmt.Sprintf("m%04d", i)), Silent}, left)
	}
	for member, orders := range w.orders {
		if member >= "m0012" {
			require.Len(t, orders, 1, member)
			continue
		}
		require.GreaterOrEqual(t, len(orders), 2, "%s was never asked again", member)
		for i := range orders[1:] {
			require.GreaterOrEqual(t, orders[i+1].Sub(orders[i]), DefaultOrderTimeout, member)
		}
	}
}

// S35: two drain at once, and all.
func TestS35(t *testing.T) {
	t.Run("all to C", func(t *testing.T) {
		for _, name := range []string{"A", "B"} {
			w := newWorld(t, Config{}, fleet(10))
			w.told = func(member ring.MemberID, now time.Time) {
				w.post(now.Add(second), Moved{Member: member, To: "C"})
			}
			report := w.drain()
			require.Len(t, report.Moved, 10, name)
			require.Equal(t, 10, report.Orders, name)
		}
	})
	t.Run("all draining", func(t *testing.T) {
		w := newWorld(t, Config{}, fleet(10))
		w.result = func(member ring.MemberID) Ordered { return Ordered{Member: member} }
		report := w.drain()
		require.Len(t, report.Left, 10)
		for _, left := range report.Left {
			require.Equal(t, Nowhere, left.Cause)
		}
		for member, orders := range w.orders {
			for i := range orders[1:] {
				require.GreaterOrEqual(t, orders[i+1].Sub(orders[i]), DefaultRetryPause, member)
			}
		}
	})
}

// S38, this side: the old stream ends only after the new one was accepted, and
// the machine closes nothing in between.
func TestS38(t *testing.T) {
	m := run(t, Config{}, []timed{{0, Begin{[]Member{{"s", true}}}}})
	require.Equal(t, []Action{Order{"s", at(23 * second)}}, m.Step(at(3*second), Tick{}))
	require.Empty(t, m.Step(at(3*second), Ordered{Member: "s", Told: true, Target: "B"}))
	require.Empty(t, m.Step(at(5*second), Moved{Member: "s", To: "B"}))
	require.Empty(t, m.Step(at(5*second), Closed{"s"}))
	report := finished(t, m.Step(at(5*second+DefaultLinger), Tick{}))
	require.Equal(t, []Move{{"s", "B"}}, report.Moved)
	require.Equal(t, 1, report.Served(), "counted once")
}

// S49: the deadline is at 10 s and the target accepts at 12 s.
func TestS49(t *testing.T) {
	t.Run("deadline of the drain", func(t *testing.T) {
		cfg := Config{Propagation: second, Window: 4 * second, Confirm: 5 * second}
		m := run(t, cfg, []timed{
			{0, Begin{[]Member{{"s", true}, {"u", true}}}},
			{1 * second, Tick{}},
			{1 * second, Ordered{Member: "s", Told: true, Target: "C"}},
			{3 * second, Tick{}},
			{3 * second, Ordered{Member: "u"}},
		})
		actions := m.Step(at(10*second), Tick{})
		require.Equal(t, []Action{Close{"s"}, Close{"u"}}, actions)
		require.Empty(t, m.Step(at(10*second), Closed{"s"}))
		report := finished(t, m.Step(at(10*second), Closed{"u"}))
		require.Equal(t, []LeftBehind{{"s", Silent}, {"u", Nowhere}}, report.Left)

		amended := finished(t, m.Step(at(12*second), Moved{Member: "s", To: "C"}))
		require.Equal(t, []Move{{"s", "C"}}, amended.Moved)
		require.Equal(t, []LeftBehind{{"u", Nowhere}}, amended.Left)
		require.Equal(t, 10*second, amended.Took)
		require.Empty(t, m.Step(at(12*second), Moved{Member: "s", To: "C"}), "told twice, counted once")
		require.Empty(t, m.Step(at(12*second), Moved{Member: "u", To: "C"}), "not the doing of the drain")
	})
	t.Run("time limit of one order", func(t *testing.T) {
		cfg := Config{Propagation: 1, OrderTimeout: 10 * second, Confirm: 15 * second}
		m := run(t, cfg, []timed{
			{0, Begin{[]Member{{"s", true}}}},
			{1, Tick{}},
			{1, Ordered{Member: "s", Told: true, Target: "C"}},
		})
		require.Equal(t, []Action{Order{"s", at(25*second + 1)}}, m.Step(at(10*second+1), Tick{}))
		require.Empty(t, m.Step(at(12*second), Moved{Member: "s", To: "C"}))
		require.Empty(t, m.Step(at(12*second), Ordered{Member: "s", Told: true, Target: "D"}))
		report := finished(t, m.Step(at(12*second+DefaultLinger), Tick{}))
		require.Equal(t, []Move{{"s", "C"}}, report.Moved)
		require.Empty(t, m.Step(at(60*second), Tick{}), "no second move")
		_, ok := m.Deadline()
		require.False(t, ok)
	})
}

// S51: started twice; aborted at 40 %.
func TestS51(t *testing.T) {
	w := newWorld(t, Config{}, fleet(10))
	w.told = func(member ring.MemberID, now time.Time) { w.post(now, Moved{Member: member, To: "C"}) }
	w.until(func() bool { return len(w.m.Report(w.now).Moved) == 4 })

	require.Equal(t, []Action{AlreadyBegun{}}, w.m.Step(w.now, Begin{fleet(3)}))
	require.Equal(t, Handing, w.m.State())

	actions := w.m.Step(w.now, Abort{})
	require.Equal(t, Resume{}, actions[0])
	report := finished(t, actions)
	require.True(t, report.Aborted)
	require.Len(t, report.Moved, 4)
	require.Len(t, report.Left, 6)
	require.Equal(t, []Action{AlreadyBegun{}}, w.m.Step(w.now, Begin{fleet(3)}))
}

func TestMovesAreSpreadEvenly(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	cfg := Config{Jitter: rng.Float64}
	w := newWorld(t, cfg, fleet(200))
	w.told = func(member ring.MemberID, now time.Time) { w.post(now, Moved{Member: member, To: "C"}) }
	w.drain()
	perSecond := make([]int, 10)
	for _, orders := range w.orders {
		perSecond[orders[0].Sub(at(DefaultPropagation))/second]++
	}
	for s, n := range perSecond {
		require.InDelta(t, 20, n, 1, "second %d of the window: %v", s, perSecond)
	}
}

func TestOrdersUnderWayAreBounded(t *testing.T) {
	m := run(t, Config{Window: 1, InFlight: 3}, []timed{{0, Begin{fleet(10)}}})
	first := m.Step(at(4*second), Tick{})
	require.Len(t, first, 3)
	next, _ := m.Deadline()
	require.Equal(t, at(m.Plan().Deadline()), next, "no tick is wanted while no order may go out")
	require.Len(t, m.Step(at(5*second), Ordered{Member: first[0].(Order).Member, Told: true}), 1)
}

// After the last one has gone the drain lingers: its sessions are to follow,
// and the word that it is attached elsewhere may come after the end of its stream.
func TestLingersAfterTheLast(t *testing.T) {
	gone := func(cfg Config) *Machine {
		return run(t, cfg, []timed{
			{0, Begin{fleet(1)}},
			{3 * second, Tick{}},
			{3 * second, Ordered{Member: "m0000", Told: true, Target: "C"}},
			{4 * second, Closed{"m0000"}},
		})
	}
	t.Run("word comes", func(t *testing.T) {
		m := gone(Config{})
		next, _ := m.Deadline()
		require.Equal(t, at(4*second+DefaultLinger), next)
		require.Empty(t, m.Step(at(5*second), Moved{Member: "m0000", To: "C"}))
		next, _ = m.Deadline()
		require.Equal(t, at(4*second+DefaultLinger), next, "no longer for that")
		report := finished(t, m.Step(next, Tick{}))
		require.Equal(t, []Move{{"m0000", "C"}}, report.Moved)
		require.Empty(t, report.Closed)
	})
	t.Run("word does not come", func(t *testing.T) {
		require.Equal(t, []ring.MemberID{"m0000"}, finished(t, gone(Config{}).Step(at(6*second), Tick{})).Closed)
	})
	t.Run("word comes too late", func(t *testing.T) {
		m := gone(Config{})
		m.Step(at(6*second), Tick{})
		report := finished(t, m.Step(at(7*second), Moved{Member: "m0000", To: "C"}))
		require.Equal(t, []Move{{"m0000", "C"}}, report.Moved)
		require.Empty(t, report.Closed)
	})
	t.Run("not past the deadline", func(t *testing.T) {
		m := gone(Config{Linger: 60 * second})
		next, _ := m.Deadline()
		require.Equal(t, at(m.Plan().Deadline()), next)
	})
}

func TestNobodyToMove(t *testing.T) {
	t.Run("nobody served", func(t *testing.T) {
		m := run(t, Config{}, []timed{{0, Begin{}}})
		next, ok := m.Deadline()
		require.True(t, ok, "peers that have not heard yet may still send somebody")
		require.Equal(t, at(DefaultPropagation), next)
		require.Zero(t, finished(t, m.Step(next, Tick{})).Served())
	})
	t.Run("only immovable ones", func(t *testing.T) {
		m := run(t, Config{}, []timed{{0, Begin{[]Member{{"old", false}}}}})
		require.Equal(t, []Action{Close{"old"}}, m.Step(at(DefaultPropagation), Tick{}))
		report := finished(t, m.Step(at(DefaultPropagation), Closed{"old"}))
		require.Equal(t, []LeftBehind{{"old", Immovable}}, report.Left)
	})
	t.Run("one that does not end", func(t *testing.T) {
		m := run(t, Config{}, []timed{{0, Begin{[]Member{{"old", false}}}}, {DefaultPropagation, Tick{}}})
		next, _ := m.Deadline()
		require.Equal(t, at(DefaultPropagation+DefaultMargin/2), next)
		require.Len(t, finished(t, m.Step(next, Tick{})).Left, 1)
	})
}

func TestOrderOfMembersDoesNotMatter(t *testing.T) {
	members := append(fleet(20), Member{"old", false})
	outcome := func() string {
		w := newWorld(t, Config{}, members)
		w.told = func(member ring.MemberID, now time.Time) { w.post(now.Add(second), Moved{Member: member, To: "C"}) }
		return fmt.Sprint(w.drain(), w.orders)
	}
	want := outcome()
	for range 20 {
		rand.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		require.Equal(t, want, outcome())
	}
}

func TestCallersSliceAndConfigAreLeftAlone(t *testing.T) {
	members := []Member{{"b", true}, {"a", true}}
	cfg := Config{}
	m := run(t, cfg, []timed{{0, Begin{members}}})
	require.Equal(t, []Member{{"b", true}, {"a", true}}, members)
	members[0].ID = "x"
	require.Equal(t, ring.MemberID("b"), m.Report(at(0)).Left[1].Member)
	require.Zero(t, cfg.Window)
}

func TestJitterOutOfBoundsIsIgnored(t *testing.T) {
	for _, j := range []float64{-1, 1, 1e300} {
		m := run(t, Config{Jitter: func() float64 { return j }}, []timed{{0, Begin{fleet(2)}}, {DefaultPropagation, Tick{}}})
		next, _ := m.Deadline()
		require.Equal(t, at(DefaultPropagation+DefaultWindow/4), next, "%v", j)
	}
}

func TestStableTexts(t *testing.T) {
	require.Equal(t, "idle announced handing done aborted unknown",
		fmt.Sprint(Idle, Announced, Handing, Done, Aborted, State(200)))
	require.Equal(t, "not-asked immovable nowhere silent unknown",
		fmt.Sprint(NotAsked, Immovable, Nowhere, Silent, Cause(200)))
}

// finished is the report in the last of the actions.
func finished(t testing.TB, actions []Action) Report {
	t.Helper()
	require.NotEmpty(t, actions)
	f, ok := actions[len(actions)-1].(Finished)
	require.True(t, ok, "not finished: %v", actions)
	return f.Report
}

// fleet is n movable supervisors.
func fleet(n int) []Member {
	members := make([]Member, n)
	for i := range members {
		members[i] = Member{ring.MemberID(fmt.Sprintf("m%04d", i)), true}
	}
	return members
}
