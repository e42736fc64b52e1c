// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/handoff"
	"github.com/evenring/evenring/internal/sim"
	"github.com/evenring/evenring/ring"
)

// story runs a fleet through a burst, a drain, a crash and a restart, and
// returns everything that was traced.
func story(t *testing.T, cfg sim.Config) string {
	t.Helper()
	var b strings.Builder
	w := sim.New(cfg)
	w.Trace = func(at time.Duration, who, what string) { fmt.Fprintln(&b, at, who, what) }
	for _, id := range []ring.GatewayID{"A", "B", "C"} {
		w.StartGateway(id)
	}
	w.Run(time.Second)
	for i := range 20 {
		w.StartSupervisor(ring.MemberID(fmt.Sprint("s", i)))
	}
	w.Run(300 * time.Millisecond)
	require.NoError(t, w.Gateways["A"].Drain(handoff.Config{}))
	w.Run(30 * time.Second)
	w.StartGateway("A")
	w.Gateways["B"].Kill()
	w.Supervisors["s3"].Kill()
	w.StartSupervisor("s3")
	w.Supervisors["s4"].Stop()
	require.True(t, w.Until(time.Minute, w.Settled), "seed %d", cfg.Seed)
	fmt.Fprintln(&b, w.Served())
	return b.String()
}

func TestOneSeedOneStory(t *testing.T) {
	for seed := range uint64(10) {
		cfg := sim.Config{Seed: seed, NoAsks: seed%2 == 1}
		require.Equal(t, story(t, cfg), story(t, cfg), "seed %d", seed)
	}
	require.NotEqual(t, story(t, sim.Config{Seed: 1}), story(t, sim.Config{Seed: 3}), "another seed is another story")
}
