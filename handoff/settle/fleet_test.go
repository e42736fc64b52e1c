// SPDX-License-Identifier: Apache-2.0

package settle_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/handoff"
	"github.com/evenring/evenring/handoff/settle"
	"github.com/evenring/evenring/internal/sim"
	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// seeds returns how many seeds to run: n, or what EVENRING_SEEDS says.
func seeds(t testing.TB, n uint64) uint64 {
	t.Helper()
	if text := os.Getenv("EVENRING_SEEDS"); text != "" {
		m, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "EVENRING_SEEDS")
		return m
	}
	return n
}

// fleet is a simulated fleet: gateways that serve so many supervisors.
type fleet struct {
	*sim.World
	t    testing.TB
	next int
}

func newFleet(t testing.TB, cfg sim.Config, loads ...int) *fleet {
	t.Helper()
	f := &fleet{World: sim.New(cfg), t: t}
	if os.Getenv("EVENRING_TRACE") != "" {
		f.Trace = func(at time.Duration, who, what string) { t.Log(at, who, what) }
	}
	for i := range loads {
		f.StartGateway(ring.GatewayID(rune('A' + i)))
	}
	f.Run(time.Second)
	for i, n := range loads {
		for range n {
			f.next++
			f.StartAt(ring.MemberID(fmt.Sprintf("s%04d", f.next)), f.Gateways[ring.GatewayID(rune('A'+i))])
		}
	}
	require.True(t, f.Until(time.Minute, f.Settled))
	f.Run(time.Second)
	f.requireServed(loads...)
	return f
}

func (f *fleet) requireServed(loads ...int) {
	f.t.Helper()
	require.Equal(f.t, loads, f.loads())
}

func (f *fleet) loads() []int {
	var loads []int
	served := f.Served()
	for _, id := range f.GatewayIDs() {
		if f.Gateways[id].Alive {
			loads = append(loads, served[id])
		}
	}
	return loads
}

// settle settles every live gateway, each beginning within spread of now, and returns
// the reports in ID order.
func (f *fleet) settle(rnd *rand.Rand, spread time.Duration, cfg settle.Config) []settle.Report {
	f.t.Helper()
	var all []*sim.Settlement
	ids := f.GatewayIDs()
	begun := 0
	for _, id := range ids {
		g := f.Gateways[id]
		if !g.Alive {
			continue
		}
		begun++
		after := time.Duration(0)
		if spread > 0 {
			after = time.Duration(rnd.Int64N(int64(spread)))
		}
		f.After(after, func() {
			s, err := g.Settle(cfg)
			require.NoError(f.t, err)
			all = append(all, s)
		})
	}
	over := f.Until(10*time.Minute, func() bool {
		for _, s := range all {
			if s.Report == nil {
				return false
			}
		}
		return len(all) == begun
	})
	require.True(f.t, over, "the settle does not end")
	var reports []settle.Report
	for _, s := range all {
		reports = append(reports, *s.Report)
	}
	require.True(f.t, f.Until(time.Minute, f.Settled))
	return reports
}

func moved(reports []settle.Report) (n int) {
	for _, r := range reports {
		n += len(r.Moved)
	}
	return n
}

