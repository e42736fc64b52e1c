// SPDX-License-Identifier: Apache-2.0

package redirectws

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/handoff"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/supervisor"
	"github.com/evenring/evenring/ring"
)

// quick is a drain that takes no longer than it must.
var quick = handoff.Config{Propagation: 50 * time.Millisecond, Window: 100 * time.Millisecond, Linger: 50 * time.Millisecond}

// serviceTransport dials one of the gateways that serve under the address "service".
type serviceTransport struct {
	Transport
	fleet *callFleet
}

func (s serviceTransport) Dial(ctx context.Context, addr string, hello redirect.Hello) (redirect.Verdict, redirect.Stream, error) {
	if addr == "service" {
		addr = s.fleet.any().addr
	}
	return s.Transport.Dial(ctx, addr, hello)
}

// callFleet is gateways that come and go, supervisors, and callers.
type callFleet struct {
	*fleet
	t testing.TB

	mu      sync.Mutex
	serving []*gate // that callers and supervisors may dial
	started int
	callers map[*gate]client
	busy    map[*gate]*sync.WaitGroup // calls at it
	count   map[string]int            // how often each request was executed
	begun   chan string               // requests that are held have begun
}

func newCallFleet(t testing.TB) *callFleet {
	return &callFleet{fleet: newFleet(), t: t, callers: make(map[*gate]client), busy: make(map[*gate]*sync.WaitGroup), count: make(map[string]int), begun: make(chan string, 100)}
}

func (f *callFleet) any() *gate {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.serving[rand.IntN(len(f.serving))]
}

