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
}

// newWorld starts gateways with so many supervisors each, named as Predict would.
func newWorld(t *testing.T, seed uint64, loads map[ring.GatewayID]int) *world {
	w := &world{World: sim.New(sim.Config{Seed: seed}), t: t}
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

// view is the fleet as one of the gateways sees it.
func (w *world) view() *placement.View {
	for _, id := range w.GatewayIDs() {
		if g := w.Gateways[id]; g.Alive {
			r := g.Admission.Roster()
			return placement.NewView(placement.Picture{Self: id, Ring: r.Ring(), Gateways: slices.Collect(r.Gateways()), Live: r.Live(), Asking: true})
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
	default:
		require.Fail(w.t, "the machines have no such step", "%T", s)
	}
	w.rest()
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

// alive leaves the dead out. Of two gateways the one that is left does not purge
// the other: it could be the one that is cut off.
func (w *world) alive(served map[ring.GatewayID]int) map[ring.GatewayID]int {
	all := maps.Clone(served)
	maps.DeleteFunc(all, func(id ring.GatewayID, n int) bool { return n == 0 && !w.Gateways[id].Alive })
	return all
}

func sizes(served map[ring.GatewayID]int) []int { return slices.Sorted(maps.Values(served)) }

// foretold runs the plan on paper and on the machines, which must end each step
// with the same count at each gateway. Those who lose a gateway to a crash come
// back in an order of their own, which decides who gets the odd ones: an even fleet has
// the same counts after that, whosever they are, and what follows is foretold anew.
func foretold(t *testing.T, w *world, plan ...placement.Step) {
	t.Helper()
	for len(plan) > 0 {
		n := 1 + slices.IndexFunc(plan, func(s placement.Step) bool { _, crash := s.(placement.Crash); return crash })
		if n == 0 {
			n = len(plan)
		}
		part := plan[:n]
		plan = slices.Clone(plan[n:])
		if crash, ok := part[len(part)-1].(placement.Crash); ok { // by then the fleet has forgotten it
			for i, s := range plan {
				if start, ok := s.(placement.Start); ok && slices.Equal(start, placement.Start(crash)) {
					plan[i] = placement.Join(start)
				}
			}
		}
		w.named, w.arrived = w.who(), 0
		p, err := placement.Predict(w.view(), w.named, part...)
		require.NoError(t, err)
		require.Equal(t, w.Served(), w.alive(p.Before.Served))
		before := p.Before
		for i, s := range part {
			w.do(s)
			want, got := w.alive(p.Steps[i].Served), w.Served()
			switch _, crash := s.(placement.Crash); {
			case !crash:
				require.Equal(t, want, got, "step %d of\n%s", i+1, p)
			case before.Balance.Even():
				require.Equal(t, sizes(want), sizes(got), "step %d of\n%s", i+1, p)
			default:
				require.Len(t, got, len(want))
			}
			before = p.Steps[i]
		}
	}
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
				switch rnd.IntN(5) {
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
				default:
					plan = append(plan, placement.Arrive{Count: 3}, placement.Leave{Count: rnd.IntN(4)})
				}
			}
			foretold(t, newWorld(t, seed, loads), plan...)
		})
	}
}
