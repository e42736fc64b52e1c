// SPDX-License-Identifier: Apache-2.0

package supervisortest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/evenring/evenring/handoff"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/forward"
	"github.com/evenring/evenring/redirect/session"
	"github.com/evenring/evenring/redirect/supervisor"
	"github.com/evenring/evenring/ring"
)

// quick is a drain that takes no longer than it must.
var quick = handoff.Config{Propagation: 50 * time.Millisecond, Window: 100 * time.Millisecond, Linger: 50 * time.Millisecond}

// service is the address in front of all gateways that serve.
const service = "service"

// fleet is gateways that come and go, and supervisors that run.
type fleet struct {
	*exam
	begun chan string // requests that are held have begun

	mu      sync.Mutex
	started int
	serving []*gate // that the Service has
	busy    map[*gate]*sync.WaitGroup
	count   map[string]int // how often each request was executed
}

func (e *exam) fleet(gateways int) *fleet {
	e.t.Helper()
	f := &fleet{exam: e, begun: make(chan string, 100), busy: make(map[*gate]*sync.WaitGroup), count: make(map[string]int)}
	for range gateways {
		f.add()
	}
	return f
}

// add starts a gateway, which is known to all before anybody dials it.
func (f *fleet) add() *gate {
	f.t.Helper()
	f.started++
	late := forward.Config{Patience: f.patience, Settle: f.patience} // as a busy machine is, with word of who has moved
	g := f.start(ring.GatewayID(fmt.Sprint("g", f.started)), Gate{Calls: &Calls{Forward: late}})
	f.meet()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.serving = append(f.serving, g)
	f.busy[g] = new(sync.WaitGroup)
	return g
}

// withdraw takes a gateway out of the Service, and waits for the calls at it.
func (f *fleet) withdraw(g *gate) {
	f.mu.Lock()
	f.serving = slices.DeleteFunc(f.serving, func(other *gate) bool { return other == g })
	busy := f.busy[g]
	f.mu.Unlock()
	busy.Wait()
}

// any returns a gateway of the Service, at which a call begins that ends with done.
func (f *fleet) any() (g *gate, done func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g = f.serving[rand.IntN(len(f.serving))]
	f.busy[g].Add(1)
	return g, f.busy[g].Done
}

// dialer dials the Service too.
type dialer struct {
	redirect.Transport
	fleet *fleet
}

// Dial implements [redirect.Transport].
func (d dialer) Dial(ctx context.Context, addr string, hello redirect.Hello) (redirect.Verdict, redirect.Stream, error) {
	if addr == service {
		g, done := d.fleet.any()
		done() // a stream is no call
		addr = g.addr
	}
	return d.Transport.Dial(ctx, addr, hello)
}

// resident is a supervisor that runs.
type resident struct {
	member ring.MemberID
	homes  supervisor.Homes
}

func (r *resident) home() ring.GatewayID { h, _ := r.homes.Home(); return h.Gateway }

// run runs a supervisor until the trial ends.
func (f *fleet) run(r *resident, hooks supervisor.Hooks, answer func(context.Context, []byte) ([]byte, error)) {
	f.t.Helper()
	hooks.Home = r.homes.Set
	f.background(func(ctx context.Context) {
		_ = supervisor.Run(ctx, supervisor.Config{Member: r.member, Service: service}, dialer{f.answering(answer), f}, hooks)
	})
	f.eventually(f.patience, func() string {
		if r.home() == "" {
			return fmt.Sprintf("no gateway has accepted %s", r.member)
		}
		return ""
	})
}

// background runs what runs until the trial ends.
func (f *fleet) background(run func(context.Context)) {
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { run(ctx) })
	f.t.Cleanup(func() { stop(); running.Wait() })
}

// supervise runs a supervisor that answers each request with itself, and one that begins with
// "hold" only when it has moved.
func (f *fleet) supervise(m ring.MemberID) *resident {
	f.t.Helper()
	r := &resident{member: m}
	f.run(r, supervisor.Hooks{}, func(ctx context.Context, request []byte) ([]byte, error) {
		f.mu.Lock()
		f.count[string(request)]++
		f.mu.Unlock()
		if strings.HasPrefix(string(request), "hold") {
			_, moved := r.homes.Home()
			f.begun <- string(request)
			select {
			case <-moved:
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-f.over:
			}
		}
		return request, nil
	})
	return r
}

// known waits until every gateway knows where everybody is.
func (f *fleet) known(residents []*resident) {
	f.t.Helper()
	for _, g := range f.all() {
		for _, r := range residents {
			want := roster.Elsewhere
			if r.home() == g.ID() {
				want = roster.Here
			}
			g.knows(r.member, want)
		}
	}
}

// drained hands over all that a gateway serves.
func (f *fleet) drained(g *gate) handoff.Report {
	f.t.Helper()
	report, err := handoff.Drain(f.bounded(), g.Gateway, quick, handoff.Hooks{})
	if err != nil || len(report.Left) > 0 {
		f.fatal("the drain of %s: error %v, report %+v; nobody should be left behind", g.ID(), err, report)
	}
	return report
}