// Whatever a fleet looks like, all its gateways together make as few moves as
// a plan with every count before it, each supervisor moves once at most, and
// make before break holds; then there is nothing left to do.
func TestSettleEvensOutAnyFleet(t *testing.T) {
	for seed := range seeds(t, 60) {
		rnd := rand.New(rand.NewPCG(seed, 16))
		loads := make([]int, 1+rnd.IntN(6))
		for i := range loads {
			loads[i] = rnd.IntN(1 + rnd.IntN(40))
		}
		f := newFleet(t, sim.Config{Seed: seed}, loads...)
		want := placement.NewView(placement.Picture{Gateways: f.Gateways["A"].Admission.Sight(f.Now()).Gateways}).Balance()
		spread := time.Duration(rnd.IntN(2)) * time.Duration(1+rnd.Int64N(int64(20*time.Second)))
		reports := f.settle(rnd, spread, settle.Config{InFlight: 1 + rnd.IntN(12)})
		require.LessOrEqual(t, f.Spread(), 1, "seed %d: %v became %v", seed, loads, f.loads())
		require.Equal(t, want.Moves, moved(reports), "seed %d: %v became %v", seed, loads, f.loads())
		for m, s := range f.Supervisors {
			require.LessOrEqual(t, s.Moves, 1, "seed %d: %s", seed, m)
			require.Zero(t, s.Gap, "seed %d: %s", seed, m)
		}
		for _, r := range reports {
			require.Equal(t, settle.Even, r.Ending, "seed %d: %+v", seed, r)
			require.Empty(t, r.Failed, "seed %d", seed)
		}
		after := f.loads()
		require.Zero(t, moved(f.settle(rnd, spread, settle.Config{})), "seed %d: a second one", seed)
		for range 100 {
			f.Run(time.Second)
		}
		require.Equal(t, after, f.loads(), "seed %d", seed)
	}
}

// Of several that may give one more, the first do. Who comes after them does not wait in vain: if the first do not settle, or
// gateways settle one after the other, the fleet is even all the same, with as few moves.
func TestWhoGivesOneMore(t *testing.T) {
	for _, c := range []struct {
		name  string
		loads []int
		order []string // who settles, at once; then who settles after that, and so on
		want  []int
	}{
		{"all at once", []int{4, 4, 4, 1}, []string{"ABCD"}, []int{3, 3, 4, 3}},
		{"all at once, and others have more", []int{4, 6, 4, 0}, []string{"ABCD"}, []int{3, 4, 4, 3}},
		{"without the first", []int{4, 4, 4, 1}, []string{"BCD"}, []int{4, 3, 3, 3}},
		{"without the first two", []int{4, 4, 4, 2}, []string{"CD"}, []int{4, 4, 3, 3}},
		{"one after the other", []int{4, 6, 4, 0}, []string{"A", "B", "C", "D"}, []int{4, 3, 4, 3}},
		{"one after the other, the last first", []int{4, 4, 4, 1}, []string{"D", "C", "B", "A"}, []int{4, 3, 3, 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(5) {
				f := newFleet(t, sim.Config{Seed: seed}, c.loads...)
				for _, ids := range c.order {
					var all []*sim.Settlement
					for _, id := range ids {
						s, err := f.Gateways[ring.GatewayID(id)].Settle(settle.Config{})
						require.NoError(t, err)
						all = append(all, s)
					}
					require.True(t, f.Until(time.Minute, func() bool {
						return !slices.ContainsFunc(all, func(s *sim.Settlement) bool { return s.Report == nil })
					}), "seed %d", seed)
					require.True(t, f.Until(time.Minute, f.Settled))
				}
				f.requireServed(c.want...)
			}
		})
	}
}

// A settle waits until the fleet is stable, and says what was wrong if it does
// not become so.
func TestWaitsForStability(t *testing.T) {
	f := newFleet(t, sim.Config{Seed: 5}, 6, 0)
	began := f.Now()
	s, err := f.Gateways["A"].Settle(settle.Config{})
	require.NoError(t, err)
	_, err = f.Gateways["A"].Settle(settle.Config{})
	require.ErrorIs(t, err, redirect.ErrSettling)
	for i := range 3 {
		f.Run(8 * time.Second)
		f.StartGateway(ring.GatewayID(fmt.Sprint("new-", i)))
	}
	require.Zero(t, s.Orders, "there was always somebody who joined")
	require.True(t, f.Until(time.Minute, func() bool { return s.Report != nil }))
	require.Equal(t, settle.Even, s.Report.Ending)
	require.Greater(t, f.Now().Sub(began), 34*time.Second)
	require.Equal(t, []int{2, 1, 1, 1, 1}, f.loads())

	f = newFleet(t, sim.Config{Seed: 5}, 6, 0, 0)
	s, err = f.Gateways["A"].Settle(settle.Config{})
	require.NoError(t, err)
	require.NoError(t, f.Gateways["C"].Drain(handoff.Config{Propagation: 2 * time.Minute, KillAfter: time.Hour}))
	require.True(t, f.Until(2*time.Minute, func() bool { return s.Report != nil }))
	require.Equal(t, settle.Unstable, s.Report.Ending)
	require.Equal(t, `gateway "C" is draining`, s.Report.Unrest)
	require.Empty(t, s.Orders)
}

