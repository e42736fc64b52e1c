// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/metrics"
	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/forward"
	"github.com/evenring/evenring/ring"
)

// post is gateway A, whose members are where holders says.
type post struct {
	holders []roster.Holder
	answers map[ring.GatewayID]error // nil: an answer
}

func holder(id ring.GatewayID) roster.Holder {
	return roster.Holder{Gateway: placement.Gateway{ID: id, Endpoint: string(id)}, Generation: 1}
}

func (p post) ID() ring.GatewayID { return "A" }

func (p post) Route(ring.MemberID, redirect.SessionID) (roster.Route, <-chan struct{}) {
	route := roster.Route{Where: roster.Nobody, Holders: p.holders}
	if len(p.holders) > 0 {
		route.Where = roster.Elsewhere
	}
	return route, nil
}

func (p post) Deliver(context.Context, redirect.Request) ([]byte, error) { return nil, p.answers["A"] }

func (p post) Forward(_ context.Context, to placement.Gateway, _ redirect.Request) ([]byte, error) {
	return nil, p.answers[to.ID]
}

// TestCalls: each call counts once, by its end, and each attempt.
func TestCalls(t *testing.T) {
	notHere, notSent, unsure := redirect.ErrNotHere, forward.ErrNotSent, redirect.ErrUncertain
	for _, row := range []struct {
		name  string
		post  post
		cfg   forward.Config
		ended bool // the caller has gone
		want  metrics.CallStats
	}{
		{"here", post{holders: []roster.Holder{holder("A")}}, forward.Config{}, false, metrics.CallStats{
			Made: ends(forward.Done), Attempts: attempts(forward.Replied),
		}},
		{"at the second", post{holders: []roster.Holder{holder("B"), holder("C")}, answers: map[ring.GatewayID]error{"B": notHere}}, forward.Config{}, false, metrics.CallStats{
			Made: ends(forward.Done), Attempts: attempts(forward.NotHere, forward.Replied),
		}},
		{"at neither", post{holders: []roster.Holder{holder("B"), holder("C")}, answers: map[ring.GatewayID]error{"B": notSent, "C": notSent}}, forward.Config{}, false, metrics.CallStats{
			Made: ends(forward.Unreachable), Attempts: attempts(forward.NotSent, forward.NotSent),
		}},
		{"lost", post{holders: []roster.Holder{holder("B")}, answers: map[ring.GatewayID]error{"B": unsure}}, forward.Config{}, false, metrics.CallStats{
			Made: ends(forward.Lost), Attempts: attempts(forward.Uncertain),
		}},
		{"nobody", post{}, forward.Config{}, false, metrics.CallStats{Made: ends(forward.Nobody), Waits: 1}},
		{"missed, after a wait", post{holders: []roster.Holder{holder("B")}, answers: map[ring.GatewayID]error{"B": notHere}}, forward.Config{}, false, metrics.CallStats{
			Made: ends(forward.Missed), Attempts: attempts(forward.NotHere), Waits: 1,
		}},
		{"stopped", post{holders: []roster.Holder{holder("B")}, answers: map[ring.GatewayID]error{"B": notSent}}, forward.Config{}, true, metrics.CallStats{
			Made: ends(forward.Stopped), Attempts: attempts(forward.Uncertain),
		}},
		{"forwarded here", post{holders: []roster.Holder{holder("A")}}, forward.Config{Forwarded: true}, false, metrics.CallStats{
			Forwarded: ends(forward.Done), Attempts: attempts(forward.Replied),
		}},
		{"forwarded in vain", post{holders: []roster.Holder{holder("B")}}, forward.Config{Forwarded: true}, false, metrics.CallStats{
			Forwarded: ends(forward.Missed),
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if row.ended {
					cancel()
				}
				var calls metrics.Calls
				require.Equal(t, metrics.CallStats{}, calls.Stats())
				_, _ = forward.Call(ctx, row.cfg, row.post, row.post, redirect.Request{Member: "s"}, forward.Hooks{Observe: calls.Observe})
				require.Equal(t, row.want, calls.Stats())
			})
		})
	}
}

func ends(reasons ...forward.Reason) map[forward.Reason]uint64 { return tally(reasons) }

func attempts(outcomes ...forward.Outcome) map[forward.Outcome]uint64 { return tally(outcomes) }

