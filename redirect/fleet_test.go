// SPDX-License-Identifier: Apache-2.0

package redirect_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/internal/sim"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// seeds returns how many seeds to run: n, a tenth under the race detector, or what EVENRING_SEEDS says.
func seeds(t *testing.T, n uint64) uint64 {
	t.Helper()
	if text := os.Getenv("EVENRING_SEEDS"); text != "" {
		more, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "EVENRING_SEEDS")
		return more
	}
	return max(1, n/seedsDivisor)
}

// burst starts the gateways, lets them meet, and starts all supervisors at
// once. Mute: from then on counts travel with questions and answers alone.
func burst(t *testing.T, cfg sim.Config, mute bool, gateways, supervisors int) *sim.World {
	t.Helper()
	w := sim.New(cfg)
	for i := range gateways {
		w.StartGateway(ring.GatewayID(fmt.Sprint("gw-", i)))
	}
	w.Run(time.Second)
	w.Mute = mute
	for i := range supervisors {
		w.StartSupervisor(ring.MemberID(fmt.Sprint("s", i)))
	}
	require.True(t, w.Until(time.Minute, w.Settled), "seed %d: not settled", cfg.Seed)
	return w
}

// Everybody arrives at once, and counts travel with questions and answers
// alone: still even.
func TestBurstWithAsks(t *testing.T) {
	for _, c := range []struct {
		gateways, supervisors int
		spread                int
		seeds                 uint64
	}{{2, 2, 0, 500}, {3, 12, 0, 300}, {3, 13, 1, 300}, {5, 500, 0, 10}, {16, 3000, 2, 2}, {16, 100, 1, 20}} {
		t.Run(fmt.Sprintf("%d on %d", c.supervisors, c.gateways), func(t *testing.T) {
			for seed := range seeds(t, c.seeds) {
				w := burst(t, sim.Config{Seed: seed}, true, c.gateways, c.supervisors)
				require.LessOrEqual(t, w.Spread(), c.spread, "seed %d: %v", seed, w.Served())
				for m, s := range w.Supervisors {
					require.LessOrEqual(t, s.Dials, 3, "seed %d: %s", seed, m)
				}
			}
		})
	}
}

// S7: two gateways, two supervisors, both restart, in any order and timing,
// with the gateways' view fresh, stale or without a peer link -> 1/1 every time.
func TestTwoOnTwoS7(t *testing.T) {
	for seed := range seeds(t, 600) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		w := burst(t, sim.Config{Seed: seed, NoAsks: seed%3 == 1}, seed%3 == 2, 2, 2)
		require.Equal(t, 0, w.Spread(), "seed %d, start: %v", seed, w.Served())
		for round := range 3 {
			for _, m := range w.MemberIDs() {
				w.Supervisors[m].Kill()
				w.Run(time.Duration(rnd.IntN(100)) * time.Millisecond)
				w.StartSupervisor(m)
				w.Run(time.Duration(rnd.IntN(100)) * time.Millisecond)
			}
			require.True(t, w.Until(time.Minute, w.Settled), "seed %d", seed)
			require.Equal(t, 0, w.Spread(), "seed %d, round %d: %v", seed, round, w.Served())
		}
	}
}

// S13: two gateways place one newcomer each before they hear of each other -> 1/1.
func TestSimultaneousArrivalsS13(t *testing.T) {
	for seed := range seeds(t, 300) {
		w := burst(t, sim.Config{Seed: seed, NoAsks: seed%2 == 1}, false, 2, 2)
		require.Equal(t, 0, w.Spread(), "seed %d: %v", seed, w.Served())
	}
}

// S28: views that differ, or that are wrong, cost dials and never a loop: at most four a placement.
func TestNoInputLoopsS28(t *testing.T) {
	for seed := range seeds(t, 200) {
		rnd := rand.New(rand.NewPCG(seed, 28))
		w := sim.New(sim.Config{Seed: seed, NoAsks: rnd.IntN(2) == 0})
		n := 2 + rnd.IntN(4)
		for i := range n {
			w.StartGateway(ring.GatewayID(fmt.Sprint("gw-", i)))
			w.Run(time.Duration(rnd.IntN(30)) * time.Millisecond) // some know of each other later
		}
		w.Mute = rnd.IntN(2) == 0
		for i := range 1 + rnd.IntN(20) {
			w.StartSupervisor(ring.MemberID(fmt.Sprint("s", i)))
		}
		require.True(t, w.Until(time.Minute, w.Settled), "seed %d", seed)
		for m, s := range w.Supervisors {
			require.LessOrEqual(t, s.Dials, 4, "seed %d: %s", seed, m)
		}
	}
}

