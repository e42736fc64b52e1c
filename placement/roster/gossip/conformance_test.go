// SPDX-License-Identifier: Apache-2.0

package gossip_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/placement/roster/gossip"
	"github.com/evenring/evenring/placement/roster/rostertest"
)

// A mesh is a transport as rosters want it, whatever is lost, doubled,
// overtaken or cut off on top of what the network does.
func TestTransport(t *testing.T) {
	t.Parallel()
	rostertest.Run(t, func(testing.TB) rostertest.Join {
		var seeds []string
		return func(t testing.TB, n rostertest.Node) (roster.Transport, func()) {
			mesh, err := gossip.Join(t.Context(), gossip.Config{
				Gateway:     n.Gateway,
				Incarnation: n.Incarnation,
				Bind:        "127.0.0.1:0",
				Seeds:       seeds,
				Probe:       4 * probe, // so that nobody is taken for dead on a busy machine
			}, n.Replica)
			require.NoError(t, err)
			seeds = append(seeds, mesh.Addr())
			return mesh, func() { _ = mesh.Close() }
		}
	})
}
