// SPDX-License-Identifier: Apache-2.0

package forward_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/forward"
	"github.com/evenring/evenring/ring"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// post is gateway A, the gateways around it, and what they answer with.
type post struct {
	mu      sync.Mutex
	route   roster.Route
	changed chan struct{}
	answers map[ring.GatewayID]func(context.Context, redirect.Request) ([]byte, error)
	asked   []ring.GatewayID
}

func newPost(holders ...roster.Holder) *post {
	p := &post{changed: make(chan struct{}), answers: make(map[ring.GatewayID]func(context.Context, redirect.Request) ([]byte, error))}
	p.move(holders...)
	return p
}

func at(id ring.GatewayID, g placement.Generation) roster.Holder {
	return roster.Holder{Gateway: placement.Gateway{ID: id, Endpoint: "at " + string(id)}, Generation: g}
}

// move says where the member is now; nowhere: nobody has it.
func (p *post) move(holders ...roster.Holder) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.route = roster.Route{Where: roster.Nobody, Holders: holders}
	if len(holders) > 0 {
		p.route.Where = roster.Elsewhere
	}
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *post) ID() ring.GatewayID { return "A" }

func (p *post) Route(ring.MemberID, redirect.SessionID) (roster.Route, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.route, p.changed
}

func (p *post) Deliver(ctx context.Context, req redirect.Request) ([]byte, error) {
	return p.Forward(ctx, placement.Gateway{ID: "A"}, req)
}

func (p *post) Forward(ctx context.Context, to placement.Gateway, req redirect.Request) ([]byte, error) {
	p.mu.Lock()
	p.asked = append(p.asked, to.ID)
	answer := p.answers[to.ID]
	p.mu.Unlock()
	if answer == nil {
		return nil, fmt.Errorf("%s: %w", to.ID, redirect.ErrNotHere)
	}
	return answer(ctx, req)
}

func fails(err error) func(context.Context, redirect.Request) ([]byte, error) {
	return func(context.Context, redirect.Request) ([]byte, error) { return nil, err }
}

func echo(_ context.Context, req redirect.Request) ([]byte, error) { return req.Payload, nil }

var request = redirect.Request{Member: "s", Payload: []byte("hi")}

func call(ctx context.Context, p *post, req redirect.Request) (string, error) {
	answer, err := forward.Call(ctx, forward.Config{}, p, p, req, forward.Hooks{})
	return string(answer), err
}

func reason(t *testing.T, err error) forward.Reason {
	t.Helper()
	var failed *forward.Error
	require.ErrorAs(t, err, &failed)
	require.Contains(t, err.Error(), failed.Reason.String())
	require.Contains(t, err.Error(), `member "s"`)
	return failed.Reason
}

