// SPDX-License-Identifier: Apache-2.0

package roster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// Whoever waits for a change learns that the view is not stale any more, though nothing
// else has changed: a settle waits for that.
func TestEndOfSilenceIsAChange(t *testing.T) {
	f := newFleet(t, "a", "b", "c")
	for _, id := range f.ids() {
		f.step(id, StateChanged{placement.Ready})
	}
	f.run(time.Minute)
	a := f.nodes["a"]
	f.cut = func(ring.GatewayID, ring.GatewayID) bool { return true }
	f.run(defaultTimeToLive - defaultHeartbeat + 5*time.Second)
	require.True(t, a.Stale(f.now))
	before := a.Version()
	f.cut = nil
	f.run(defaultHeartbeat)
	require.False(t, a.Stale(f.now))
	require.Greater(t, a.Version(), before)

	before = a.Version()
	f.run(time.Minute)
	require.Equal(t, before, a.Version(), "heartbeats alone change nothing")
}
