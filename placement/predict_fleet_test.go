// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/handoff"
	"github.com/evenring/evenring/handoff/settle"
	"github.com/evenring/evenring/internal/sim"
	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// world is a fleet of the real machines, and a plan's steps done to it.
type world struct {
	*sim.World
	t       *testing.T
	named   map[ring.GatewayID][]ring.MemberID // who is where, as Predict was told
	arrived int                                // the next newcomer's number since then
	left    map[ring.MemberID]int              // how often those have moved who are no more

	interval time.Duration // between the moves of a settle
}

// unhurried is an interval in which the counts that one move has changed are known everywhere.
const unhurried = 60 * time.Millisecond

// newWorld starts gateways with so many supervisors each, named as Predict would.
func newWorld(t *testing.T, seed uint64, loads map[ring.GatewayID]int) *world {
	w := &world{World: sim.New(sim.Config{Seed: seed}), t: t, left: map[ring.MemberID]int{}, interval: unhurried}
	for _, id := range slices.Sorted(maps.Keys(loads)) {
		w.StartGateway(id)
		w.Run(time.Second)
	}
	for id, n := range loads {
		for k := range n {
			w.StartAt(ring.MemberID(fmt.Sprint(id, "/", k)), w.Gateways[id])
		}
	}
	w.rest()
	return w
}

// view is the fleet as one of the gateways sees it, without the dead. Of two gateways the one that is left does not purge
// the other, for it could be the one that is cut off; it does once a third has come.
func (w *world) view() *placement.View {
	for _, id := range w.GatewayIDs() {
		if g := w.Gateways[id]; g.Alive {
			r := g.Admission.Roster()
			circle, live := r.Ring(), []placement.Gateway{}
			for one := range r.Gateways() {
				if w.Gateways[one.ID].Alive {
					live = append(live, one)
				} else {
					circle = circle.Without(one.ID)
				}
			}
			return placement.NewView(placement.Picture{Self: id, Ring: circle, Gateways: live, Live: r.Live(), Asking: true})
		}
	}
	require.Fail(w.t, "nobody looks")
	return nil
}

// rest waits until everybody is attached, and then until all counts are known
// and whoever was lost is purged.
func (w *world) rest() {
	w.t.Helper()
	if len(w.Served()) == 0 { // everybody waits
		w.Run(time.Minute)
		return
	}
	require.True(w.t, w.Until(5*time.Minute, w.Settled))
	w.Run(time.Minute)
	require.True(w.t, w.Settled())
}

// do does one step, and waits until it is over.
func (w *world) do(s placement.Step) {
	w.t.Helper()
	switch s := s.(type) {
	case placement.Stop:
		for _, id := range s {
			require.NoError(w.t, w.Gateways[id].Drain(handoff.Config{}))
		}
		require.True(w.t, w.Until(time.Minute, func() bool {
			return !slices.ContainsFunc(s, func(id ring.GatewayID) bool { return w.Gateways[id].Alive })
		}))
	case placement.Start:
		for _, id := range s {
			w.StartGateway(id)
		}
	case placement.Join:
		for _, id := range s {
			w.StartGateway(id)
		}
	case placement.Crash:
		for _, id := range s {
			w.Gateways[id].Kill()
		}
	case placement.Arrive:
		for range s.Count {
			w.StartSupervisor(w.name())
			require.True(w.t, w.Until(time.Minute, w.Settled))
			w.Run(time.Second)
		}
	case placement.Leave:
		var from []*sim.Supervisor
		for _, m := range w.MemberIDs() {
			if one := w.Supervisors[m]; w.attached(one) && (s.From == "" || one.Machine.Home().Gateway == s.From) {
				from = append(from, one)
			}
		}
		circle := w.view().Ring()
		slices.SortStableFunc(from, func(a, b *sim.Supervisor) int {
			return cmp.Compare(circle.Slot(a.Member), circle.Slot(b.Member))
		})
		for _, one := range from[:s.Count] {
			one.Stop()
		}
		w.rest()
		for _, one := range from[:s.Count] {
			w.left[one.Member] += one.Moves
			delete(w.Supervisors, one.Member) // another may get its name
		}
	case placement.Settle:
		w.settle(settle.Config{Budget: s.Budget, Interval: w.interval})
	default:
		require.Fail(w.t, "there is a step that is not done here", "%T", s)
	}
	w.rest()
}

