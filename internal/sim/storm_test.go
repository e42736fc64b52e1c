// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/internal/sim"
	"github.com/evenring/evenring/ring"
)

// TestS43 lets 10 000 supervisors lose their gateway at the same instant. They
// may not come back in step: in no 100 ms may more than 5 % of them reach
// gateways, counting every dial, those that follow a redirect too. And
// everybody must be attached again within a minute.
func TestS43(t *testing.T) {
	for _, c := range []struct {
		name     string
		gateways int
		noAsks   bool
		lost     func(w *sim.World, g *sim.Gateway)
	}{
		{"crash", 4, false, func(_ *sim.World, g *sim.Gateway) { g.Kill() }},
		{"crash, without a peer link", 4, true, func(_ *sim.World, g *sim.Gateway) { g.Kill() }},
		{"crash, and the Service does not know for a while", 4, false, func(w *sim.World, g *sim.Gateway) {
			g.Kill()
			g.InService = true
			w.After(5*time.Second, func() { g.InService = false })
		}},
		{"stop without a drain", 4, false, func(_ *sim.World, g *sim.Gateway) { g.Stop() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(storms) {
				storm(t, sim.Config{Seed: seed, NoAsks: c.noAsks}, c.gateways, c.lost)
			}
		})
	}
}

func storm(t *testing.T, cfg sim.Config, gateways int, lost func(*sim.World, *sim.Gateway)) {
	const fleet, window = 10_000, 100 * time.Millisecond
	w := sim.New(cfg)
	for i := range gateways {
		w.StartGateway(ring.GatewayID("ABCD"[i : i+1]))
	}
	w.Run(time.Second)
	a := w.Gateways["A"]
	for i := range fleet {
		m := ring.MemberID(fmt.Sprint("s", i))
		w.After(time.Duration(i)*time.Second/fleet, func() { w.StartAt(m, a) })
	}
	w.Run(time.Minute)
	require.Equal(t, fleet, w.Served()["A"], "seed %d", cfg.Seed)

	begin := w.Elapsed()
	var arrivals []time.Duration // since the loss, in order
	w.Reached = func(*sim.Gateway) { arrivals = append(arrivals, w.Elapsed()-begin) }
	lost(w, a)
	for !w.Settled() && w.Elapsed() < begin+time.Minute {
		w.Run(window)
	}
	took := w.Elapsed() - begin
	require.True(t, w.Settled(), "seed %d: not all are attached again after %v: %v", cfg.Seed, took, w.Served())

	worst, at := 0, time.Duration(0)
	for first, last := 0, 0; last < len(arrivals); last++ {
		for arrivals[last]-arrivals[first] >= window {
			first++
		}
		if n := last - first + 1; n > worst {
			worst, at = n, arrivals[first]
		}
	}
	t.Logf("seed %d: %d dials reach gateways, at most %d (%.2f %%) within %v, %v after the loss; all are attached after %v, spread %d",
		cfg.Seed, len(arrivals), worst, 100*float64(worst)/fleet, window, at, took, w.Spread())
	require.LessOrEqual(t, worst, fleet*5/100, "seed %d: arrivals within %v, %v after the loss", cfg.Seed, window, at)
	require.LessOrEqual(t, w.Spread(), 1+fleet/100, "seed %d: %v", cfg.Seed, w.Served())
}
