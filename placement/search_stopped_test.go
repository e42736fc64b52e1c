// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// A gateway says yes, and word that it stops comes before its answer does.
func TestSearchDoesNotTakeAYesFromWhoStopsSince(t *testing.T) {
	all := gateways(5, 0, 0, 0) // seen by A
	m := ownedBy(t, "B", all)
	for name, stop := range map[string]func(*placement.Gateway){
		"draining": func(g *placement.Gateway) { g.State = placement.Draining },
		"suspect":  func(g *placement.Gateway) { g.Suspect = true },
	} {
		t.Run(name, func(t *testing.T) {
			s := placement.NewSearch("A", 0, placement.Request{Member: m})
			ask, _ := s.Begin(view(t, all))
			require.Equal(t, ring.GatewayID("B"), ask.To.ID)

			since := gateways(5, 0, 0, 0)
			stop(&since[1])
			ask, d := s.Answered(view(t, since), placement.Answer{Gateway: "B", Yes: true, State: placement.Ready})
			require.NotNil(t, ask, "sent to %s", d.Gateway)
			require.NotEqual(t, ring.GatewayID("B"), ask.To.ID)
		})
	}
}