// settle runs a settle on every gateway at once.
func (w *world) settle(cfg settle.Config) {
	w.t.Helper()
	var all []*sim.Settlement
	for _, id := range w.GatewayIDs() {
		if g := w.Gateways[id]; g.Alive {
			s, err := g.Settle(cfg)
			require.NoError(w.t, err)
			all = append(all, s)
		}
	}
	require.True(w.t, w.Until(10*time.Minute, func() bool {
		return !slices.ContainsFunc(all, func(s *sim.Settlement) bool { return s.Report == nil })
	}))
}

// name names a newcomer as Predict does.
func (w *world) name() ring.MemberID {
	for {
		m := ring.MemberID(fmt.Sprint("arrival/", w.arrived))
		w.arrived++
		if !slices.ContainsFunc(slices.Collect(maps.Values(w.named)), func(all []ring.MemberID) bool { return slices.Contains(all, m) }) {
			return m
		}
	}
}

func (w *world) attached(s *sim.Supervisor) bool {
	g := w.Gateways[s.Machine.Home().Gateway]
	if g == nil || !g.Alive {
		return false
	}
	for _, one := range g.Admission.Supervisors() {
		if one.Member == s.Member {
			return true
		}
	}
	return false
}

// hops is how often supervisors have moved, all together.
func (w *world) hops() (n int) {
	for _, k := range w.movers() {
		n += k
	}
	return n
}

// movers are those who have moved, and how often.
func (w *world) movers() map[ring.MemberID]int {
	all := maps.Clone(w.left)
	for m, s := range w.Supervisors {
		all[m] += s.Moves
	}
	maps.DeleteFunc(all, func(_ ring.MemberID, n int) bool { return n == 0 })
	return all
}

// moves is how many supervisors have moved how often.
func (w *world) moves() []int {
	all := []int{0}
	for _, s := range w.Supervisors {
		for len(all) <= s.Moves {
			all = append(all, 0)
		}
		all[s.Moves]++
	}
	return all
}

// who is who is where.
func (w *world) who() map[ring.GatewayID][]ring.MemberID {
	all := map[ring.GatewayID][]ring.MemberID{}
	for id, g := range w.Gateways {
		if g.Alive {
			all[id] = []ring.MemberID{}
			for _, s := range g.Admission.Supervisors() {
				all[id] = append(all[id], s.Member)
			}
		}
	}
	return all
}

func sizes(served map[ring.GatewayID]int) []int { return slices.Sorted(maps.Values(served)) }

// givers are those who have fewer than before.
func givers(before, after map[ring.GatewayID]int) []ring.GatewayID {
	var all []ring.GatewayID
	for id := range before {
		if after[id] < before[id] {
			all = append(all, id)
		}
	}
	return all
}

// settledAlike requires that a settle has ended as was foretold. Where a budget cuts it short and several give, it is
// chance which receiver gets how many, and where moves follow each other faster than counts travel, which
// of them get the odd ones; the givers have what was foretold even then.
func settledAlike(t *testing.T, w *world, s placement.Settle, before, after placement.Outcome) {
	t.Helper()
	got := w.Served()
	give := givers(before.Served, after.Served)
	if w.interval >= unhurried && (len(give) < 2 || s.Budget == 0 || after.Balance.Even()) {
		require.Equal(t, after.Served, got, "%s of %v", s, before.Served)
		return
	}
	want, have := 0, 0
	for id, n := range after.Served {
		if slices.Contains(give, id) {
			require.Equal(t, n, got[id], "%s of %v: %s", s, before.Served, id)
			continue
		}
		require.GreaterOrEqual(t, got[id], before.Served[id])
		require.LessOrEqual(t, got[id], (before.Balance.Total+before.Balance.Gateways-1)/before.Balance.Gateways)
		want, have = want+n, have+got[id]
	}
	require.Equal(t, want, have)
	if after.Balance.Even() {
		require.Equal(t, sizes(after.Served), sizes(got))
	}
}

