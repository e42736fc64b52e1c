// SPDX-License-Identifier: Apache-2.0

package handoff

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPlanDefaults(t *testing.T) {
	plan, err := Config{}.Plan()
	require.NoError(t, err)
	require.Equal(t, Plan{
		Propagation: 3 * second, Window: 10 * second, Confirm: 10 * second, Margin: second, KillAfter: 30 * second,
	}, plan)
	require.Equal(t, 23*second, plan.Deadline())
	require.Equal(t, 24*second, plan.Total())
}

func TestS46(t *testing.T) {
	tooLong := Config{Window: 120 * second, KillAfter: 60 * second}

	t.Run("error with the numbers", func(t *testing.T) {
		_, err := New(tooLong)
		require.EqualError(t, err,
			"handoff: the plan does not fit: Propagation 3s + Window 2m0s + Confirm 10s + Margin 1s is more than KillAfter 1m0s")
	})
	t.Run("shrunk with a margin", func(t *testing.T) {
		cfg := tooLong
		cfg.Shrink = true
		plan, err := cfg.Plan()
		require.NoError(t, err)
		require.Equal(t, 3*second, plan.Propagation)
		require.Equal(t, second, plan.Margin)
		require.InDelta(t, 56*120/130., plan.Window.Seconds(), 1e-6)
		require.InDelta(t, 56*10/130., plan.Confirm.Seconds(), 1e-6)
		require.LessOrEqual(t, plan.Total(), 60*second)
	})
	t.Run("nothing unlisted", func(t *testing.T) {
		cfg := tooLong
		cfg.Shrink = true
		m := run(t, cfg, []timed{{0, Begin{[]Member{{"a", true}, {"b", true}, {"old", false}}}}, {3 * second, Tick{}}})
		require.Len(t, m.Step(at(59*second), Tick{}), 3)
		report := finished(t, m.Step(at(60*second), Tick{}))
		require.Equal(t, []LeftBehind{{"a", Nowhere}, {"b", NotAsked}, {"old", Immovable}}, report.Left)
		require.Equal(t, 3, report.Served())
	})
	t.Run("one that fits is kept, asked to shrink or not", func(t *testing.T) {
		want, err := Config{}.Plan()
		require.NoError(t, err)
		got, err := Config{Shrink: true}.Plan()
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
	t.Run("exactly fits", func(t *testing.T) {
		_, err := Config{KillAfter: 24 * second}.Plan()
		require.NoError(t, err)
		_, err = Config{KillAfter: 24*second - 1}.Plan()
		require.Error(t, err)
	})
}

func TestValidateNamesEveryFault(t *testing.T) {
	err := Config{
		Propagation: -1, Window: -1, Confirm: -1, Margin: -1, KillAfter: -1, OrderTimeout: -1, RetryPause: -1, Linger: -1, InFlight: -1,
	}.Validate()
	for _, field := range []string{
		"Propagation", "Window", "Confirm", "Margin", "KillAfter", "OrderTimeout", "RetryPause", "Linger", "InFlight",
	} {
		require.ErrorContains(t, err, "Config."+field+" is -1")
	}
	_, err = New(Config{Window: -1, Shrink: true})
	require.ErrorContains(t, err, "Config.Window is -1ns")
}

func TestSumOfHugePartsDoesNotWrapAround(t *testing.T) {
	huge := time.Duration(math.MaxInt64)
	_, err := Config{Propagation: huge, Window: huge, KillAfter: huge}.Plan()
	require.ErrorContains(t, err, "does not fit")
}

// TestShrunkPlansFit: whatever is asked for, a plan that may shrink fits, and
// no part of it has grown.
func TestShrunkPlansFit(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	duration := func() time.Duration { return 1 + time.Duration(rng.Int64()>>rng.IntN(63)) }
	for range 10_000 {
		cfg := Config{
			Propagation: duration(), Window: duration(), Confirm: duration(), Margin: duration(), KillAfter: duration(),
			Shrink: true,
		}
		plan, err := cfg.Plan()
		require.NoError(t, err)
		require.NoError(t, plan.check(), "%+v", plan)
		for _, part := range [][2]time.Duration{
			{plan.Propagation, cfg.Propagation}, {plan.Window, cfg.Window}, {plan.Confirm, cfg.Confirm}, {plan.Margin, cfg.Margin},
		} {
			require.GreaterOrEqual(t, part[0], time.Duration(0))
			require.LessOrEqual(t, part[0], part[1])
		}
	}
}
