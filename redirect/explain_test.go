// SPDX-License-Identifier: Apache-2.0

package redirect_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/handoff"
	"github.com/evenring/evenring/internal/sim"
	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// What Explain says of a supervisor, before a gateway that drains looks for its
// place, is where it goes.
func TestExplainTellsWhereADrainHandsOver(t *testing.T) {
	for seed := range seeds(t, 20) {
		asking := seed%2 == 0
		w := sim.New(sim.Config{Seed: seed, NoAsks: !asking})
		for i := range 4 {
			w.StartGateway(ring.GatewayID(fmt.Sprint("gw-", i)))
			w.Run(time.Second)
		}
		leaver := w.Gateways[ring.GatewayID(fmt.Sprint("gw-", seed%4))]
		for _, id := range w.GatewayIDs() {
			for k := range 3 + 4*(seed%5) {
				w.StartAt(ring.MemberID(fmt.Sprint(id, "/", k)), w.Gateways[id])
			}
		}
		require.True(t, w.Until(time.Minute, w.Settled), "seed %d", seed)
		w.Run(time.Second)
		require.NoError(t, leaver.Drain(handoff.Config{}))
		served, asks := len(leaver.Admission.Supervisors()), leaver.Asks

		var last, said map[ring.MemberID]placement.Explanation // before the event under way, and before the one that chose the place
		told := map[ring.MemberID]ring.GatewayID{}
		w.Trace = func(_ time.Duration, who, what string) {
			words := strings.Fields(what) // tells gw-1/2: move (draining) gw-3
			if who != string(leaver.ID) || words[0] != "tells" || words[2] != "move" {
				return
			}
			m, target := ring.MemberID(strings.TrimSuffix(words[1], ":")), ring.GatewayID(words[4])
			require.Equal(t, target, said[m].Decision.Gateway, "seed %d: %s", seed, said[m])
			require.Equal(t, []ring.GatewayID{leaver.ID}, said[m].Request.Avoid)
			told[m] = target
		}
		require.True(t, w.Until(time.Minute, func() bool {
			if leaver.Asks > asks {
				asks, said = leaver.Asks, last
			}
			last = map[ring.MemberID]placement.Explanation{}
			for _, s := range leaver.Admission.Supervisors() {
				last[s.Member] = leaver.Admission.Explain(w.Now(), s.Member)
			}
			if !asking {
				said = last
			}
			return !leaver.Alive
		}), "seed %d", seed)
		require.True(t, w.Until(time.Minute, w.Settled), "seed %d", seed)
		require.Len(t, told, served, "seed %d: everybody was told", seed)
		for m, target := range told {
			require.Equal(t, target, w.Supervisors[m].Machine.Home().Gateway, "seed %d: %s", seed, m)
		}
	}
}

// Whoever says hello to a gateway that drains is sent where Explain says, too.
func TestExplainOfAHelloDuringADrain(t *testing.T) {
	for i := range 20 {
		p := newPair(t, false, 1, 1, 1, 1)
		_, err := p.StartDrain(p.now)
		require.NoError(t, err)
		m := ring.MemberID(fmt.Sprint("s", i))
		e := p.Explain(p.now, m, "C")
		require.Equal(t, []ring.GatewayID{"C"}, e.Request.Avoid)
		v := p.hello(m, func(h *redirect.Hello) { h.Avoid = []ring.GatewayID{"C"} }).Verdict
		require.Equal(t, redirect.Redirect, v.Outcome)
		require.Equal(t, v.Gateway, e.Decision.Gateway, e)
	}
}

// One that is handed over avoids this gateway, and whom the caller names besides.
func TestExplainAvoidsBesides(t *testing.T) {
	p := newPair(t, false, 0, 9)
	p.hello("s", stay)
	_, err := p.StartDrain(p.now)
	require.NoError(t, err)
	require.Equal(t, ring.GatewayID("B"), p.Explain(p.now, "s").Decision.Gateway)
	e := p.Explain(p.now, "s", "B")
	require.Equal(t, ring.GatewayID("C"), e.Decision.Gateway)
	require.Equal(t, []ring.GatewayID{"A", "B"}, e.Request.Avoid)
}

// On a stale view a hello is accepted where it came, and Explain says so; a gateway that drains sends it on.
func TestExplainOnAStaleView(t *testing.T) {
	p := newPair(t, false, 0)
	for i := range 5 {
		p.hello(ring.MemberID(fmt.Sprint("filler", i)), stay)
	}
	fresh := p.Explain(p.now, "s")
	require.False(t, fresh.Stale)
	require.Contains(t, fresh.String(), "s -> B (")

	p.Step(p.now, roster.DiscoveryFailed{Err: errors.New("no list")})
	stale := p.Explain(p.now, "s")
	require.True(t, stale.Stale)
	require.Contains(t, stale.String(), "s -> wherever it came (the view is stale; it says B, "+stale.Decision.Reason.String()+"): 6 live")
	require.Equal(t, redirect.Accept, p.hello("s").Verdict.Outcome)

	_, err := p.StartDrain(p.now)
	require.NoError(t, err)
	require.False(t, p.Explain(p.now, "s2").Stale)
	require.Equal(t, redirect.Redirect, p.hello("s2").Verdict.Outcome)
}

// What has run out by now does not count, even if nothing else has happened since.
func TestExplainForgetsWhatHasRunOut(t *testing.T) {
	p := newPair(t, false, 0)
	require.Equal(t, redirect.Accept, p.hello("first", stay).Verdict.Outcome)
	require.Equal(t, ring.GatewayID("B"), p.hello("s").Verdict.Gateway)
	require.True(t, p.Explain(p.now, "s").Request.Promised)
	p.now = p.now.Add(redirect.DefaultReserve)
	require.False(t, p.Explain(p.now, "s").Request.Promised)
}

// S2: 4 streams, 2 of them of a kind that is not placed -> the cap counts the 2 that are. Child
// sessions are that kind: they follow their supervisor, and no gateway counts them.
func TestOnlyThosePlacedCountS2(t *testing.T) {
	p := newPair(t, false, 0)
	for _, m := range []ring.MemberID{"s1", "s2"} {
		require.Equal(t, redirect.Accept, p.hello(m, stay).Verdict.Outcome)
		child := p.hello(m, func(h *redirect.Hello) { h.Session = "child" })
		require.Equal(t, redirect.ReasonSession, child.Verdict.Reason)
	}
	s := p.stats()
	require.Equal(t, []int{2, 2, 2, 1}, []int{s.Sessions, s.Served, s.Live, s.Cap}, "sessions, served, live, cap")

	e := p.Explain(p.now, "s3")
	require.Equal(t, []int{3, 1, 2}, []int{e.Live, e.Decision.Share, e.Decision.Cap}, "live, share, cap")
	for _, c := range e.Walk {
		require.Equal(t, map[ring.GatewayID]int{"A": 2, "B": 0}[c.Gateway.ID], c.Load, c.Gateway.ID)
	}
	v := p.hello("s3").Verdict
	require.Equal(t, []any{ring.GatewayID("B"), 2}, []any{v.Gateway, v.Cap})
}

// S9: with no gateway to place on there is nobody to be uneven.
func TestSkewWithoutAPlaceableGatewayS9(t *testing.T) {
	p := newPair(t, false)
	p.hello("s", stay)
	_, err := p.StartDrain(p.now)
	require.NoError(t, err)
	s := p.stats()
	require.Equal(t, []int{1, 0, 0}, []int{s.Live, s.Placeable, s.Cap}, "live, placeable, cap")
	require.Equal(t, 1.0, s.Skew)
	require.True(t, s.Balanced)
}
