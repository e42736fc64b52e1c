// SPDX-License-Identifier: Apache-2.0

package redirect_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/handoff"
	"github.com/evenring/evenring/internal/sim"
	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// paced makes the gateways of a world take newcomers at that rate, all or those named.
func paced(p redirect.Pacing, ids ...ring.GatewayID) func(*redirect.Config) {
	return func(cfg *redirect.Config) {
		if len(ids) == 0 || slices.Contains(ids, cfg.Gateway) {
			cfg.Pace = p
		}
	}
}

// refused is how many hellos the gateways of a world have refused.
func refused(w *sim.World) (n uint64) {
	for _, g := range w.Gateways {
		for _, count := range g.Admission.Stats(w.Now()).Verdicts[redirect.Refuse] {
			n += count
		}
	}
	return n
}

// A gateway joins, and so many newcomers come that it would be given them
// all at once. It takes them at its rate, the others take the rest at
// once, and nobody is refused.
func TestPacedGatewayThatJoins(t *testing.T) {
	for seed := range seeds(t, 20) {
		for _, noAsks := range []bool{false, true} {
			pace := redirect.Pacing{Rate: 10, Burst: 5}
			w := sim.New(sim.Config{Seed: seed, NoAsks: noAsks, Gateway: paced(pace, "C")})
			a, b := w.StartGateway("A"), w.StartGateway("B")
			for i := range 60 {
				w.StartAt(member(i), []*sim.Gateway{a, b}[i%2])
			}
			require.True(t, w.Until(time.Minute, w.Settled))
			c := w.StartGateway("C")
			if noAsks {
				a.InService, b.InService = false, false // without asking, it bounds those alone that come to it
			}
			w.Run(time.Second)
			before := refused(w)
			began := w.Now()
			for i := range 60 {
				w.StartSupervisor(member(100 + i))
			}
			w.Until(time.Minute, func() bool {
				bound := pace.Rate*w.Now().Sub(began).Seconds() + float64(pace.Burst)
				taken := len(c.Admission.Supervisors())
				if noAsks { // those that others pass on to it are not bounded
					taken = int(c.Admission.Stats(w.Now()).Verdicts[redirect.Accept][redirect.ReasonPlaced])
				}
				require.LessOrEqual(t, float64(taken), bound+1e-6, "seed %d, no asks %v", seed, noAsks)
				return w.Settled()
			})
			require.True(t, w.Settled(), "seed %d", seed)
			require.Less(t, w.Now().Sub(began), 3*time.Second, "seed %d: nobody waits for it", seed)
			require.Equal(t, before, refused(w), "seed %d", seed)
			require.NotEmpty(t, c.Admission.Supervisors())
			for m, s := range w.Supervisors {
				require.LessOrEqual(t, s.Dials, 4, "seed %d: %s", seed, m)
			}
		}
	}
}

// Everybody is paced, and far too many come: the bound gives way, evenly.
func TestAllArePaced(t *testing.T) {
	for seed := range seeds(t, 20) {
		w := sim.New(sim.Config{Seed: seed, NoAsks: seed%4 == 3, Gateway: paced(redirect.Pacing{Rate: 1})})
		for _, id := range []ring.GatewayID{"A", "B", "C"} {
			w.StartGateway(id)
		}
		w.Run(time.Second)
		for i := range 90 {
			w.StartSupervisor(member(i))
		}
		began := w.Now()
		require.True(t, w.Until(time.Minute, w.Settled), "seed %d", seed)
		require.Less(t, w.Now().Sub(began), 5*time.Second, "seed %d", seed)
		require.Zero(t, refused(w), "seed %d", seed)
		for m, s := range w.Supervisors {
			require.LessOrEqual(t, s.Dials, 4, "seed %d: %s", seed, m)
		}
	}
}

// A crash: those of the dead gateway spread over the others, the paced one
// among them, and those that have a stream do not notice.
func TestPacedGatewayAfterACrash(t *testing.T) {
	pace := redirect.Pacing{Rate: 5, Burst: 5}
	w := sim.New(sim.Config{Seed: 8, Gateway: paced(pace, "B")})
	a, b, c := w.StartGateway("A"), w.StartGateway("B"), w.StartGateway("C")
	for i := range 90 {
		w.StartAt(member(i), []*sim.Gateway{a, b, c}[i%3])
	}
	require.True(t, w.Until(time.Minute, w.Settled))
	w.Run(time.Minute)
	began := w.Now()
	a.Kill()
	require.True(t, w.Until(time.Minute, func() bool {
		bound := 30 + pace.Rate*w.Now().Sub(began).Seconds() + float64(pace.Burst)
		require.LessOrEqual(t, float64(len(b.Admission.Supervisors())), bound+1e-6)
		return w.Settled()
	}))
	for i, m := range w.MemberIDs() {
		moves := 0
		if i%3 == 0 {
			moves = 1
		}
		require.Equal(t, moves, w.Supervisors[m].Moves, "%s", m)
	}
}

