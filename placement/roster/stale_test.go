// SPDX-License-Identifier: Apache-2.0

package roster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Whoever waits for a change learns that the view is not stale any more, though nothing
// else has changed: a settle waits for that.
func TestEndOfSilenceIsAChange(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	a, err := New(now, Config{Gateway: "a", Incarnation: 1, Endpoint: "at-a"})
	require.NoError(t, err)
	b, err := New(now, Config{Gateway: "b", Incarnation: 1, Endpoint: "at-b"})
	require.NoError(t, err)
	beat := Received{Message: b.heartbeat()}
	a.Step(now, beat)
	pass := func(d time.Duration) {
		for end := now.Add(d); now.Before(end); {
			now = now.Add(time.Second)
			a.Step(now, Tick{})
		}
	}
	pass(defaultTimeToLive - defaultHeartbeat) // the grace is over, too
	require.False(t, a.Stale(now))
	before := a.Version()
	a.Step(now, beat)
	require.Equal(t, before, a.Version(), "a heartbeat alone changes nothing")

	pass(defaultTimeToLive - defaultHeartbeat + time.Second)
	require.True(t, a.Stale(now))
	require.Equal(t, before, a.Version())
	a.Step(now, beat)
	require.False(t, a.Stale(now))
	require.Greater(t, a.Version(), before)
}