// S14, S31, W7: a gateway dies; those who lost it are never sent back to it, everybody has a
// stream again, and the rest share them evenly.
func TestCrash(t *testing.T) {
	for seed := range seeds(t, 60) {
		rnd := rand.New(rand.NewPCG(seed, 14))
		n := 3 + rnd.IntN(4)
		w := burst(t, sim.Config{Seed: seed}, false, n, n*(1+rnd.IntN(10))+rnd.IntN(n))
		w.Run(time.Second) // every view is fresh
		dead := w.Gateways[w.GatewayIDs()[rnd.IntN(n)]]
		before := map[ring.MemberID]int{}
		for m, s := range w.Supervisors {
			before[m] = s.Redirects[dead.ID]
		}
		dead.Kill()
		w.Run(time.Millisecond)
		require.True(t, w.Until(time.Minute, w.Settled), "seed %d: %v", seed, w.Served())
		require.LessOrEqual(t, w.Spread(), 1, "seed %d: %v", seed, w.Served())
		for m, s := range w.Supervisors {
			require.Equal(t, before[m], s.Redirects[dead.ID], "seed %d: %s was sent to the dead gateway", seed, m)
		}
	}
}

// W9: everybody restarts at once, any number on any number -> even, and each
// back at its home.
func TestRestartAllW9(t *testing.T) {
	for seed := range seeds(t, 60) {
		rnd := rand.New(rand.NewPCG(seed, 9))
		n := 2 + rnd.IntN(4)
		w := burst(t, sim.Config{Seed: seed}, false, n, 1+rnd.IntN(30))
		w.Run(time.Second)
		even := w.Spread() <= 1 // otherwise some had better not go home
		homes := map[ring.MemberID]ring.GatewayID{}
		for m, s := range w.Supervisors {
			homes[m] = s.Machine.Home().Gateway
			s.Kill()
		}
		for _, m := range w.MemberIDs() {
			w.StartSupervisor(m)
		}
		require.True(t, w.Until(time.Minute, w.Settled), "seed %d", seed)
		require.LessOrEqual(t, w.Spread(), 1, "seed %d: %v", seed, w.Served())
		if even {
			for m, s := range w.Supervisors {
				require.Equal(t, homes[m], s.Machine.Home().Gateway, "seed %d: %s", seed, m)
			}
		}
	}
}

// A fleet that a rolling restart without surge has left uneven becomes even,
// or nearly so, when everybody restarts at once.
func TestRestartAllOfAnUnevenFleet(t *testing.T) {
	for _, c := range []struct {
		at    []int
		worst int // spread afterwards
		mean  float64
	}{
		{[]int{2, 0}, 0, 0}, {[]int{4, 0}, 2, 0.1}, {[]int{6, 0, 0}, 4, 1}, {[]int{30, 0, 0}, 4, 0.3}, {[]int{20, 10, 0}, 2, 0.2}, {[]int{15, 15, 0}, 8, 3},
	} {
		t.Run(fmt.Sprint(c.at), func(t *testing.T) {
			total := 0
			n := seeds(t, 100)
			for seed := range n {
				w := sim.New(sim.Config{Seed: seed})
				for i, k := range c.at {
					g := w.StartGateway(ring.GatewayID(fmt.Sprint("gw-", i)))
					w.Run(time.Second)
					for j := range k {
						w.StartAt(ring.MemberID(fmt.Sprintf("s%d-%d", i, j)), g)
					}
				}
				require.True(t, w.Until(time.Minute, w.Settled))
				w.Run(time.Second)
				for _, m := range w.MemberIDs() {
					w.Supervisors[m].Kill()
				}
				for _, m := range w.MemberIDs() {
					w.StartSupervisor(m)
				}
				require.True(t, w.Until(time.Minute, w.Settled))
				require.LessOrEqual(t, w.Spread(), c.worst, "seed %d: %v", seed, w.Served())
				total += w.Spread()
			}
			mean := float64(total) / float64(n)
			t.Logf("mean spread %.2f", mean)
			if n >= 100 { // the mean of a few says little
				require.LessOrEqual(t, mean, c.mean)
			}
		})
	}
}

// Invariant 10: at rest the gauges add up, on every gateway's view.
func TestEveryViewAgreesAtRest(t *testing.T) {
	for seed := range seeds(t, 30) {
		w := burst(t, sim.Config{Seed: seed, NoAsks: seed%2 == 0}, false, 4, 25)
		w.Run(40 * time.Second)
		for id, g := range w.Gateways {
			s := g.Admission.Stats(w.Now())
			require.Equal(t, 25, s.Live, "seed %d: %s", seed, id)
			require.Equal(t, 7, s.Cap)
			require.Zero(t, s.Reserved+s.Held)
			for other := range g.Admission.Roster().Gateways() {
				require.Equal(t, w.Served()[other.ID], other.Attached, "seed %d: %s of %s", seed, id, other.ID)
			}
		}
	}
}

// A gateway that cannot be dialled serves who comes to it, and nobody is sent to it.
func TestNoEndpointS33(t *testing.T) {
	w := sim.New(sim.Config{Gateway: func(c *redirect.Config) {
		if c.Gateway == "B" {
			c.Endpoint = ""
		}
	}})
	w.StartGateway("A")
	b := w.StartGateway("B")
	w.Run(time.Second)
	for i := range 20 {
		w.StartSupervisor(ring.MemberID(fmt.Sprint("s", i)))
	}
	require.True(t, w.Until(time.Minute, w.Settled))
	for m, s := range w.Supervisors {
		require.Zero(t, s.Redirects["B"], m)
	}
	require.NotEmpty(t, b.Admission.Supervisors())
}