// A drain is not held up by anybody's pace.
func TestDrainToPacedGateways(t *testing.T) {
	w := sim.New(sim.Config{Seed: 9, Gateway: paced(redirect.Pacing{Rate: 1}, "B", "C")})
	a := w.StartGateway("A")
	for i := range 200 {
		w.StartAt(member(i), a)
	}
	w.StartGateway("B")
	w.StartGateway("C")
	require.True(t, w.Until(time.Minute, w.Settled))
	require.NoError(t, a.Drain(handoff.Config{}))
	require.True(t, w.Until(time.Minute, func() bool { return !a.Alive }))
	require.Len(t, a.Report.Moved, 200)
	require.Equal(t, 200, a.Report.Orders, "each was told at once")
}

func TestPacing(t *testing.T) {
	newPaced := func(loads ...int) *pair {
		p := newPair(t, true, loads...)
		cfg := redirect.Config{Gateway: "A", Incarnation: 10, Endpoint: "peer-A", Peers: silent{}, Pace: redirect.Pacing{Rate: 2, Burst: 2}}
		a, err := redirect.NewAdmission(start, cfg)
		require.NoError(t, err)
		p.Admission = a
		a.Serve(start)
		for i, n := range loads {
			p.peer(ring.GatewayID(rune('B'+i)), placement.Ready, 1, n)
		}
		return p
	}
	ask := func(p *pair, m ring.MemberID, insist bool) placement.Answer {
		return p.Asked(p.now, placement.Question{From: "B", Member: m, Limit: 100, Insist: insist})
	}
	t.Run("asked", func(t *testing.T) {
		p := newPaced(50)
		require.True(t, ask(p, "1", false).Yes)
		require.True(t, ask(p, "2", false).Yes)
		require.True(t, ask(p, "2", false).Yes, "the same again is nobody new")
		no := ask(p, "3", false)
		require.False(t, no.Yes)
		require.NotEqual(t, placement.Ready, no.State, "so that who asks looks elsewhere")
		p.now = p.now.Add(500 * time.Millisecond)
		require.True(t, ask(p, "3", false).Yes, "half a second is one more")
		require.False(t, ask(p, "4", false).Yes)
		require.True(t, ask(p, "4", true).Yes, "who insists is not held up")
		p.now = p.now.Add(time.Hour)
		require.True(t, ask(p, "5", false).Yes)
		require.True(t, ask(p, "6", false).Yes)
		require.False(t, ask(p, "7", false).Yes, "a quiet hour is one burst")
	})
	t.Run("those that stay, come back, or are expected", func(t *testing.T) {
		p := newPaced(50)
		require.True(t, ask(p, "expected", false).Yes)
		var last *redirect.Admitting
		for i := range 5 {
			last = p.hello(member(i), stay)
			require.Equal(t, redirect.Accept, last.Verdict.Outcome, "it asks to stay")
		}
		require.False(t, ask(p, "late", false).Yes, "they count, though")
		require.Equal(t, redirect.Accept, p.hello("expected").Verdict.Outcome)
		p.Leave(p.now, last.Key, false)
		require.Equal(t, redirect.Accept, p.hello(member(4)).Verdict.Outcome, "it comes back")
		require.Equal(t, redirect.Accept, p.hello(member(3)).Verdict.Outcome)
	})
	t.Run("through the Service", func(t *testing.T) {
		p := newPaced(3)
		require.Equal(t, redirect.Accept, p.hello("1").Verdict.Outcome)
		require.Equal(t, redirect.Accept, p.hello("2").Verdict.Outcome)
		diverted := p.hello("3")
		require.NotNil(t, diverted.Ask)
		require.Equal(t, ring.GatewayID("B"), diverted.Ask.To.ID)
		require.False(t, diverted.Ask.Question.Insist)
		p.Answered(p.now, diverted, yes(2, 3, 1))
		require.Equal(t, redirect.Redirect, diverted.Verdict.Outcome)

		back := p.hello("4")
		require.NotNil(t, back.Ask)
		p.Answered(p.now, back, placement.Answer{Gateway: "B", State: placement.Starting})
		require.Equal(t, redirect.Accept, back.Verdict.Outcome, "B is as busy")
		require.Equal(t, redirect.ReasonPlaced, back.Verdict.Reason, "%+v", back.Decision)
	})
	t.Run("alone", func(t *testing.T) {
		p := newPaced()
		for i := range 10 {
			require.Equal(t, redirect.Accept, p.hello(member(i)).Verdict.Outcome)
		}
	})
}

func TestPacingIsValidated(t *testing.T) {
	for text, pace := range map[string]redirect.Pacing{
		"Pace.Rate is -1":  {Rate: -1},
		"Pace.Rate is NaN": {Rate: math.NaN()},
		"Pace.Rate is +In": {Rate: math.Inf(1)},
		"Pace.Burst is -1": {Rate: 1, Burst: -1},
		"Pace.Burst is 3 ": {Burst: 3},
	} {
		require.ErrorContains(t, redirect.Config{Gateway: "A", Incarnation: 1, Pace: pace}.Validate(), text)
	}
	require.NoError(t, redirect.Config{Gateway: "A", Incarnation: 1, Pace: redirect.Pacing{Rate: 0.5, Burst: 1}}.Validate())
}
