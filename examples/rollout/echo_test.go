// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/examples/internal/report"
	"github.com/evenring/evenring/examples/internal/wire"
	"github.com/evenring/evenring/redirect"
)

// paperCaller is a caller whose supervisors exist on paper only.
type paperCaller struct {
	call func(redirect.Request) ([]byte, error)

	mu     sync.Mutex
	closed int
	open   int
}

func (c *paperCaller) Call(_ context.Context, req redirect.Request) ([]byte, error) {
	return c.call(req)
}

func (c *paperCaller) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed++
	return nil
}

// connect counts, too.
func (c *paperCaller) connect() wire.Caller {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open++
	return c
}

// asking begins to ask supervisors that answer as call says, once it has echoes.
func asking(t *testing.T, call func(*echoes, redirect.Request) ([]byte, error), members ...string) (*echoes, *paperCaller) {
	t.Helper()
	var e *echoes
	begun := make(chan struct{})
	c := &paperCaller{call: func(req redirect.Request) ([]byte, error) { <-begun; return call(e, req) }}
	e = newEchoes(config{echoEvery: time.Millisecond}, c.connect, members)
	close(begun)
	t.Cleanup(func() {
		require.NoError(t, e.close())
		c.mu.Lock()
		defer c.mu.Unlock()
		require.Equal(t, c.open, c.closed, "every caller is closed once")
	})
	return e, c
}

// sent waits until so many requests were sent.
func (e *echoes) sent(t *testing.T, n int) {
	t.Helper()
	eventually(t, func() bool { e.mu.Lock(); defer e.mu.Unlock(); return len(e.executed) >= n })
}

func TestEchoesAreAnsweredOnceEach(t *testing.T) {
	var mu sync.Mutex
	seen, who := make(map[string]int), make(map[string]int)
	e, _ := asking(t, func(e *echoes, req redirect.Request) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		require.False(t, req.Idempotent)
		seen[string(req.Payload)]++
		who[string(req.Member)]++
		e.heard(string(req.Payload))
		return req.Payload, nil
	}, "a", "b", "c")
	e.sent(t, 50)
	first := e.take()
	e.sent(t, 100)
	require.NoError(t, e.stop(t.Context()))
	last := e.take()
	require.Empty(t, append(first.judge(false), last.judge(false)...))
	require.Positive(t, last.Sent)
	require.Zero(t, last.Failed+last.Uncertain+last.Twice)
	require.Positive(t, last.MSMax)
	require.LessOrEqual(t, last.MSP50, last.MSP99)
	require.LessOrEqual(t, last.MSP99, last.MSMax)
	require.Len(t, seen, first.Sent+last.Sent, "no two are alike")
	require.Len(t, who, 3)
	require.Zero(t, e.take().Sent, "it has stopped")
}

func TestEchoesThatGoWrongAreCounted(t *testing.T) {
	for name, row := range map[string]struct {
		call func(*echoes, redirect.Request) ([]byte, error)
		want func(Echo) int
		why  string
	}{
		"no answer":        {func(*echoes, redirect.Request) ([]byte, error) { return nil, errors.New("planted") }, func(e Echo) int { return e.Failed }, "have no answer: a, after"},
		"uncertain":        {func(*echoes, redirect.Request) ([]byte, error) { return nil, redirect.ErrUncertain }, func(e Echo) int { return e.Uncertain }, "have no answer: a, after"},
		"another's answer": {func(*echoes, redirect.Request) ([]byte, error) { return []byte("other"), nil }, func(e Echo) int { return e.Failed }, `was answered with "other"`},
		"executed twice": {func(e *echoes, req redirect.Request) ([]byte, error) {
			for range 3 {
				e.heard(string(req.Payload))
			}
			return req.Payload, nil
		}, func(e Echo) int { return e.Twice }, "requests were executed twice"},
	} {
		t.Run(name, func(t *testing.T) {
			e, _ := asking(t, row.call, "a")
			e.sent(t, 10)
			require.NoError(t, e.stop(t.Context()))
			got := e.take()
			counted := row.want(got)
			require.Equal(t, got.Sent, counted, "%+v", got)
			why := got.judge(false)
			require.Len(t, why, 1)
			require.Contains(t, why[0], row.why)
		})
	}
}

// If processes are killed, requests may go without an answer; none is executed twice even so.
func TestJudgeEchoOfAKill(t *testing.T) {
	lost := Echo{Sent: 9, Failed: 1, Uncertain: 2, first: errors.New("planted")}
	require.Empty(t, lost.judge(true))
	require.Equal(t, []string{"3 of 9 requests have no answer: planted"}, lost.judge(false))
	require.Contains(t, lost.line(), "9 requests  failed 1  uncertain 2  twice 0")
	require.Contains(t, lost.line(), "without an answer: planted")
	lost.Twice = 1
	require.Equal(t, []string{"1 requests were executed twice"}, lost.judge(true))
	for _, s := range steps {
		require.Equal(t, s.name == "crash" || s.name == "restart-supervisors" || s.name == chaosStep, s.kills, s.name)
	}
}