// foretold runs the plan on paper and on the machines, which must end each step
// with the same count at each gateway. Those who lose a gateway to a crash come
// back in an order of their own, which decides who gets the odd ones: an even fleet has
// the same counts after that, whosever they are, and what follows is foretold anew. So it is after a
// settle in which several gave, for any of them may have given to any receiver, and, once Predict does not know
// any more who came from where, after every settle. It reports whether all of the plan
// was foretold at once; then the same supervisors have moved as often.
func foretold(t *testing.T, w *world, plan ...placement.Step) (certain bool) {
	t.Helper()
	plan = slices.Clone(plan)
	certain = true
	moves := w.hops()
	for len(plan) > 0 {
		w.named, w.arrived = w.who(), 0
		p, err := placement.Predict(w.view(), w.named, plan...)
		require.NoError(t, err)
		require.Equal(t, w.Served(), p.Before.Served)
		before, done := p.Before, 0
		for anew := false; done < len(plan) && !anew; done++ {
			s, after := plan[done], p.Steps[done]
			w.do(s)
			want, got := after.Served, w.Served()
			switch s := s.(type) {
			case placement.Crash:
				if before.Balance.Even() {
					require.Equal(t, sizes(want), sizes(got), "step %d of\n%s", done+1, p)
				} else {
					require.Len(t, got, len(want))
				}
				anew = true
				for i, later := range plan { // by then the fleet has forgotten it
					if start, ok := later.(placement.Start); ok && slices.Equal(start, placement.Start(s)) {
						plan[i] = placement.Join(start)
					}
				}
			case placement.Settle:
				settledAlike(t, w, s, before, after)
				anew = !certain || len(givers(before.Served, after.Served)) > 1
			default:
				require.Equal(t, want, got, "step %d of\n%s", done+1, p)
			}
			before = after
			moves += after.Moved
			require.Equal(t, moves, w.hops(), "step %d of\n%s", done+1, p)
		}
		plan = plan[done:]
		certain = certain && len(plan) == 0
		if certain {
			require.Equal(t, p.Movers, w.movers(), "\n%s", p)
		}
	}
	return certain
}

func TestPredictAgainstTheFleet(t *testing.T) {
	type (
		plan  = []placement.Step
		loads = map[ring.GatewayID]int
	)
	for _, c := range []struct {
		name  string
		loads loads
		plan  plan
		want  string // counts at the end; empty: it depends on who comes back first
	}{
		{
			name: "a rolling restart with surge", loads: loads{"A": 10, "B": 10, "C": 10}, want: "[10 10 10]",
			plan: plan{placement.Join{"D"}, placement.Stop{"A"}, placement.Join{"E"}, placement.Stop{"B"}, placement.Join{"F"}, placement.Stop{"C"}},
		},
		{
			name: "W3: a rolling restart without surge", loads: loads{"A": 10, "B": 10, "C": 10}, want: "[0 15 15]",
			plan: plan{placement.Stop{"A"}, placement.Start{"A"}, placement.Stop{"B"}, placement.Start{"B"}, placement.Stop{"C"}, placement.Start{"C"}},
		},
		{name: "S14: a crash", loads: loads{"A": 10, "B": 10, "C": 10}, want: "[15 15]", plan: plan{placement.Crash{"A"}}},
		{name: "L3: a crash, small", loads: loads{"A": 5, "B": 5, "C": 5, "D": 5}, want: "[6 7 7]", plan: plan{placement.Crash{"B"}}},
		{name: "two crash together", loads: loads{"A": 6, "B": 6, "C": 6, "D": 6}, want: "[12 12]", plan: plan{placement.Crash{"A", "D"}}},
		{name: "two stop together", loads: loads{"A": 6, "B": 6, "C": 6, "D": 6}, want: "[12 12]", plan: plan{placement.Stop{"A", "D"}}},
		{name: "W4: one joins, the next go there", loads: loads{"A": 15, "B": 15}, want: "[15 15 15]", plan: plan{placement.Join{"C"}, placement.Arrive{Count: 15}}},
		{name: "W2: one restarts", loads: loads{"A": 10, "B": 10, "C": 10}, want: "[0 15 15]", plan: plan{placement.Stop{"B"}, placement.Start{"B"}}},
		{name: "W7: one stops", loads: loads{"A": 10, "B": 10, "C": 10}, want: "[15 15]", plan: plan{placement.Stop{"C"}}},
		{name: "W8: a new one is ready first", loads: loads{"A": 15, "B": 15}, want: "[15 15]", plan: plan{placement.Join{"C"}, placement.Stop{"A"}}},
		{name: "S16", loads: loads{"A": 1, "B": 1}, want: "[0 2]", plan: plan{placement.Stop{"A"}, placement.Start{"A"}, placement.Stop{"B"}, placement.Start{"B"}}},
		{name: "the last one stops", loads: loads{"A": 4, "B": 2}, want: "[6]", plan: plan{placement.Stop{"B"}, placement.Stop{"A"}, placement.Start{"A"}}},
		{name: "all stop", loads: loads{"A": 5, "B": 5}, want: "[5 5]", plan: plan{placement.Stop{"A", "B"}, placement.Join{"C", "D"}}},
		{
			name: "S16: and settled", loads: loads{"A": 1, "B": 1}, want: "[1 1]",
			plan: plan{placement.Stop{"A"}, placement.Start{"A"}, placement.Stop{"B"}, placement.Start{"B"}, placement.Settle{Budget: 1}, placement.Settle{Budget: 1}},
		},
		{
			name: "W2: and settled", loads: loads{"A": 10, "B": 10, "C": 10}, want: "[10 10 10]",
			plan: plan{placement.Stop{"A"}, placement.Start{"A"}, placement.Settle{}},
		},
		{
			name: "a settle of one that gives, and what follows", loads: loads{"A": 9, "B": 4}, want: "[8 9]",
			plan: plan{
				placement.Stop{"B"}, placement.Start{"B"}, placement.Join{"C"}, placement.Settle{Budget: 5}, placement.Settle{}, placement.Arrive{Count: 4}, placement.Stop{"C"},
			},
		},
		{
			name: "who came back to where it was came from nowhere", loads: loads{"b": 2}, want: "[2 2]",
			plan: plan{placement.Stop{"b"}, placement.Start{"b"}, placement.Arrive{Count: 2}, placement.Join{"c"}, placement.Settle{}},
		},
		{
			name: "a bit of everything", loads: loads{"A": 4, "B": 5, "C": 4},
			plan: plan{placement.Arrive{Count: 7}, placement.Crash{"B"}, placement.Start{"B"}, placement.Leave{Count: 5}, placement.Join{"D"}, placement.Stop{"A"}, placement.Arrive{Count: 3}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(3) {
				w := newWorld(t, seed, c.loads)
				p, err := placement.Predict(w.view(), nil, c.plan...)
				require.NoError(t, err)
				foretold(t, w, c.plan...)
				if c.want != "" {
					require.Equal(t, c.want, fmt.Sprint(sizes(p.After().Served)), "seed %d\n%s", seed, p)
					require.Equal(t, c.want, fmt.Sprint(sizes(w.Served())), "seed %d\n%s", seed, p)
					require.Equal(t, p.Moves, w.moves(), "seed %d\n%s", seed, p)
				}
			}
		})
	}
}