// echoed makes a call at g, and returns what is wrong with its answer.
func (f *fleet) echoed(g *gate, m ring.MemberID, payload string) error {
	ctx, cancel := context.WithTimeout(f.ctx, f.patience)
	defer cancel()
	r := f.callFor(ctx, g, ask(m, payload))
	if r.err == nil && r.answer != payload {
		r.err = errors.New("another answer: " + r.answer)
	}
	if r.err != nil {
		return fmt.Errorf("%s for %s at %s: %w", payload, m, g.ID(), r.err)
	}
	return nil
}

// executed checks that each request was executed, and not twice.
func (f *fleet) executed(calls int) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for payload, n := range f.count {
		if n != 1 {
			f.fatal("request %q was executed %d times; it should be once", payload, n)
		}
	}
	if len(f.count) != calls {
		f.fatal("%d requests were executed; %d were made", len(f.count), calls)
	}
}

// noGap: supervisors and their sessions are at three gateways, of which one
// drains. Nobody is without a stream at any time, and each session ends where its supervisor is.
func noGap(e *exam) {
	const all = 6
	f := e.fleet(3)
	var gaps atomic.Int32
	connected := func(up bool, _ time.Time) {
		if !up {
			gaps.Add(1)
		}
	}
	residents := make([]*resident, all)
	var sessions [all]atomic.Value // where each is
	for i := range residents {
		residents[i] = &resident{member: ring.MemberID(fmt.Sprint("s", i))}
		f.run(residents[i], supervisor.Hooks{Connected: connected}, nil)
		f.background(func(ctx context.Context) {
			cfg := session.Config{Session: "x", Member: residents[i].member, Service: service, Debounce: time.Millisecond, Pace: 50 * time.Millisecond}
			_ = session.Run(ctx, cfg, dialer{e.transport(), f}, &residents[i].homes, session.Hooks{
				Stream:    func(_ redirect.Stream, gateway ring.GatewayID) { sessions[i].Store(gateway) },
				Connected: connected,
			})
		})
	}
	apart := func() string {
		for i, r := range residents {
			if at := sessions[i].Load(); at != r.home() {
				return fmt.Sprintf("%s is at %s, and its session at %v", r.member, r.home(), at)
			}
		}
		return ""
	}
	e.eventually(e.patience, apart)
	f.known(residents)
	gaps.Store(0)

	old, rest := f.serving[0], f.serving[1:]
	old.counts(e.patience, all/3, 0)
	f.drained(old)
	e.eventually(e.patience, func() string {
		for _, r := range residents {
			if r.home() == old.ID() {
				return fmt.Sprintf("%s is still at %s, which has drained", r.member, old.ID())
			}
		}
		return apart()
	})
	for _, g := range rest {
		g.counts(e.patience, all/2, 0)
	}
	e.eventually(e.patience, func() string {
		if s := old.Stats(); s.Sessions+s.Served > 0 {
			return fmt.Sprintf("%s, which has drained, serves %d, and %d sessions", old.ID(), s.Served, s.Sessions)
		}
		return ""
	})
	f.withdraw(old)
	old.retire()
	if n := gaps.Load(); n > 0 {
		e.fatal("supervisors and sessions were without a stream %d times; it should be never", n)
	}
}

// proofs (S34): supervisors are placed, come back after a refresh and move in a
// drain, at gateways that require proofs. Each stay is granted, none is refused, and
// somebody else's proof is worth nothing.
func proofs(e *exam) {
	const all = 9
	e.proofs.Required = true
	f := e.fleet(3)
	gates := slices.Clone(f.serving)
	for i := range all {
		f.run(&resident{member: ring.MemberID(fmt.Sprint("m", i))}, supervisor.Hooks{}, nil)
	}
	verdicts := func(o redirect.Outcome, r redirect.Reason) (n uint64) {
		for _, g := range gates {
			n += g.Stats().Verdicts[o][r]
		}
		return n
	}
	stays := func(want uint64, when string) {
		e.t.Helper()
		e.eventually(e.patience, func() string {
			if n := verdicts(redirect.Accept, redirect.ReasonStay); n != want {
				return fmt.Sprintf("%s, %d were accepted for they might stay; it should be %d", when, n, want)
			}
			return ""
		})
	}
	for _, g := range gates {
		g.counts(e.patience, all/3, 0)
	}
	sent := verdicts(redirect.Redirect, redirect.ReasonPlaced)
	stays(sent, "after each was sent where it belongs")
	gates[0].EndAll(redirect.ReasonExpired)
	stays(sent+all/3, "after a refresh")
	gates[0].counts(e.patience, all/3, 0)

	f.withdraw(gates[0])
	if report := f.drained(gates[0]); len(report.Moved) != all/3 {
		e.fatal("the drain moved %v; it should be %d", report.Moved, all/3)
	}
	stays(sent+2*all/3, "after a drain")
	if n := verdicts(redirect.Refuse, redirect.ReasonBadProof); n > 0 {
		e.fatal("%d were refused for their proofs", n)
	}

	// A thief has seen what somebody was told.
	tr := e.transport()
	verdict, _ := e.dial(tr, gates[0], gates[0].addr, redirect.Hello{Member: "honest", Generation: 1, CanRedirect: true})
	i := slices.IndexFunc(gates, func(g *gate) bool { return g.addr == verdict.Endpoint })
	if verdict.Outcome != redirect.Redirect || i < 0 {
		e.fatal("the verdict of one that has drained is %+v; it should be a redirect", verdict)
	}
	hello := redirect.Hello{Member: "thief", Generation: 1, CanRedirect: true, Stay: true, Hops: 1, Proof: verdict.Proof}
	refused, _ := e.dial(tr, gates[i], verdict.Endpoint, hello)
	if refused.Outcome != redirect.Refuse || refused.Reason != redirect.ReasonBadProof {
		e.fatal("the verdict on another's proof is %+v; it should be a refusal for that", refused)
	}
	hello.Member = "honest"
	_ = e.accepted(tr, gates[i], verdict.Endpoint, hello).Close()
}

