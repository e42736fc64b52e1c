// SPDX-License-Identifier: Apache-2.0

package herd_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/internal/herd"
)

// seeds returns how many seeds to run: n, or what EVENRING_SEEDS says.
func seeds(t *testing.T, n int) int {
	t.Helper()
	if text := os.Getenv("EVENRING_SEEDS"); text != "" {
		more, err := strconv.ParseUint(text, 10, 31)
		require.NoError(t, err, "EVENRING_SEEDS")
		return int(more)
	}
	return n
}

// A whole fleet arrives at once, at any staleness. What is missed says with which seed.
func TestHerd(t *testing.T) {
	for _, c := range []struct {
		way       string
		gateways  int
		refreshes []int
	}{
		{herd.Asking, 3, []int{1, 10, herd.Stale}},
		{herd.Asking, 16, []int{1, 10, herd.Stale}},
		{herd.Asking, 128, []int{herd.Stale}}, // the others take long: the program examples/simulate has them, and more seeds
		{herd.NoLink, 3, []int{1, 10, herd.Stale}},
		{herd.NoLink, 16, []int{1, 10, herd.Stale}},
	} {
		for _, refresh := range c.refreshes {
			t.Run(fmt.Sprintf("%s/%d/%d", c.way, c.gateways, refresh), func(t *testing.T) {
				way, ok := herd.Find(c.way)
				require.True(t, ok)
				f, err := way.Measure(herd.Wave{Gateways: c.gateways, Supervisors: 10_000, Refresh: refresh}, seeds(t, 1))
				require.NoError(t, err)
				require.Empty(t, f.Missed)
				t.Logf("overshoot %.2f %%, spread %d, dials %.2f (most %d), asks %.2f (most %d)",
					f.Overshoot, f.Spread, f.Dials.Mean(), f.Dials.Worst, f.Asks.Mean(), f.Asks.Worst)
			})
		}
	}
}

// Small fleets end even in every interleaving, and those differ.
func TestFew(t *testing.T) {
	for _, few := range herd.AllFew() {
		t.Run(fmt.Sprintf("%s/%d on %d", few.Way, few.Supervisors, few.Gateways), func(t *testing.T) {
			n := seeds(t, 200/few.Share)
			tried, err := few.Try(0, n)
			require.NoError(t, err)
			require.Empty(t, tried.Missed, "seeds; spreads from 0 up: %v", tried.Spreads)
			require.Equal(t, n, tried.Interleavings())
			t.Logf("%d orders", tried.Distinct)
			if few.Supervisors > 2 { // of two there are not so many
				require.Equal(t, n, tried.Distinct)
			} else {
				require.Greater(t, tried.Distinct, min(n, 200)/4)
			}
		})
	}
}

// Questions and answers that are late, lost, or older than the place: no target says yes
// above the limit that it was asked for, everybody is served, and nobody dials too often.
func TestTroubled(t *testing.T) {
	for _, way := range herd.Troubled() {
		for _, refresh := range []int{10, herd.Stale} {
			t.Run(fmt.Sprintf("%s/%d", way.Name, refresh), func(t *testing.T) {
				wave := herd.TroubledWaves()[0]
				wave.Refresh = refresh
				f, err := way.Measure(wave, seeds(t, 2))
				require.NoError(t, err)
				require.Empty(t, f.Missed)
				require.Equal(t, 2, f.Checked)
				require.Positive(t, f.Questions.Unanswered)
				require.Positive(t, f.Questions.InVain)
				t.Logf("spread %d, dials %.2f (most %d), %+v, took %v", f.Spread, f.Dials.Mean(), f.Dials.Worst, f.Questions, f.Took)
			})
		}
	}
}

// Where no question arrives nobody is placed elsewhere, and everybody is served all the same.
func TestNobodyHears(t *testing.T) {
	wave := herd.Wave{Gateways: 4, Supervisors: 60, Refresh: herd.Stale}
	out, err := herd.Ours{Trouble: herd.Trouble{Loss: 1}}.Run(wave)
	require.NoError(t, err)
	require.Equal(t, herd.Questions{Unanswered: out.Asks.Total}, out.Questions)
	require.Positive(t, out.Asks.Total)
	require.Equal(t, 60, out.Dials.Total, "and each by whom it came to")
	late, err := herd.Ours{Trouble: herd.Trouble{Late: 1, LateBy: time.Nanosecond}}.Run(wave)
	require.NoError(t, err)
	require.Zero(t, late.Questions.Unanswered)
	require.Equal(t, late.Asks.Total, late.Questions.Yes+late.Questions.No+late.Questions.Insisted)
}

// The longer messages take, the longer takes the wave.
func TestLatency(t *testing.T) {
	wave := herd.Wave{Gateways: 3, Supervisors: 30, Latency: time.Microsecond}
	fast, err := herd.Ours{}.Run(wave)
	require.NoError(t, err)
	require.Positive(t, fast.Took)
	require.Less(t, fast.Took, time.Millisecond)
	wave.Latency = 100 * time.Millisecond
	slow, err := herd.Ours{}.Run(wave)
	require.NoError(t, err)
	require.Greater(t, slow.Took, wave.Latency)
	asking, _ := herd.Find(herd.Asking)
	wave = herd.Wave{Gateways: 3, Supervisors: 10_000, Latency: herd.DefaultLatency}
	require.NotZero(t, asking.Target(wave).Spread)
	wave.Latency++
	require.Equal(t, herd.Target{NoneAbove: true}, asking.Target(wave), "the others are for no more than the default")
}