func TestRandomPlansAgainstTheFleet(t *testing.T) {
	certain, settled := 0, 0
	for seed := range uint64(40) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 5))
			loads := map[ring.GatewayID]int{}
			for i := range 2 + rnd.IntN(3) {
				loads[ring.GatewayID(rune('A'+i))] = rnd.IntN(8)
			}
			up := slices.Sorted(maps.Keys(loads))
			var plan []placement.Step
			for k := range 6 {
				i := rnd.IntN(len(up))
				switch rnd.IntN(7) {
				case 0, 1:
					if len(up) < 2 {
						continue
					}
					if rnd.IntN(3) == 0 {
						plan = append(plan, placement.Crash{up[i]})
					} else {
						plan = append(plan, placement.Stop{up[i]})
					}
					up = slices.Delete(up, i, i+1)
				case 2:
					up = append(up, ring.GatewayID(fmt.Sprint("J", k)))
					plan = append(plan, placement.Join{up[len(up)-1]})
				case 3:
					plan = append(plan, placement.Arrive{Count: rnd.IntN(9)})
				case 4:
					plan = append(plan, placement.Arrive{Count: 3}, placement.Leave{Count: rnd.IntN(4)})
				default:
					plan = append(plan, placement.Settle{Budget: rnd.IntN(4)})
					settled++
				}
			}
			if foretold(t, newWorld(t, seed, loads), plan...) {
				certain++
			}
		})
	}
	require.Greater(t, certain, 10, "no plan is foretold by name")
	require.Greater(t, settled, 20)
}

// Whatever a fleet looks like, a settle on all gateways at once leaves each with as many as
// was foretold, with and without a budget. If nobody is refused, it is the same supervisors that move, for all come from nowhere.
func TestSettlesAgainstTheFleet(t *testing.T) {
	for seed := range uint64(80) {
		rnd := rand.New(rand.NewPCG(seed, 6))
		loads := map[ring.GatewayID]int{}
		for i := range 2 + rnd.IntN(5) {
			loads[ring.GatewayID(rune('A'+i))] = rnd.IntN(1 + rnd.IntN(20))
		}
		w := newWorld(t, seed, loads)
		if seed%2 == 0 {
			w.interval = settle.DefaultInterval
		}
		for _, s := range []placement.Settle{{Budget: rnd.IntN(2) * rnd.IntN(5)}, {}} {
			anew := w.hops() > 0
			p, err := placement.Predict(w.view(), w.who(), s)
			require.NoError(t, err)
			w.do(s)
			settledAlike(t, w, s, p.Before, p.After())
			if !anew && w.interval >= unhurried {
				require.Equal(t, p.Movers, w.movers(), "seed %d\n%s", seed, p)
			}
		}
		require.LessOrEqual(t, w.Spread(), 1, "seed %d", seed)
	}
}
