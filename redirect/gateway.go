// SPDX-License-Identifier: Apache-2.0

package redirect

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/ring"
)

// Gateway is what a gateway server uses: an [Admission] behind a lock, with a
// clock, and a goroutine (Run) for what is due later. All methods are safe for
// concurrent use; none blocks but Admit, MoveAway and Run.
//
// For every stream: Admit its hello, send the verdict, and if there is an
// attachment, pass its notices on, and a heartbeat every few seconds, until the stream ends
// and then call Leave.
type Gateway struct {
	cfg   Config
	hooks Hooks

	mu       sync.Mutex
	adm      *Admission
	streams  map[Key]*Attachment
	waiting  map[*Admitting]chan struct{} // closed when its turn has come
	watch    func(Departure)
	settling *Settling
	outgoing []roster.Send
	armed    time.Time // when Run wakes by itself; zero: it does not
	ended    bool      // Run has ended: nothing is sent any more
	routes   routes

	wake chan struct{} // something is waiting for Run
}

// Hooks are what a user may watch. They are called without the gateway's lock,
// on the goroutine at work: they must not block. Each may be nil.
type Hooks struct {
	Verdict   func(Observation)      // a hello has got its verdict
	Conflict  func(roster.Conflict)  // a newer process uses this gateway's ID
	Disagrees func(roster.Disagrees) // another gateway computes other rings than this one; once for each of its processes
	Delisted  func(roster.Delisted)  // discovery had this gateway and has it no more; see [Gateway.Delisted] for whether that is so still
	Rejected  func(roster.Rejected)  // a message or a link was ignored
}

// Observation is one hello and what became of it.
type Observation struct {
	Hello    Hello
	Verdict  Verdict
	Decision placement.Decision // the placement behind it; zero if it took none
	Asks     int                // questions put to other gateways
}

// NewGateway makes a gateway. Its error joins every fault of cfg.
func NewGateway(cfg Config, hooks Hooks) (*Gateway, error) {
	if cfg.Jitter == nil {
		cfg.Jitter = rand.Float64
	}
	adm, err := NewAdmission(time.Now(), cfg)
	if err != nil {
		return nil, err
	}
	return &Gateway{cfg: cfg.resolved(), hooks: hooks, adm: adm, streams: make(map[Key]*Attachment), waiting: make(map[*Admitting]chan struct{}), wake: make(chan struct{}, 1)}, nil
}

// ID returns the gateway's ID.
func (g *Gateway) ID() ring.GatewayID { return g.cfg.Gateway }

// Incarnation returns the gateway's incarnation.
func (g *Gateway) Incarnation() placement.Incarnation { return g.cfg.Incarnation }

// Run makes the gateway placeable and does what is due later, until ctx ends:
// it lets holds and reservations run out, and sends the roster's messages over
// transport. A nil transport is for a gateway that has no peers. Every gateway
// needs it, once: without it others never learn of this one.
func (g *Gateway) Run(ctx context.Context, transport roster.Transport) {
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.ended, g.outgoing = true, nil
	}()
	g.do(func(now time.Time, a *Admission) { a.Serve(now) })
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		g.do(func(now time.Time, a *Admission) {
			if at, ok := a.Deadline(); ok && !at.After(now) {
				a.Step(now, roster.Tick{})
			}
		})
		g.mu.Lock()
		sends := g.outgoing
		g.outgoing = nil
		g.armed, _ = g.adm.Deadline()
		armed := g.armed
		g.mu.Unlock()
		if transport != nil {
			for _, s := range sends {
				_ = transport.Send(s.To, roster.Append(nil, s.Message)) // a loss is repaired by the next heartbeat
			}
		}
		timer.Stop()
		if !armed.IsZero() {
			timer.Reset(time.Until(armed))
		}
		select {
		case <-ctx.Done():
			return
		case <-g.wake:
		case <-timer.C:
		}
	}
}

// Step feeds the roster with what its transport receives and sees.
// It implements [roster.Replica].
func (g *Gateway) Step(ev roster.Event) {
	g.do(func(now time.Time, a *Admission) { a.Step(now, ev) })
}

