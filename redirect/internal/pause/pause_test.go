// SPDX-License-Identifier: Apache-2.0

package pause

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func always(u float64) func() float64 { return func() float64 { return u } }

func TestDraw(t *testing.T) {
	require.Equal(t, 0.5, Draw(nil))
	require.Equal(t, 0.25, Draw(always(0.25)))
	for _, u := range []float64{-1, 0, math.NaN(), math.Inf(-1)} {
		require.Zero(t, Draw(always(u)))
	}
	for _, u := range []float64{1, 2, math.Inf(1)} {
		require.Less(t, Draw(always(u)), 1.0)
		require.Greater(t, Draw(always(u)), 0.999)
	}
}

func TestBackoff(t *testing.T) {
	b := Backoff{Min: time.Second, Max: 30 * time.Second}
	for failures, ceiling := range map[int]time.Duration{
		-1: time.Second, 0: time.Second, 1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second,
		6: 30 * time.Second, 7: 30 * time.Second, math.MaxInt: 30 * time.Second,
	} {
		require.Equal(t, 100*time.Millisecond, b.After(failures, always(0)), failures)
		require.InDelta(t, ceiling, b.After(failures, always(1)), float64(time.Microsecond), failures)
	}
	require.Positive(t, Backoff{Min: math.MaxInt64 / 2, Max: math.MaxInt64}.After(9, always(1)))
}

func TestRetry(t *testing.T) {
	require.Equal(t, 4*time.Second, Retry(4*time.Second, time.Second, always(0)))
	require.Equal(t, 5*time.Second, Retry(4*time.Second, time.Second, always(0.5)))
	require.Equal(t, time.Second, Retry(0, time.Second, always(0)))
	require.Equal(t, time.Second, Retry(-time.Hour, time.Second, always(0)))
	require.Equal(t, Longest, Retry(math.MaxInt64, time.Second, always(0)))
}

func TestFlaps(t *testing.T) {
	b := Backoff{Min: time.Second, Max: 30 * time.Second}
	const brief, while, long = time.Millisecond, time.Minute / 4, time.Hour
	var f Flaps
	for i, test := range []struct {
		lived     time.Duration
		takenOver bool
		want      time.Duration
	}{
		{long, false, 0},
		{brief, false, 0},
		{brief, false, b.After(1, nil)},
		{brief, false, b.After(2, nil)},
		{while, false, 0},
		{brief, false, 0},
		{while, true, b.After(2, nil)},
		{while, true, b.After(3, nil)},
		{long, true, b.After(1, nil)},
	} {
		require.Equal(t, test.want, f.Ended(test.lived, test.takenOver, b, nil), i)
	}
}