func TestEchoesStopOnlyOnceSupervisorsHaveTold(t *testing.T) {
	e, _ := asking(t, func(_ *echoes, req redirect.Request) ([]byte, error) { return req.Payload, nil }, "a")
	e.sent(t, 1)
	errOver := errors.New("time is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errOver)
	err := e.stop(ctx)
	require.ErrorIs(t, err, errOver)
	require.ErrorContains(t, err, "no supervisor says that it has executed them")
	for _, strange := range []string{"", "hello", "echo-", "echo-x", "echo--1", "echo-1000000"} {
		e.heard(strange)
	}
	require.Zero(t, e.take().Twice)
}

func TestEchoesRenewTheirCallers(t *testing.T) {
	_, c := asking(t, func(_ *echoes, req redirect.Request) ([]byte, error) { return req.Payload, nil }, "a")
	eventually(t, func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.open > echoCallers && c.closed > 0 })
}

// While the echoes rest nothing is under way and no connection is open; then they go on.
func TestEchoesRest(t *testing.T) {
	var mu sync.Mutex
	under := 0
	e, c := asking(t, func(e *echoes, req redirect.Request) ([]byte, error) {
		mu.Lock()
		under++
		mu.Unlock()
		e.heard(string(req.Payload))
		mu.Lock()
		under--
		mu.Unlock()
		return req.Payload, nil
	}, "a", "b")
	e.sent(t, 5)
	resume := e.rest()
	mu.Lock()
	require.Zero(t, under)
	mu.Unlock()
	c.mu.Lock()
	require.GreaterOrEqual(t, c.closed, echoCallers, "all that had connections")
	c.mu.Unlock()
	e.mu.Lock()
	sent := len(e.executed)
	e.mu.Unlock()
	require.Empty(t, e.take().judge(false))
	require.Zero(t, e.take().Sent)
	resume()
	e.sent(t, sent+5)
}

func TestEchoPlus(t *testing.T) {
	first, second := errors.New("first"), errors.New("second")
	a := Echo{Sent: 5, Failed: 1, Uncertain: 2, Twice: 3, MSP50: 1, MSP99: 9, MSMax: 10, first: first}
	b := Echo{Sent: 7, Failed: 4, Uncertain: 5, Twice: 6, MSP50: 2, MSP99: 3, MSMax: 20, first: second}
	require.Equal(t, Echo{Sent: 12, Failed: 5, Uncertain: 7, Twice: 9, MSP50: 2, MSP99: 9, MSMax: 20, first: first}, a.plus(b))
	require.Equal(t, second, Echo{}.plus(b).first)
}

func TestBalancerDialsWhoIsReady(t *testing.T) {
	lb := startBalancer(t, 1)
	_, err := lb.dial(t.Context(), "")
	require.ErrorContains(t, err, "no gateway is ready")
	newTarget(t, greet("a")).behind(t, lb, "a")
	c, err := lb.dial(t.Context(), "")
	require.NoError(t, err)
	defer c.Close()
	reads(t, c, "a")
	require.Zero(t, tracked(lb), "it does not pass through")
}

func TestEventsOfRequestsAreForTheEchoes(t *testing.T) {
	f := testFleet(t, quick())
	before := f.board.read().quiet
	f.event(report.Event{Kind: report.Executed, Member: "edge-1", Request: "echo-0"}) // nobody is asked: it is ignored
	e, _ := asking(t, func(_ *echoes, req redirect.Request) ([]byte, error) {
		f.event(report.Event{Kind: report.Executed, Member: "edge-1", Request: string(req.Payload)})
		return req.Payload, nil
	}, "edge-1")
	f.echoes.Store(e)
	e.sent(t, 5)
	eventually(t, func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return len(e.executed) > 0 && e.executed[len(e.executed)-1] == 1
	})
	require.GreaterOrEqual(t, f.board.read().quiet, before, "a request is no move")
}

// All the while that gateways are replaced, and that streams end and come back,
// every request is answered, and executed once.
func TestProgramAnswersAllTheWhile(t *testing.T) {
	for _, transport := range []string{"grpc", "websocket"} {
		t.Run(transport, func(t *testing.T) {
			p := newProgram(t, "-gateways", "2", "-supervisors", "4", "-steps", "rolling", "-propagation", "1s", "-window", "1s",
				"-transport", transport, "-echo", "3", "-json")
			var stdout, stderr bytes.Buffer
			p.Stdout, p.Stderr = &stdout, &stderr
			p.start(t)
			require.Zero(t, p.end(t), "%s%s", &stdout, &stderr)
			all := results(t, stdout.Bytes())
			require.Len(t, all, 2)
			require.Nil(t, all[0].Echo, "it begins after the first step")
			rolling := all[1]
			require.NotNil(t, rolling.Echo)
			require.Greater(t, rolling.Sent, 50)
			require.Zero(t, rolling.Failed+rolling.Uncertain+rolling.Twice, "%+v", rolling.Echo)
			require.Equal(t, 1, rolling.MaxMoves)
			require.Zero(t, rolling.GapMSMax)
			require.Equal(t, map[string]int{"gw-3": 2, "gw-4": 2}, rolling.Served)
			require.Equal(t, 1, strings.Count(stderr.String(), " requests  failed 0  uncertain 0  twice 0 "))
		})
	}
}