// A drain wins: it ends a settle, and none begins during one.
func TestDrainEndsASettle(t *testing.T) {
	f := newFleet(t, sim.Config{Seed: 6}, 400, 0)
	s, err := f.Gateways["A"].Settle(settle.Config{})
	require.NoError(t, err)
	require.True(t, f.Until(time.Minute, func() bool { return len(s.Orders) == 50 }))
	require.NoError(t, f.Gateways["A"].Drain(handoff.Config{}))
	_, err = f.Gateways["A"].Settle(settle.Config{})
	require.ErrorIs(t, err, redirect.ErrDraining)
	require.True(t, f.Until(time.Second, func() bool { return s.Report != nil }))
	require.Equal(t, settle.Draining, s.Report.Ending)
	require.True(t, f.Until(2*time.Minute, func() bool { return !f.Gateways["A"].Alive }))
	require.True(t, f.Until(time.Minute, f.Settled))
	f.requireServed(400)
	for m, sup := range f.Supervisors {
		require.Equal(t, 1, sup.Moves, "%s", m)
		require.Zero(t, sup.Gap, "%s", m)
	}
}

// While a fleet settles, supervisors come, go and crash, and a gateway crashes. The settle
// ends, nobody is told twice, nobody is lost, and once it is quiet another one finds what is left.
func TestSettleAmongChurn(t *testing.T) {
	for seed := range seeds(t, 20) {
		rnd := rand.New(rand.NewPCG(seed, 21))
		f := newFleet(t, sim.Config{Seed: seed}, 30+rnd.IntN(60), rnd.IntN(20), rnd.IntN(20), 10)
		var all []*sim.Settlement
		for _, id := range f.GatewayIDs() {
			s, err := f.Gateways[id].Settle(settle.Config{Interval: 100 * time.Millisecond, InFlight: 3})
			require.NoError(t, err)
			all = append(all, s)
		}
		for range 40 {
			f.After(time.Duration(rnd.Int64N(int64(30*time.Second))), func() {
				members := f.MemberIDs()
				one := f.Supervisors[members[rnd.IntN(len(members))]]
				switch rnd.IntN(4) {
				case 0:
					one.Kill()
					f.StartSupervisor(one.Member)
				case 1:
					f.next++
					f.StartSupervisor(ring.MemberID(fmt.Sprintf("s%04d", f.next)))
				case 2:
					one.Stop()
				}
			})
		}
		if seed%2 == 1 {
			f.After(11*time.Second, f.Gateways["D"].Kill)
			all = all[:3]
		}
		over := f.Until(10*time.Minute, func() bool {
			for _, s := range all {
				if s.Report == nil {
					return false
				}
			}
			return true
		})
		require.True(t, over, "seed %d: it does not end", seed)
		for _, s := range all {
			told := map[ring.MemberID]bool{}
			for _, m := range s.Report.Moved {
				require.False(t, told[m.Member], "seed %d", seed)
				told[m.Member] = true
			}
			for _, m := range s.Report.Failed {
				require.False(t, told[m.Member], "seed %d", seed)
				told[m.Member] = true
			}
		}
		require.True(t, f.Until(2*time.Minute, f.Settled), "seed %d", seed)
		f.Run(time.Minute)
		f.settle(rnd, 0, settle.Config{})
		require.LessOrEqual(t, f.Spread(), 1, "seed %d: %v", seed, f.loads())
	}
}
