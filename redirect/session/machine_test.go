// SPDX-License-Identifier: Apache-2.0

package session

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/supervisor"
)

// TestS65Paced moves the 200 sessions of one supervisor: all of them, none
// before the debounce, and never many at once.
func TestS65Paced(t *testing.T) {
	const sessions, window = 200, 100 * time.Millisecond
	for seed := range uint64(5) {
		rnd := rand.New(rand.NewPCG(seed, 65))
		var arrivals []time.Duration
		for range sessions {
			m, err := New(Config{Session: "c", Member: "s", Service: serviceAddr, Jitter: rnd.Float64})
			require.NoError(t, err)
			m.Step(epoch, HomeChanged{supervisor.Home{Gateway: "A", Endpoint: "a", Incarnation: 1}})
			m.Step(epoch, Start{})
			m.Step(epoch, Answered{1, redirect.Verdict{Outcome: redirect.Accept, Gateway: "A", Incarnation: 1}})
			require.True(t, m.AtHome())
			moved := epoch.Add(time.Hour)
			require.Empty(t, m.Step(moved, HomeChanged{supervisor.Home{Gateway: "B", Endpoint: "b", Incarnation: 1}}))
			at, ok := m.Deadline()
			require.True(t, ok)
			actions := m.Step(at, Tick{})
			require.Len(t, actions, 1)
			require.Equal(t, "b", actions[0].(Dial).Addr)
			require.Equal(t, supervisor.Moving, m.State(), "the old stream works meanwhile")
			arrivals = append(arrivals, at.Sub(moved))
		}
		slices.Sort(arrivals)
		require.GreaterOrEqual(t, arrivals[0], 200*time.Millisecond)
		require.LessOrEqual(t, arrivals[sessions-1], 1200*time.Millisecond)
		worst := 0
		for first, last := 0, 0; last < sessions; last++ {
			for arrivals[last]-arrivals[first] >= window {
				first++
			}
			worst = max(worst, last-first+1)
		}
		require.Less(t, worst, sessions/4, "seed %d: arrivals within %v", seed, window)
	}
}

func TestConfigValidate(t *testing.T) {
	valid := Config{Session: "c", Member: "s", Service: serviceAddr}
	require.NoError(t, valid.Validate())
	for _, test := range []struct {
		name   string
		change func(*Config)
		faults []string
	}{
		{"zero", func(c *Config) { *c = Config{} }, []string{"Config.Session", "Config.Member", "Config.Service"}},
		{"generation", func(c *Config) { c.Generation = generationLimit }, []string{"Config.Generation"}},
		{"hops", func(c *Config) { c.MaxHops = -1 }, []string{"Config.MaxHops"}},
		{"times", func(c *Config) { c.HomeWait, c.Debounce, c.Pace, c.DialTimeout = -1, -1, -1, -1 },
			[]string{"Config.HomeWait", "Config.Debounce", "Config.Pace", "Config.DialTimeout"}},
		{"backoff", func(c *Config) { c.BackoffMin = time.Hour }, []string{"Config.BackoffMax is 30s", "1h0m0s"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := valid
			test.change(&cfg)
			m, err := New(cfg)
			require.Nil(t, m)
			require.Equal(t, cfg.Validate(), err)
			for _, fault := range test.faults {
				require.ErrorContains(t, err, fault)
			}
		})
	}
}

func TestConfigDefaults(t *testing.T) {
	m, err := New(Config{Session: "c", Member: "s", Service: serviceAddr})
	require.NoError(t, err)
	require.Equal(t, Config{
		Session: "c", Member: "s", Service: serviceAddr, Generation: 1,
		HomeWait: 5 * time.Second, Debounce: 200 * time.Millisecond, Pace: time.Second,
		BackoffMin: time.Second, BackoffMax: 30 * time.Second,
		DialTimeout: 10 * time.Second, MaxHops: 2,
	}, m.cfg)
}