func tally[K comparable](all []K) map[K]uint64 {
	counts := map[K]uint64{}
	for _, one := range all {
		counts[one]++
	}
	return counts
}

// TestCallsAddUp: whatever events reach a machine, it ends once, and every
// attempt that it asks for ends once, unless the machine is left before.
func TestCallsAddUp(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for i := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, i))
		m, err := forward.New(forward.Config{Self: "A", Forwarded: rng.IntN(2) == 0, Idempotent: rng.IntN(2) == 0})
		require.NoError(t, err)
		var calls metrics.Calls
		now, sends := time.Unix(1_700_000_000, 0), 0
		step := func(event forward.Event) {
			before := m.State()
			actions := m.Step(now, event)
			for _, action := range actions {
				if _, ok := action.(forward.Send); ok {
					sends++
				}
			}
			calls.Observe(forward.Observation{At: now, Event: event, Before: before, After: m.State(), Actions: actions})
		}
		route := func() roster.Route {
			r := roster.Route{Where: roster.Elsewhere}
			for _, id := range []ring.GatewayID{"A", "B", "C"}[:rng.IntN(4)] {
				h := holder(id)
				h.Generation = placement.Generation(rng.IntN(3))
				h.Expected = rng.IntN(3) == 0
				r.Holders = append(r.Holders, h)
			}
			return r
		}
		for range 30 {
			now = now.Add(time.Duration(rng.Int64N(int64(time.Second))))
			switch rng.IntN(6) {
			case 0:
				step(forward.Begin{Route: route()})
			case 1:
				step(forward.Routed{Route: route()})
			case 2, 3:
				step(forward.Answered{Attempt: rng.IntN(3), Outcome: forward.Outcome(rng.IntN(5))})
			case 4:
				step(forward.Tick{})
			default:
				if rng.IntN(4) == 0 {
					step(forward.Stop{})
				}
			}
		}
		step(forward.Stop{})
		step(forward.Stop{})
		s := calls.Stats()
		require.Equal(t, map[forward.Reason]uint64{m.Reason(): 1}, s.Made, "seed %d, call %d", seed, i)
		total := uint64(0)
		for _, n := range s.Attempts {
			total += n
		}
		require.EqualValues(t, sends, total, "seed %d, call %d", seed, i)
	}
}

// TestEveryCallFigureIsRead: no field is forgotten, and each label finds its figure.
func TestEveryCallFigureIsRead(t *testing.T) {
	want := metrics.CallStats{Made: map[forward.Reason]uint64{}, Forwarded: map[forward.Reason]uint64{}, Attempts: map[forward.Outcome]uint64{}, Waits: 1}
	series := map[string]float64{"evenring_call_waits_total": 1}
	next := uint64(1)
	for _, r := range forward.Reasons() {
		if r == forward.None {
			continue
		}
		next += 2
		want.Made[r], want.Forwarded[r] = next, next+1
		series["evenring_calls_total "+r.String()] = float64(next)
		series["evenring_forwarded_calls_total "+r.String()] = float64(next + 1)
	}
	for _, o := range forward.Outcomes() {
		next += 2
		want.Attempts[o] = next
		series["evenring_call_attempts_total "+o.String()] = float64(next)
	}
	require.Equal(t, 4, reflect.TypeFor[metrics.CallStats]().NumField(), "a field is not tested")
	got := collectAll(redirect.Stats{}, want)
	for name, value := range collect(redirect.Stats{}) {
		if got[name] == value {
			delete(got, name)
		}
	}
	require.Equal(t, series, got)
}

func TestCallsStatsAreTheReaders(t *testing.T) {
	var calls metrics.Calls
	p := post{holders: []roster.Holder{holder("A")}}
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			_, _ = forward.Call(t.Context(), forward.Config{}, p, nil, redirect.Request{Member: "s"}, forward.Hooks{Observe: calls.Observe})
			s := calls.Stats()
			s.Made[forward.Lost], s.Attempts[forward.NotSent] = 7, 7
		})
	}
	callers.Wait()
	require.Equal(t, metrics.CallStats{Made: map[forward.Reason]uint64{forward.Done: 8}, Attempts: map[forward.Outcome]uint64{forward.Replied: 8}}, calls.Stats())
}