func TestCall(t *testing.T) {
	own := errors.New("the member's own")
	for _, row := range []struct {
		name    string
		b, c    func(context.Context, redirect.Request) ([]byte, error)
		req     redirect.Request
		answer  string
		err     error          // as it is
		reason  forward.Reason // of an error of this package
		asked   string
		waiting time.Duration
	}{
		{name: "answered", b: echo, req: request, answer: "hi", asked: "B"},
		{name: "answered with an error", b: fails(own), c: echo, req: request, err: own, asked: "B"},
		{name: "it answers no requests", b: fails(redirect.ErrNotAnswering), c: echo, req: request, err: redirect.ErrNotAnswering, asked: "B"},
		{name: "not here", c: echo, req: request, answer: "hi", asked: "BC"},
		{name: "not sent", b: fails(fmt.Errorf("no: %w", forward.ErrNotSent)), c: echo, req: request, answer: "hi", asked: "BC"},
		{name: "neither", req: request, reason: forward.Missed, asked: "BC"},
		{name: "neither can be reached", b: fails(forward.ErrNotSent), c: fails(forward.ErrNotSent), req: request, reason: forward.Unreachable, asked: "BC"},
		{name: "perhaps executed", b: fails(redirect.ErrUncertain), c: echo, req: request, reason: forward.Lost, asked: "B"},
		{
			name: "perhaps executed, which does no harm", b: fails(redirect.ErrUncertain), c: echo,
			req: redirect.Request{Member: "s", Payload: []byte("hi"), Idempotent: true}, answer: "hi", asked: "BC",
		},
		{name: "forwarded, and not there", b: fails(&forward.Error{Reason: forward.Away}), c: echo, req: request, answer: "hi", asked: "BC"},
		{name: "forwarded, and lost", b: fails(&forward.Error{Reason: forward.Lost, Err: redirect.ErrNotHere}), c: echo, req: request, reason: forward.Lost, asked: "B"},
		{name: "forwarded, and stopped", b: fails(&forward.Error{Reason: forward.Stopped}), c: echo, req: request, reason: forward.Lost, asked: "B"},
		{name: "a link that gave up by itself", b: fails(context.DeadlineExceeded), c: echo, req: request, reason: forward.Lost, asked: "B"},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPost(at("B", 6), at("C", 5))
				p.answers["B"], p.answers["C"] = row.b, row.c
				began := time.Now()
				answer, err := call(t.Context(), p, row.req)
				require.Equal(t, row.answer, answer)
				switch {
				case row.err != nil:
					require.Equal(t, row.err, err)
				case row.reason != forward.None:
					require.Equal(t, row.reason, reason(t, err))
				default:
					require.NoError(t, err)
				}
				var asked strings.Builder
				for _, id := range p.asked {
					asked.WriteString(string(id))
				}
				require.Equal(t, row.asked, asked.String())
				require.Equal(t, row.waiting, time.Since(began))
			})
		})
	}
}

func TestCallWaits(t *testing.T) {
	t.Run("for one that has just moved", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPost(at("B", 5))
			p.answers["C"] = echo
			time.AfterFunc(time.Second, func() { p.move() })
			time.AfterFunc(1500*time.Millisecond, func() { p.move(at("C", 6)) })
			answer, err := call(t.Context(), p, request)
			require.NoError(t, err)
			require.Equal(t, "hi", answer)
		})
	})
	t.Run("for word of one that nobody has", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPost()
			began := time.Now()
			_, err := call(t.Context(), p, redirect.Request{Member: "s", Session: "x"})
			require.Equal(t, forward.Nobody, reason(t, err))
			require.ErrorContains(t, err, `session "x"`)
			require.Equal(t, forward.DefaultSettle, time.Since(began))
		})
	})
	t.Run("not longer than its caller", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPost()
			gone := errors.New("the caller has gone")
			ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, gone)
			defer cancel()
			began := time.Now()
			_, err := call(ctx, p, request)
			require.Equal(t, forward.Stopped, reason(t, err))
			require.ErrorIs(t, err, gone)
			require.Equal(t, 100*time.Millisecond, time.Since(began))
		})
	})
	t.Run("and not at all, forwarded, for one that is not expected", func(t *testing.T) {
		p := newPost(at("B", 5))
		p.answers["B"] = echo
		_, err := forward.Call(t.Context(), forward.Config{Forwarded: true}, p, nil, request, forward.Hooks{})
		require.Equal(t, forward.Missed, reason(t, err))
		require.Empty(t, p.asked, "a second hop")
	})
}

func TestCallEndsWithItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(at("B", 6), at("C", 5))
		p.answers["B"] = func(ctx context.Context, _ redirect.Request) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() }
		p.answers["C"] = echo
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		idempotent := request
		idempotent.Idempotent = true
		_, err := call(ctx, p, idempotent)
		require.Equal(t, forward.Stopped, reason(t, err))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, []ring.GatewayID{"B"}, p.asked)
	})
}

// late is a context whose time is up, although its timer has not fired yet.
type late struct{ context.Context }

func (late) Deadline() (time.Time, bool) { return time.Now(), true }