// add starts a gateway, which is known to all before anybody dials it.
func (f *callFleet) add() *gate {
	f.started++
	g := f.start(f.t, ring.GatewayID(fmt.Sprint("g", f.started)), taking)
	f.fleet.mu.Lock()
	all := maps.Clone(f.gates)
	f.fleet.mu.Unlock()
	for id, other := range all {
		g.Step(roster.LinkUp{Gateway: id})
		other.Step(roster.LinkUp{Gateway: g.ID()})
	}
	for _, other := range all {
		other.Step(roster.Discovered{Gateways: slices.Collect(maps.Keys(all))})
	}
	eventually(f.t, func() bool {
		if !g.Ready().Callers.OK {
			return false
		}
		for _, other := range all {
			if other.Stats().Placeable < len(all) {
				return false
			}
		}
		return true
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.serving = append(f.serving, g)
	f.callers[g] = caller(f.t, g.addr)
	f.busy[g] = new(sync.WaitGroup)
	return g
}

// withdraw takes a gateway out of the Service.
func (f *callFleet) withdraw(g *gate) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.serving = slices.DeleteFunc(f.serving, func(other *gate) bool { return other == g })
}

// remove does what a gateway does that stops, once it has drained.
func (f *callFleet) remove(g *gate) {
	f.withdraw(g)
	g.EndAll(redirect.ReasonStopped)
	require.NoError(f.t, g.handler.Shutdown(inTime(f.t)))
	require.NoError(f.t, g.server.http.Shutdown(inTime(f.t)))
	f.fleet.mu.Lock()
	delete(f.gates, g.ID())
	rest := maps.Clone(f.gates)
	f.fleet.mu.Unlock()
	for _, other := range rest {
		other.Step(roster.Departed{Gateway: g.ID()})
	}
}

// supervise runs a supervisor that answers every request with itself; one that
// begins with "hold" only when the supervisor has moved.
func (f *callFleet) supervise(m ring.MemberID) *supervisor.Homes {
	homes := new(supervisor.Homes)
	return f.run(m, homes, func(ctx context.Context, request []byte) ([]byte, error) {
		f.mu.Lock()
		f.count[string(request)]++
		f.mu.Unlock()
		if strings.HasPrefix(string(request), "hold") {
			_, moved := homes.Home()
			f.begun <- string(request)
			select {
			case <-moved:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		return request, nil
	})
}

// run runs a supervisor until the test ends. homes tells where it is.
func (f *callFleet) run(m ring.MemberID, homes *supervisor.Homes, answer func(context.Context, []byte) ([]byte, error)) *supervisor.Homes {
	tr := plain
	tr.Serve = answer
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		cfg := supervisor.Config{Member: m, Service: "service"}
		_ = supervisor.Run(ctx, cfg, serviceTransport{tr, f}, supervisor.Hooks{Home: homes.Set})
	})
	f.t.Cleanup(func() { stop(); running.Wait() })
	eventually(f.t, func() bool { h, _ := homes.Home(); return h.Gateway != "" })
	return homes
}

// callAny makes one request at any gateway that serves.
func (f *callFleet) callAny(m ring.MemberID, payload string) error {
	f.mu.Lock()
	g := f.serving[rand.IntN(len(f.serving))]
	busy := f.busy[g]
	busy.Add(1)
	f.mu.Unlock()
	defer busy.Done()
	return f.call(g, m, payload)
}

// call makes one request at a gateway and checks the answer.
func (f *callFleet) call(at *gate, m ring.MemberID, payload string) error {
	f.mu.Lock()
	client := f.callers[at]
	f.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	answer, err := call(ctx, client, m, payload)
	if err == nil && answer != payload {
		err = errors.New("another answer: " + answer)
	}
	if err != nil {
		return fmt.Errorf("%s for %s at %s: %w", payload, m, at.ID(), err)
	}
	return nil
}

// S44: requests that are being answered while their gateway drains, and then stops, get their
// answers, whether they came in there or elsewhere.
func TestRequestsSurviveADrain(t *testing.T) {
	f := newCallFleet(t)
	old := f.add()
	homes := f.supervise("s")
	// A second supervisor, whose answers wait for the test and not for the move.
	begun, release := make(chan struct{}, 2), make(chan struct{})
	slow := f.run("slow", new(supervisor.Homes), func(_ context.Context, request []byte) ([]byte, error) {
		begun <- struct{}{}
		<-release
		return request, nil
	})
	letGo := sync.OnceFunc(func() { close(release) })
	t.Cleanup(letGo)
	next := f.add()
	eventually(t, func() bool { return next.knows("s") == roster.Elsewhere && next.knows("slow") == roster.Elsewhere })

	results := make(chan error, 4)
	for i, at := range []*gate{old, next} {
		go func() { results <- f.call(at, "s", fmt.Sprint("hold ", i)) }()
		receiveFrom(t, f.begun)
		go func() { results <- f.call(at, "slow", fmt.Sprint("slow ", i)) }()
		receiveFrom(t, begun)
	}
	report, err := handoff.Drain(t.Context(), old.Gateway, quick, handoff.Hooks{})
	require.NoError(t, err)
	require.Empty(t, report.Left, "%+v", report)
	for _, h := range []*supervisor.Homes{homes, slow} {
		home, _ := h.Home()
		require.Equal(t, next.ID(), home.Gateway)
	}
	for range 2 {
		require.NoError(t, receiveFrom(t, results), "one that is answered when its supervisor has moved")
	}
	require.Empty(t, results)

	stopped := make(chan struct{})
	go func() { defer close(stopped); f.remove(old) }()
	eventually(t, func() bool { return old.knows("slow") == roster.Elsewhere })
	letGo()
	for range 2 {
		require.NoError(t, receiveFrom(t, results), "one that is answered when its gateway stops")
	}
	receiveFrom(t, stopped)
	require.Equal(t, map[string]int{"hold 0": 1, "hold 1": 1}, f.count)
}

// S50: every gateway is replaced by another, one after the other, with a request to each
// supervisor every 10 ms through whichever gateway: none fails, and none is executed twice.
func TestCallsDuringARollingDrain(t *testing.T) {
	const gateways, supervisors = 3, 9
	f := newCallFleet(t)
	for range gateways {
		f.add()
	}
	members := make([]ring.MemberID, supervisors)
	homes := make(map[ring.MemberID]*supervisor.Homes)
	for i := range members {
		members[i] = ring.MemberID(fmt.Sprint("s", i))
		homes[members[i]] = f.supervise(members[i])
	}
	rest := slices.Clone(f.serving)
	for _, g := range rest {
		eventually(t, func() bool {
			return !slices.ContainsFunc(members, func(m ring.MemberID) bool { return g.knows(m) != roster.Here && g.knows(m) != roster.Elsewhere })
		})
	}

	var calling sync.WaitGroup
	var mu sync.Mutex
	var failures []error
	calls := 0
	failed := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		calls++
		if err != nil {
			failures = append(failures, err)
		}
	}
	over := make(chan struct{})
	enough := sync.OnceFunc(func() { close(over); calling.Wait() })
	t.Cleanup(enough)
	for _, m := range members {
		calling.Go(func() {
			pace := time.NewTicker(10 * time.Millisecond)
			defer pace.Stop()
			for n := 0; ; n++ {
				select {
				case <-pace.C:
					failed(f.callAny(m, fmt.Sprint(m, "/", n)))
				case <-over:
					return
				}
			}
		})
	}

	for _, old := range rest {
		f.add()
		held := 0
		for _, m := range members {
			if h, _ := homes[m].Home(); h.Gateway == old.ID() {
				held++
				calling.Go(func() {
					failed(f.callAny(m, fmt.Sprint("hold ", m, " at ", old.ID())))
				})
			}
		}
		require.Equal(t, supervisors/gateways, held)
		for range held {
			receiveFrom(t, f.begun)
		}
		report, err := handoff.Drain(t.Context(), old.Gateway, quick, handoff.Hooks{})
		require.NoError(t, err)
		require.Empty(t, report.Left, "%+v", report)
		f.withdraw(old)
		f.busy[old].Wait()
		f.remove(old)
	}
	enough()
	require.Empty(t, failures)
	for payload, n := range f.count {
		require.Equal(t, 1, n, payload)
	}
	require.Len(t, f.count, calls)
	t.Logf("%d calls", calls)
	require.Greater(t, calls, 100)
}