// do runs f under the lock and carries out what it leaves to be done.
func (g *Gateway) do(f func(now time.Time, a *Admission)) {
	g.mu.Lock()
	f(time.Now(), g.adm)
	out := g.adm.Take()
	for _, p := range out.Turns {
		if turn := g.waiting[p]; turn != nil {
			delete(g.waiting, p)
			g.begin(p)
			close(turn)
		}
	}
	for _, t := range out.Tells {
		if s := g.streams[t.Key]; s != nil {
			s.tell(t.Notice)
		}
	}
	if !g.ended {
		g.outgoing = append(g.outgoing, out.Sends...)
	}
	g.routes.notify(g.adm.Roster().Version())
	watch := g.watch
	at, due := g.adm.Deadline()
	if len(g.outgoing) > 0 || due && (g.armed.IsZero() || at.Before(g.armed)) {
		select {
		case g.wake <- struct{}{}:
		default:
		}
	}
	g.mu.Unlock()
	if watch != nil {
		for _, d := range out.Departures {
			watch(d)
		}
	}
	if g.hooks.Conflict != nil {
		for _, c := range out.Conflicts {
			g.hooks.Conflict(c)
		}
	}
	if g.hooks.Disagrees != nil {
		for _, d := range out.Disagrees {
			g.hooks.Disagrees(d)
		}
	}
	if g.hooks.Delisted != nil {
		for _, d := range out.Delisted {
			g.hooks.Delisted(d)
		}
	}
	if g.hooks.Rejected != nil {
		for _, r := range out.Rejected {
			g.hooks.Rejected(r)
		}
	}
}