// Views are brought up to date equally often, whoever places.
func TestRefreshes(t *testing.T) {
	for _, way := range herd.Ways() {
		for refresh, want := range map[int]int{1: 100, 10: 10, 50: 2, herd.Stale: 0} {
			out, err := way.Placer.Run(herd.Wave{Gateways: 3, Supervisors: 300, Refresh: refresh})
			require.NoError(t, err)
			require.Equal(t, want, out.Refreshes, "%s, %d %%", way.Name, refresh)
		}
	}
}

// One wave always ends in one way, whoever places it.
func TestOneSeedOneOutcome(t *testing.T) {
	for _, way := range herd.Ways() {
		wave := herd.Wave{Gateways: 4, Supervisors: 60, Refresh: 10, Over: 20 * time.Millisecond, Seed: 5}
		one, err := way.Measure(wave, 2)
		require.NoError(t, err, way.Name)
		two, err := way.Measure(wave, 2)
		require.NoError(t, err, way.Name)
		require.Equal(t, one, two, way.Name)
	}
}

// Every supervisor is served by somebody, and every dial is counted.
func TestEverybodyIsServed(t *testing.T) {
	for _, way := range herd.Ways() {
		for _, refresh := range []int{0, 1, 50} {
			out, err := way.Placer.Run(herd.Wave{Gateways: 5, Supervisors: 83, Refresh: refresh, Seed: 1})
			require.NoError(t, err, way.Name)
			total := 0
			for _, n := range out.Served {
				total += n
			}
			require.Equal(t, 83, total, way.Name)
			require.Len(t, out.Served, 5, way.Name)
			require.Equal(t, 83, out.Dials.Supervisors, way.Name)
			require.GreaterOrEqual(t, out.Dials.Total, 83, way.Name)
			require.Equal(t, 83, out.Asks.Supervisors, way.Name)
			if way.Name != herd.Asking {
				require.Zero(t, out.Asks.Total, way.Name)
			}
		}
	}
}

// On a view that is always fresh the rules that look at loads are as even as can be.
func TestSimpleRulesOnFreshViews(t *testing.T) {
	wave := herd.Wave{Gateways: 3, Supervisors: 99, Refresh: 1} // refreshed after each
	for choice, spread := range map[herd.Choice]int{herd.Closest: 0, herd.Clockwise: 0, herd.LeastLoaded: 0} {
		out, err := choice.Run(wave)
		require.NoError(t, err)
		require.Equal(t, spread, out.Spread(), "rule %d: %v", choice, out.Served)
		require.Zero(t, out.Overshoot())
	}
}

func TestOutcome(t *testing.T) {
	out := herd.Outcome{Served: []int{12, 8, 10}}
	require.Equal(t, 4, out.Spread())
	require.InDelta(t, 20, out.Overshoot(), 1e-9)
	require.Zero(t, herd.Outcome{Served: []int{3, 3, 2}}.Overshoot())
	require.Zero(t, herd.Tally{}.Mean())
}

func TestTargetsAreNamedWhenTheyAreMissed(t *testing.T) {
	owner, _ := herd.Find("owner")
	asking, _ := herd.Find(herd.Asking)
	asking.Placer = owner.Placer // somebody else's figures under our targets
	f, err := asking.Measure(herd.Wave{Gateways: 16, Supervisors: 10_000, Refresh: herd.Stale, Seed: 7}, 2)
	require.NoError(t, err)
	require.Len(t, f.Missed, 1)
	require.Contains(t, f.Missed[0], "asking, 10000 on 16, views refreshed every 100 %: the spread is ")
	require.Contains(t, f.Missed[0], "; at most 2 is the target (seeds 7 to 8, the worst ")
	f, err = asking.Measure(herd.Wave{Gateways: 128, Supervisors: 10_000}, 1)
	require.NoError(t, err)
	require.Len(t, f.Missed, 1)
	require.Contains(t, f.Missed[0], "at most 4.00 % is the target")
	f, err = owner.Measure(herd.Wave{Gateways: 16, Supervisors: 10_000}, 1)
	require.NoError(t, err)
	require.Empty(t, f.Missed, "the simple rules have none")
	require.Zero(t, asking.Target(herd.Wave{Gateways: 3, Supervisors: 10}).Spread, "one percent of ten is nobody")
}

func TestFaultsNameTheirField(t *testing.T) {
	for field, wave := range map[string]herd.Wave{
		"Gateways":    {Supervisors: 1},
		"Supervisors": {Gateways: 1},
		"Refresh":     {Gateways: 1, Supervisors: 1, Refresh: 101},
		"Over":        {Gateways: 1, Supervisors: 1, Over: -1},
		"Latency":     {Gateways: 1, Supervisors: 1, Latency: -1},
	} {
		require.ErrorContains(t, wave.Validate(), "herd: Wave."+field)
		for _, way := range herd.Ways() {
			_, err := way.Placer.Run(wave)
			require.ErrorContains(t, err, field, way.Name)
		}
	}
	_, err := herd.Choice(99).Run(herd.Wave{Gateways: 1, Supervisors: 1})
	require.ErrorContains(t, err, "no rule 99")
	_, err = herd.Few{Way: "none"}.Try(0, 1)
	require.ErrorContains(t, err, `"none"`)
	_, ok := herd.Find("none")
	require.False(t, ok)
}
