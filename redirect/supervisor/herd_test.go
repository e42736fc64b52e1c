// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
)

// TestS43 lets 1000 supervisors lose one gateway at the same instant, which
// dies in different ways: nowhere may they arrive in step.
func TestS43(t *testing.T) {
	const fleet, window = 1000, 100 * time.Millisecond
	for _, test := range []struct {
		name     string
		endpoint string
		tries    int
		silent   func(try int) bool // home lets this dial hang; else it refuses it
	}{
		{"refuses", "a", 2, func(int) bool { return false }},
		{"silent", "a", 2, func(int) bool { return true }},
		{"refuses then silent", "a", 2, func(try int) bool { return try > 1 }},
		{"one try", "a", 1, func(int) bool { return false }},
		{"four tries", "a", 4, func(int) bool { return false }},
		{"no endpoint", "", 2, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			for seed := range uint64(5) {
				rnd := rand.New(rand.NewPCG(seed, 43))
				var arrivals []time.Duration
				for range fleet {
					arrivals = append(arrivals, loseHome(t, rnd, test.endpoint, test.tries, test.silent))
				}
				slices.Sort(arrivals)
				require.LessOrEqual(t, arrivals[fleet-1], 5*time.Second, "seed %d: patience is over", seed)
				worst := 0
				for first, last := 0, 0; last < fleet; last++ {
					for arrivals[last]-arrivals[first] >= window {
						first++
					}
					worst = max(worst, last-first+1)
				}
				require.LessOrEqual(t, worst, fleet*5/100, "seed %d: arrivals within %v", seed, window)
			}
		})
	}
}

// loseHome returns how long after the loss of its home a supervisor dials the Service.
func loseHome(t *testing.T, rnd *rand.Rand, endpoint string, tries int, silent func(int) bool) time.Duration {
	m, err := New(Config{Member: "s", Service: serviceAddr, HomeTries: tries, Jitter: rnd.Float64})
	require.NoError(t, err)
	now := epoch
	m.Step(now, Start{})
	m.Step(now, Answered{1, redirect.Verdict{Outcome: redirect.Accept, Gateway: "A", Endpoint: endpoint, Incarnation: 1}})
	now = now.Add(time.Hour)
	lost := now
	actions := m.Step(now, Lost{1})
	for try := 1; ; {
		if dialled(actions, serviceAddr) != 0 {
			return now.Sub(lost)
		}
		if generation := dialled(actions, endpoint); generation != 0 {
			refused := !silent(try)
			try++
			if refused {
				actions = m.Step(now, Failed{Generation: generation})
				continue
			}
		}
		at, ok := m.Deadline()
		require.True(t, ok)
		now = at
		actions = m.Step(now, Tick{})
	}
}

// dialled returns the generation of the dial to addr among the actions, or 0.
func dialled(actions []Action, addr string) placement.Generation {
	for _, action := range actions {
		if d, ok := action.(Dial); ok && d.Addr == addr {
			return d.Hello.Generation
		}
	}
	return 0
}
