// SPDX-License-Identifier: Apache-2.0

package redirect_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

func listed(ids ...ring.GatewayID) roster.Discovered { return roster.Discovered{Gateways: ids} }

// S62, the admission's part: nobody is placed on a gateway that discovery has
// dropped, whom it serves stays, and nothing is closed.
func TestS62(t *testing.T) {
	for name, asks := range map[string]bool{"with asks": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, asks, 3)
			p.hello("s", stay)
			p.Step(p.now, listed("A", "B"))
			p.Take()
			require.False(t, p.stats().Delisted)

			p.Step(p.now, listed("B"))
			require.Equal(t, []roster.Delisted{{}}, p.Take().Delisted)
			require.True(t, p.stats().Delisted)
			require.False(t, p.stats().Draining, "that is for the program to do")
			require.Equal(t, 1, p.stats().Placeable)
			p.Step(p.now, listed("B"))
			out := p.Take()
			require.Empty(t, out.Delisted, "once")
			require.Empty(t, out.Tells)

			newcomer := p.hello("m")
			if asks {
				require.NotNil(t, newcomer.Ask)
				require.Equal(t, ring.GatewayID("B"), newcomer.Ask.To.ID)
				p.Answered(p.now, newcomer, placement.Answer{Gateway: "B", Yes: true})
			}
			require.Equal(t, redirect.Redirect, newcomer.Verdict.Outcome, "%+v", newcomer.Verdict)
			require.Equal(t, ring.GatewayID("B"), newcomer.Verdict.Gateway, "it has more, and is the only one")
			guest := p.hello("n", stay)
			require.Equal(t, redirect.Accept, guest.Verdict.Outcome, "nobody is refused")

			// The other has gone as well: a list is no reason to turn anybody away.
			p.Step(p.now, roster.LinkLost{Gateway: "B"})
			lonely := p.hello("o")
			require.Equal(t, redirect.Accept, lonely.Verdict.Outcome, "%+v", lonely.Verdict)
			require.Equal(t, redirect.ReasonLocal, lonely.Verdict.Reason)
			require.Equal(t, 3, p.stats().Served)

			p.Step(p.now, listed("A", "B"))
			require.False(t, p.stats().Delisted)
			require.Empty(t, p.Take().Delisted)
			p.Step(p.now, listed("B"))
			require.Len(t, p.Take().Delisted, 1, "and once more")
		})
	}
}

// A gateway tells its user each time that it is dropped.
func TestGatewayTellsThatItIsDelisted(t *testing.T) {
	told := 0
	g, err := redirect.NewGateway(redirect.Config{Gateway: "A", Incarnation: 10}, redirect.Hooks{
		Delisted: func(roster.Delisted) { told++ },
	})
	require.NoError(t, err)
	for _, step := range []struct {
		event    roster.Event
		delisted bool
		told     int
	}{
		{listed("B"), false, 0}, // it has not been listed yet
		{listed("A", "B"), false, 0},
		{listed(), false, 0},
		{roster.Discovered{Gateways: []ring.GatewayID{"B"}, Partial: true}, false, 0},
		{listed("B"), true, 1},
		{listed("B", "C"), true, 1},
		{roster.DiscoveryFailed{}, true, 1},
		{listed("A"), false, 1},
		{listed("C"), true, 2},
	} {
		g.Step(step.event)
		require.Equal(t, step.delisted, g.Delisted(), "%+v", step.event)
		require.Equal(t, step.delisted, g.Stats().Delisted)
		require.Equal(t, step.told, told, "%+v", step.event)
		require.NotEqual(t, roster.ReasonDraining, g.Ready().Supervisors.Reason)
	}

	// Nobody has to watch.
	g, err = redirect.NewGateway(redirect.Config{Gateway: "A", Incarnation: 10}, redirect.Hooks{})
	require.NoError(t, err)
	g.Step(listed("A", "B"))
	g.Step(listed("B"))
	require.True(t, g.Delisted())
}
