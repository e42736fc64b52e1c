// SPDX-License-Identifier: Apache-2.0

package redirectws

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/handoff"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/session"
	"github.com/evenring/evenring/redirect/supervisor"
	"github.com/evenring/evenring/ring"
)

// Supervisors and their sessions, on three gateways: one of the three drains, and nobody is
// without a stream at any time; each session ends where its supervisor is.
func TestDrainLeavesNoGap(t *testing.T) {
	const supervisors = 6
	f := newCallFleet(t)
	for range 3 {
		f.add()
	}
	var gaps atomic.Int32
	connected := func(up bool, _ time.Time) {
		if !up && t.Context().Err() == nil {
			gaps.Add(1)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() { stop(); running.Wait() })
	homes := make([]*supervisor.Homes, supervisors)
	var at [supervisors]atomic.Value // where the session is
	for i := range supervisors {
		homes[i] = new(supervisor.Homes)
		m := ring.MemberID(fmt.Sprint("s", i))
		running.Go(func() {
			cfg := supervisor.Config{Member: m, Service: "service"}
			_ = supervisor.Run(ctx, cfg, serviceTransport{plain, f}, supervisor.Hooks{Home: homes[i].Set, Connected: connected})
		})
		running.Go(func() {
			cfg := session.Config{Session: "x", Member: m, Service: "service", Debounce: time.Millisecond, Pace: 50 * time.Millisecond}
			_ = session.Run(ctx, cfg, serviceTransport{plain, f}, homes[i], session.Hooks{
				Stream:    func(_ redirect.Stream, gateway ring.GatewayID) { at[i].Store(gateway) },
				Connected: connected,
			})
		})
	}
	home := func(i int) ring.GatewayID { h, _ := homes[i].Home(); return h.Gateway }
	together := func() bool {
		for i := range supervisors {
			if g := home(i); g == "" || at[i].Load() != g {
				return false
			}
		}
		return true
	}
	eventually(t, together)
	for i := range supervisors {
		for _, g := range f.serving {
			eventually(t, func() bool {
				where := g.knows(ring.MemberID(fmt.Sprint("s", i)))
				return where == roster.Here || where == roster.Elsewhere
			})
		}
	}
	gaps.Store(0)

	old := f.serving[0]
	require.Equal(t, supervisors/3, old.Stats().Served)
	report, err := handoff.Drain(t.Context(), old.Gateway, quick, handoff.Hooks{})
	require.NoError(t, err)
	require.Empty(t, report.Left, "%+v", report)
	eventually(t, func() bool {
		for i := range supervisors {
			if home(i) == old.ID() {
				return false
			}
		}
		return together()
	})
	require.Zero(t, gaps.Load())
	require.Equal(t, supervisors, f.serving[1].Stats().Served+f.serving[2].Stats().Served)
	require.Equal(t, f.serving[1].Stats().Served, f.serving[2].Stats().Served)
	eventually(t, func() bool { return old.Stats().Sessions+old.Stats().Served == 0 })
	f.remove(old)
	require.Zero(t, gaps.Load())
}