// Admit gives a hello its verdict. It may ask other gateways first, each for
// no longer than Config.AskTimeout. The attachment is not nil exactly if the
// verdict is Accept. If ctx ends before there is a verdict, the verdict is zero.
func (g *Gateway) Admit(ctx context.Context, hello Hello) (Verdict, *Attachment) {
	var p *Admitting
	g.do(func(now time.Time, a *Admission) { p = a.Hello(now, hello); g.begin(p) })
	if !g.search(ctx, p) {
		return Verdict{}, nil
	}
	if g.hooks.Verdict != nil {
		g.hooks.Verdict(Observation{Hello: hello, Verdict: p.Verdict, Decision: p.Decision, Asks: p.Asked})
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return p.Verdict, g.streams[p.Key]
}

// begin is called under the lock that p was made under. It makes the
// attachment of a hello that was accepted, so that no notice is lost, or the
// way to tell p's goroutine of its turn.
func (g *Gateway) begin(p *Admitting) {
	switch {
	case p.Key != 0:
		g.streams[p.Key] = newAttachment(g, p)
		g.routes.stir()
	case !p.Done && p.Ask == nil:
		g.waiting[p] = make(chan struct{})
	}
}

// search waits for p's turn and puts its questions until it is done; false: ctx ended first.
func (g *Gateway) search(ctx context.Context, p *Admitting) bool {
	g.mu.Lock()
	turn := g.waiting[p]
	g.mu.Unlock()
	if turn != nil {
		select {
		case <-turn:
		case <-ctx.Done():
			return g.cancel(p)
		}
	}
	for p.Ask != nil {
		bounded, cancel := context.WithTimeout(ctx, g.cfg.AskTimeout)
		answer, err := g.cfg.Peers.Ask(bounded, p.Ask.To, p.Ask.Question)
		cancel()
		if ctx.Err() != nil { // not the target's fault
			return g.cancel(p)
		}
		g.do(func(now time.Time, a *Admission) {
			if err != nil {
				a.Unanswered(now, p, errors.Is(err, context.DeadlineExceeded))
			} else {
				a.Answered(now, p, answer)
			}
			g.begin(p)
		})
	}
	return true
}

// cancel gives p up. If it was done at the last moment it stands, and the
// caller learns that its stream has ended in the usual way.
func (g *Gateway) cancel(p *Admitting) (done bool) {
	g.do(func(now time.Time, a *Admission) {
		done = p.Done
		delete(g.waiting, p)
		a.Cancel(now, p)
	})
	return done
}

// Asked answers another gateway's question. The peer link calls it.
func (g *Gateway) Asked(q placement.Question) (answer placement.Answer) {
	g.do(func(now time.Time, a *Admission) { answer = a.Asked(now, q) })
	return answer
}

// StartDrain makes the gateway take nobody new, tells its peers, and returns
// whom it serves, in ID order. Until StopDrain, watch is called for every
// supervisor that leaves, and once more if one whose stream had closed shows
// up elsewhere; it must not block, and two calls about one supervisor may come
// in any order. A second drain is told so with [ErrDraining].
func (g *Gateway) StartDrain(watch func(Departure)) (all []Supervisor, err error) {
	g.do(func(now time.Time, a *Admission) {
		if all, err = a.StartDrain(now); err == nil {
			g.watch = watch
		}
	})
	return all, err
}

// StopDrain makes the gateway placeable again. Whoever has moved stays moved.
func (g *Gateway) StopDrain() {
	g.do(func(now time.Time, a *Admission) { a.StopDrain(now); g.watch = nil })
}

// MoveAway places an attached supervisor on another gateway and tells its
// stream to move there. It returns what the stream was told, [ErrNotHere],
// [ErrNotMovable] or [ErrNowhere], or ctx's error.
func (g *Gateway) MoveAway(ctx context.Context, m ring.MemberID) (Notice, error) {
	return g.move(ctx, func(now time.Time, a *Admission) (*Admitting, error) { return a.MoveAway(now, m) })
}

// move carries out what start begins.
func (g *Gateway) move(ctx context.Context, start func(time.Time, *Admission) (*Admitting, error)) (Notice, error) {
	var p *Admitting
	var err error
	g.do(func(now time.Time, a *Admission) {
		if p, err = start(now, a); err == nil {
			g.begin(p)
		}
	})
	if err != nil {
		return Notice{}, err
	}
	if !g.search(ctx, p) {
		return Notice{}, ctx.Err()
	}
	return p.Notice, p.Err
}

// End tells m's stream to end; false: it is not attached here.
func (g *Gateway) End(m ring.MemberID, reason Reason) (ok bool) {
	g.do(func(_ time.Time, a *Admission) { ok = a.End(m, reason) })
	return ok
}

// EndAll tells every stream to end, sessions' too: expired credentials, for one.
func (g *Gateway) EndAll(reason Reason) {
	g.do(func(_ time.Time, a *Admission) { a.EndAll(reason) })
}

// HandedOver counts how a drain or a settle ended, for [Stats].
func (g *Gateway) HandedOver(moved, closed, leftBehind int) {
	g.do(func(_ time.Time, a *Admission) { a.HandedOver(moved, closed, leftBehind) })
}

// Supervisors returns who is attached, in ID order.
func (g *Gateway) Supervisors() (all []Supervisor) {
	g.do(func(_ time.Time, a *Admission) { all = a.Supervisors() })
	return all
}

// Gateways returns the fleet as this gateway knows it, in ID order.
func (g *Gateway) Gateways() (all []placement.Gateway) {
	g.do(func(_ time.Time, a *Admission) { all = slices.Collect(a.Roster().Gateways()) })
	return all
}

// Disagreeing returns the gateways that compute other rings than this one, in
// ID order, as [roster.Roster.Disagreeing] has it.
func (g *Gateway) Disagreeing() (odd []ring.GatewayID) {
	g.do(func(_ time.Time, a *Admission) { odd = slices.Collect(a.Roster().Disagreeing()) })
	return odd
}

// Delisted reports whether discovery has dropped this gateway, as
// [roster.Roster.Delisted] has it: nobody is placed here until it is listed again, and
// whoever asks to stay is kept. Nothing is handed over by itself: that takes a
// drain, one with handoff.Config.Keep, for a discovery that is mistaken is to close nothing.
func (g *Gateway) Delisted() (dropped bool) {
	g.do(func(_ time.Time, a *Admission) { dropped = a.Roster().Delisted() })
	return dropped
}

// Ready returns whether supervisors may dial this gateway and whether callers may use it, and why.
func (g *Gateway) Ready() (r roster.Readiness) {
	g.do(func(now time.Time, a *Admission) { r = a.Roster().Ready(now) })
	return r
}

// Explain tells where m would be placed now, and why, as [Admission.Explain]
// has it. It places nobody.
func (g *Gateway) Explain(m ring.MemberID, avoid ...ring.GatewayID) (e placement.Explanation) {
	g.do(func(now time.Time, a *Admission) { e = a.Explain(now, m, avoid...) })
	return e
}

// Stats reads the gateway's figures.
func (g *Gateway) Stats() (s Stats) {
	g.do(func(now time.Time, a *Admission) { s = a.Stats(now) })
	return s
}
