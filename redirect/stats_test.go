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

// heartbeats is what a gateway with this ring says when it starts.
func heartbeats(t *testing.T, id ring.GatewayID, inc placement.Incarnation, circle ring.Config) []roster.Event {
	t.Helper()
	a, err := redirect.NewAdmission(start, redirect.Config{Gateway: id, Incarnation: inc, Roster: roster.Config{Ring: circle}})
	require.NoError(t, err)
	a.Step(start, roster.Tick{})
	var all []roster.Event
	for _, s := range a.Take().Sends {
		m, err := roster.Decode(roster.Append(nil, s.Message))
		require.NoError(t, err)
		all = append(all, roster.Received{From: id, Message: m})
	}
	require.NotEmpty(t, all)
	return all
}

func TestRingMismatches(t *testing.T) {
	p := newPair(t, true, 3, 4) // B and C have not said how they compute rings
	require.Zero(t, p.stats().RingMismatches)
	for _, step := range []struct {
		id     ring.GatewayID
		inc    placement.Incarnation
		circle ring.Config
		want   int
	}{
		{"B", 21, ring.Config{}, 0},
		{"C", 21, ring.Config{Slots: 4093}, 1},
		{"D", 21, ring.Config{Load: 1.1}, 2},
		{"C", 22, ring.Config{Slots: ring.DefaultSlots}, 1},
		{"D", 22, ring.Config{}, 0},
	} {
		for _, ev := range heartbeats(t, step.id, step.inc, step.circle) {
			p.Step(p.now, ev)
		}
		require.Equal(t, step.want, p.stats().RingMismatches, "%s %d", step.id, step.inc)
	}
	require.Equal(t, 4, p.stats().Gateways)
}

// A gateway tells its user once when another begins to disagree, and again when
// that one does so after it had come to its senses.
func TestGatewayTellsWhoDisagrees(t *testing.T) {
	var told []roster.Disagrees
	g, err := redirect.NewGateway(redirect.Config{Gateway: "A", Incarnation: 10}, redirect.Hooks{
		Disagrees: func(d roster.Disagrees) { told = append(told, d) },
	})
	require.NoError(t, err)
	hear := func(id ring.GatewayID, inc placement.Incarnation, circle ring.Config) {
		for _, ev := range heartbeats(t, id, inc, circle) {
			g.Step(ev)
		}
	}
	wrong := ring.Config{Slots: 4093}
	hear("C", 1, wrong)
	hear("C", 1, wrong)
	require.Equal(t, []roster.Disagrees{{Gateway: "C"}}, told)
	hear("B", 1, wrong)
	hear("D", 1, ring.Config{})
	require.Equal(t, []roster.Disagrees{{Gateway: "C"}, {Gateway: "B"}}, told)
	require.Equal(t, []ring.GatewayID{"B", "C"}, g.Disagreeing())
	require.Equal(t, 2, g.Stats().RingMismatches)

	hear("C", 2, ring.Config{})
	require.Equal(t, []ring.GatewayID{"B"}, g.Disagreeing())
	hear("C", 3, wrong)
	require.Equal(t, []roster.Disagrees{{Gateway: "C"}, {Gateway: "B"}, {Gateway: "C"}}, told)
}