// The other gateway has given up at the deadline that it shares with the caller,
// and its word comes before the caller's own timer.
func TestCallHearsOfItsDeadlineFirst(t *testing.T) {
	p := newPost(at("B", 6), at("C", 5))
	p.answers["B"] = func(context.Context, redirect.Request) ([]byte, error) { return nil, redirect.ErrUncertain }
	_, err := call(late{t.Context()}, p, request)
	require.Equal(t, forward.Stopped, reason(t, err))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, []ring.GatewayID{"B"}, p.asked)
}

func TestCallWithoutPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(at("B", 6))
		_, err := forward.Call(t.Context(), forward.Config{Patience: 1}, p, nil, request, forward.Hooks{})
		require.Equal(t, forward.Unreachable, reason(t, err))
		require.ErrorIs(t, err, forward.ErrNotSent)
	})
	_, err := forward.Call(t.Context(), forward.Config{Patience: -1}, newPost(), nil, request, forward.Hooks{})
	require.ErrorContains(t, err, "Config.Patience")
}

// One observation for each step, in order; the answer is the same with and without.
func TestObservation(t *testing.T) {
	p := newPost(at("B", 6), at("A", 5))
	p.answers["A"] = echo
	var seen []string
	forwarded := false
	answer, err := forward.Call(t.Context(), forward.Config{}, p, p, request, forward.Hooks{Observe: func(o forward.Observation) {
		seen = append(seen, fmt.Sprintf("%s %T -> %s", o.Before, o.Event, o.After))
		forwarded = forwarded || o.Forwarded
	}})
	require.NoError(t, err)
	require.False(t, forwarded)
	require.Equal(t, "hi", string(answer))
	require.Equal(t, []string{
		"idle forward.Begin -> sending",
		"sending forward.Routed -> sending",
		"sending forward.Answered -> sending",
		"sending forward.Routed -> sending",
		"sending forward.Answered -> over",
	}, seen)

	_, err = forward.Call(t.Context(), forward.Config{Forwarded: true}, p, p, request, forward.Hooks{Observe: func(o forward.Observation) {
		forwarded = o.Forwarded
	}})
	require.NoError(t, err)
	require.True(t, forwarded)
}

// A caller's gateway has not got the supervisor: its request goes one hop.
func ExampleCall() {
	ctx := context.Background()
	one, err := redirect.NewGateway(redirect.Config{Gateway: "gw-1", Incarnation: 1, Endpoint: "gw-1"}, redirect.Hooks{})
	if err != nil {
		fmt.Println(err)
		return
	}
	two, err := redirect.NewGateway(redirect.Config{Gateway: "gw-2", Incarnation: 1, Endpoint: "gw-2"}, redirect.Hooks{})
	if err != nil {
		fmt.Println(err)
		return
	}

	// A supervisor's stream at gw-2, and how requests get to its other end.
	_, stream := two.Admit(ctx, redirect.Hello{Member: "edge-1", Generation: 1, Stay: true, Answers: true})
	stream.Carry(func(_ context.Context, payload []byte) ([]byte, error) {
		return append(payload, " from edge-1"...), nil
	})
	// What gw-1 has heard of gw-2.
	one.Step(roster.Received{From: "gw-2", Message: roster.Snapshot{
		Origin:  roster.Origin{Gateway: "gw-2", Endpoint: "gw-2", State: placement.Ready, Counts: placement.Counts{Incarnation: 1, Sequence: 1, Attached: 1}},
		Entries: []roster.Entry{{Member: "edge-1", Generation: 1}}, Pages: 1,
	}})

	answer, err := forward.Call(ctx, forward.Config{}, one, hop{two}, redirect.Request{Member: "edge-1", Payload: []byte("hello")}, forward.Hooks{})
	fmt.Println(string(answer), err)
	// Output: hello from edge-1 <nil>
}

// hop is a peer link to one gateway: the other end never forwards again.
type hop struct{ to *redirect.Gateway }

func (h hop) Forward(ctx context.Context, _ placement.Gateway, req redirect.Request) ([]byte, error) {
	return forward.Call(ctx, forward.Config{Forwarded: true}, h.to, nil, req, forward.Hooks{})
}