// survival (S44): calls that are being answered while their gateway drains, and then
// stops, get their answers, whether they were made there or elsewhere.
func survival(e *exam) {
	f := e.fleet(1)
	old := f.serving[0]
	s := f.supervise("s")
	slow, h := &resident{member: "slow"}, newHeld() // whose answers wait for the trial, and not for the move
	f.run(slow, supervisor.Hooks{}, h.answer(e))
	next := f.add()
	f.known([]*resident{s, slow})

	results := make(chan error, 4)
	call := func(g *gate, m ring.MemberID, payload string) {
		e.running.Go(func() { results <- f.echoed(g, m, payload) })
	}
	for i, g := range []*gate{old, next} {
		call(g, "s", fmt.Sprint("hold ", i))
		receive(e, f.begun, "request")
		call(g, "slow", fmt.Sprint("slow ", i))
		receive(e, h.begun, "request")
	}
	two := func(when string) {
		e.t.Helper()
		for range 2 {
			if err := receive(e, results, "answer "+when); err != nil {
				e.fatal("%s: %v", when, err)
			}
		}
		if len(results) > 0 {
			e.fatal("%s: a call has ended whose member is not done: %v", when, <-results)
		}
	}
	f.drained(old)
	for _, r := range []*resident{s, slow} {
		if r.home() != next.ID() {
			e.fatal("%s is at %s after the drain; it should be at %s", r.member, r.home(), next.ID())
		}
	}
	two("when the supervisor has moved")
	stopped := make(chan struct{})
	f.withdraw(old)
	e.running.Go(func() { defer close(stopped); old.retire() })
	old.knows("slow", roster.Elsewhere)
	close(h.release)
	two("when the gateway stops")
	receive(e, stopped, "end of the gateway")
	f.executed(2)
}

// rolling (S50): every gateway is replaced by another, one after the other, with a call
// for each supervisor every 10 ms at whichever gateway, and one under way on each that
// moves. None fails, and none is executed twice.
func rolling(e *exam) {
	const gateways, supervisors = 3, 9
	f := e.fleet(gateways)
	residents := make([]*resident, supervisors)
	for i := range residents {
		residents[i] = f.supervise(ring.MemberID(fmt.Sprint("s", i)))
	}
	f.known(residents)

	var calling sync.WaitGroup
	var mu sync.Mutex
	var failures []error
	calls, over := 0, make(chan struct{})
	call := func(m ring.MemberID, payload string) {
		g, done := f.any()
		defer done()
		err := f.echoed(g, m, payload)
		mu.Lock()
		defer mu.Unlock()
		calls++
		if err != nil {
			failures = append(failures, err)
		}
	}
	enough := sync.OnceFunc(func() { close(over); calling.Wait() })
	e.t.Cleanup(enough)
	for _, r := range residents {
		calling.Go(func() {
			pace := time.NewTicker(10 * time.Millisecond)
			defer pace.Stop()
			for n := 0; ; n++ {
				select {
				case <-pace.C:
					call(r.member, fmt.Sprint(r.member, "/", n))
				case <-over:
					return
				}
			}
		})
	}
	for _, old := range slices.Clone(f.serving) {
		f.add()
		old.counts(e.patience, supervisors/gateways, 0)
		for _, r := range residents {
			if r.home() == old.ID() {
				calling.Go(func() { call(r.member, fmt.Sprint("hold ", r.member, " at ", old.ID())) })
				receive(e, f.begun, "request")
			}
		}
		f.drained(old)
		f.withdraw(old)
		old.retire()
	}
	enough()
	if len(failures) > 0 {
		e.fatal("%d of %d calls have failed; the first: %v", len(failures), calls, failures[0])
	}
	f.executed(calls)
	if enough := supervisors * gateways; calls < 2*enough {
		e.fatal("only %d calls were made; it should be %d at least, or nothing is shown", calls, 2*enough)
	}
}
