// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/evenring/evenring/handoff"
	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// Gateway is one gateway process.
type Gateway struct {
	*host
	ID          ring.GatewayID
	Endpoint    string
	Incarnation placement.Incarnation
	Admission   *redirect.Admission
	Alive       bool
	InService   bool           // the load balancer picks it
	Asks        int            // questions it has put
	Report      handoff.Report // of its drain, once that is over

	streams map[redirect.Key]*stream
	waiting map[*redirect.Admitting]func()
	due     time.Time // the next look at the admission's deadline that is planned
	drain   *handoff.Machine
	orders  []*redirect.Admitting // of the drain
	drained int                   // whom it served when that began
	keep    bool                  // it lives on after its drain
	settles *Settlement
	calls   []*Call // under way
	asking  time.Duration
	listed  line // what discovery says
	watch   gatewayWatch
}

// never satisfies redirect.Peers: the world carries questions itself.
type never struct{}

func (never) Ask(context.Context, placement.Gateway, placement.Question) (placement.Answer, error) {
	return placement.Answer{}, errors.New("sim: the world carries questions")
}

// StartGateway starts a gateway and connects it with every live one. Under an ID
// that was used before it is a new incarnation.
func (w *World) StartGateway(id ring.GatewayID) *Gateway {
	h := &host{w: w, clock: w.Clocks[string(id)]}
	w.lastStart = max(w.lastStart+1, placement.Incarnation(h.now().UnixNano()))
	g := &Gateway{
		host: h, ID: id, Endpoint: fmt.Sprint("peer-", id), Incarnation: w.lastStart, Alive: true,
		streams: make(map[redirect.Key]*stream), waiting: make(map[*redirect.Admitting]func()), watch: newGatewayWatch(),
	}
	g.serve(true)
	cfg := redirect.Config{Gateway: id, Incarnation: w.lastStart, Endpoint: g.Endpoint, Jitter: w.rnd.Float64}
	if !w.cfg.NoAsks {
		cfg.Peers = never{}
	}
	if w.cfg.Gateway != nil {
		w.cfg.Gateway(&cfg)
	}
	if w.Spoil.Gateway != nil {
		w.Spoil.Gateway(&cfg)
	}
	g.asking = cmp.Or(cfg.AskTimeout, redirect.DefaultAskTimeout)
	g.Endpoint = cfg.Endpoint
	a, err := redirect.NewAdmission(g.now(), cfg)
	if err != nil {
		panic(err) // a fault of the test
	}
	g.Admission = a
	if at, started := slices.BinarySearch(w.ids, id); !started {
		w.ids = slices.Insert(w.ids, at, id)
	}
	if old := w.Gateways[id]; old != nil && old.Alive {
		w.elders = append(w.elders, old)
	}
	w.Gateways[id] = g
	a.Serve(g.now())
	for _, other := range w.ids {
		if p := w.Gateways[other]; p != g && p.Alive && !w.cut(string(id), string(other)) {
			p.feed(roster.LinkUp{Gateway: id})
			g.step(roster.LinkUp{Gateway: other})
		}
	}
	g.settle()
	w.trace(string(id), "started, %d", g.Incarnation)
	if w.Discovery {
		w.Discover()
	}
	return g
}

// serve tells the Service whether the gateway is to be picked. If the Service
// is slow it sees, when it looks, what is so by then.
func (g *Gateway) serve(in bool) {
	if g.w.Links.Lag == 0 {
		g.InService = in
		return
	}
	g.w.after(time.Duration(g.w.rnd.Int64N(int64(g.w.Links.Lag))), func() { g.InService = g.Alive && g.drain == nil })
}

// Step gives the roster an event, as the gateway's transport or discovery would.
func (g *Gateway) Step(ev roster.Event) { g.feed(ev) }

// feed gives the roster an event, in the gateway's own time.
func (g *Gateway) feed(ev roster.Event) { g.do(func() { g.step(ev) }) }

func (g *Gateway) step(ev roster.Event) {
	g.watch.hear(g.now(), ev)
	if ev = g.w.Spoil.roster(g, ev); ev != nil {
		g.Admission.Step(g.now(), ev)
	}
}

// known is what is known of a member at a gateway.
type known struct {
	member     ring.MemberID
	generation placement.Generation // the newest
	home       bool                 // its home is here
}

func (g *Gateway) knows(m ring.MemberID) known {
	home, e, _ := g.Admission.Roster().Home(m)
	return known{m, max(e.Generation, g.watch.accepted[m]), home == g.ID}
}

// Kill ends the gateway without a word: its streams break.
func (g *Gateway) Kill() {
	g.Alive = false
	g.serve(false)
	g.wipe()
	for _, key := range sorted(g.streams) {
		g.streams[key].breakAtClient()
	}
	for _, c := range g.calls {
		c.forsaken()
	}
	g.calls = nil
	g.w.trace(string(g.ID), "killed")
	if g.w.Discovery && g.w.Obituaries {
		g.w.Discover()
	}
}

// Crash ends the gateway's machine: nobody is told, and each finds out in his own time.
func (g *Gateway) Crash() {
	streams := g.streams
	g.streams = nil
	g.Kill()
	for _, key := range sorted(streams) {
		st := streams[key]
		st.broken = true
		g.w.after(g.w.notice(st.end.name, string(g.ID)), st.breakAtClient)
	}
	for _, id := range g.w.ids {
		if id != g.ID {
			g.w.loseLink(string(id), string(g.ID))
		}
	}
}

// Stop ends the gateway after a word to its peers.
func (g *Gateway) Stop() {
	g.Kill()
	for _, id := range g.w.ids {
		if p := g.w.Gateways[id]; p.Alive && !g.w.cut(string(id), string(g.ID)) {
			g.w.deliver(string(g.ID), string(id), func() { p.feed(roster.Departed{Gateway: g.ID, Incarnation: g.Incarnation}) })
		}
	}
}

// Drain hands everybody over, and then stops the gateway, unless cfg.Keep.
func (g *Gateway) Drain(cfg handoff.Config) error {
	m, err := handoff.New(cfg)
	if err != nil {
		return err
	}
	all, err := g.Admission.StartDrain(g.now())
	if err != nil {
		return err
	}
	members := make([]handoff.Member, len(all))
	for i, s := range all {
		members[i] = handoff.Member{ID: s.Member, Movable: s.Movable}
	}
	g.drain, g.drained, g.orders, g.keep = m, len(all), nil, cfg.Keep
	g.serve(false)
	g.w.trace(string(g.ID), "drains %d", len(all))
	g.hand(handoff.Begin{Members: members})
	g.settle()
	return nil
}

// Abort ends the drain where it stands.
func (g *Gateway) Abort() { g.do(func() { g.hand(handoff.Abort{}) }) }

func (g *Gateway) hand(ev handoff.Event) {
	w, m := g.w, g.drain
	if w.Spoil.Drain != nil {
		ev = w.Spoil.Drain(ev)
	}
	if m == nil || ev == nil {
		return
	}
	actions := m.Step(g.now(), ev)
	if w.Watch != nil {
		w.Watch.drain(g, ev, actions)
	}
	for _, act := range actions {
		switch act := act.(type) {
		case handoff.Order:
			p, err := g.Admission.MoveAway(g.now(), act.Member)
			if err != nil {
				w.after(0, func() { g.do(func() { g.hand(handoff.Ordered{Member: act.Member}) }) })
				continue
			}
			g.orders = append(g.orders, p)
			g.await(p, func() {
				g.hand(handoff.Ordered{Member: act.Member, Told: p.Err == nil, Target: p.Notice.Gateway})
			})
			g.at(act.Until, func() {
				if g.waiting[p] != nil { // it is of no use any more
					delete(g.waiting, p)
					g.do(func() {
						g.Admission.Cancel(g.now(), p)
						g.hand(handoff.Ordered{Member: act.Member})
					})
				}
			})
		case handoff.Close:
			g.Admission.End(act.Member, redirect.ReasonStopped)
		case handoff.Resume:
			g.Admission.StopDrain(g.now())
			g.drain = nil
			for _, p := range g.orders {
				if !p.Done {
					delete(g.waiting, p)
					g.Admission.Cancel(g.now(), p)
				}
			}
			g.serve(true)
		case handoff.Finished:
			g.Report = act.Report
			w.trace(string(g.ID), "%s", act.Report)
			if g.Alive && !act.Report.Aborted && !g.keep {
				g.settle()
				g.Stop()
			}
		}
	}
	g.settle()
	if at, ok := m.Deadline(); ok && g.drain == m {
		g.at(at, func() {
			if due, ok := m.Deadline(); ok && g.Alive && g.drain == m && !due.After(g.now()) {
				g.hand(handoff.Tick{})
			}
		})
	}
}

// do runs f if the gateway lives, and carries out what follows.
func (g *Gateway) do(f func()) {
	g.enter(func() {
		if g.Alive {
			if g.w.Watch != nil {
				g.watch.look(g)
			}
			f()
			g.settle()
			if g.w.Watch != nil {
				g.w.Watch.caps(g)
			}
		}
	})
}

// settle carries out what the admission wants done.
func (g *Gateway) settle() {
	w := g.w
	out := g.Admission.Take()
	for _, p := range out.Turns {
		g.ask(p)
	}
	for _, t := range out.Tells {
		g.tell(t)
	}
	if !w.Mute {
		for _, send := range out.Sends {
			bytes := roster.Append(nil, send.Message)
			arrive := func(p *Gateway) {
				p.do(func() {
					if m, err := roster.Decode(bytes); err == nil {
						p.step(roster.Received{From: g.ID, Message: m})
					}
				})
			}
			for _, id := range w.ids {
				if w.Gateways[id] != g && (send.To == "" || send.To == id) {
					if w.Said != nil {
						w.Said(send.Message, len(bytes))
					}
					w.tell(string(g.ID), string(id), func() { arrive(w.Gateways[id]) })
				}
			}
			for _, p := range w.elders {
				if p != g && p.Alive && send.To == "" {
					w.tell(string(g.ID), string(p.ID), func() { arrive(p) })
				}
			}
		}
	}
	if g.drain != nil {
		for _, d := range out.Departures {
			w.after(0, func() {
				g.do(func() {
					if d.To != "" {
						g.hand(handoff.Moved{Member: d.Member, To: d.To})
					} else {
						g.hand(handoff.Closed{Member: d.Member})
					}
				})
			})
		}
	}
	if len(out.Conflicts) > 0 && w.Conflict != nil {
		w.after(0, func() { g.do(func() { w.Conflict(g) }) })
	}
	if len(out.Delisted) > 0 && w.Delisted != nil {
		w.after(0, func() { g.do(func() { w.Delisted(g) }) })
	}
	for _, r := range out.Rejected {
		if w.Rejected != nil {
			w.Rejected(g, r)
		}
	}
	for _, c := range slices.Clone(g.calls) {
		c.look()
	}
	if at, ok := g.Admission.Deadline(); ok && (at.Before(g.due) || !g.due.After(g.now())) {
		g.due = at
		g.at(at, func() {
			g.do(func() {
				if due, ok := g.Admission.Deadline(); ok && !due.After(g.now()) {
					g.Admission.Step(g.now(), roster.Tick{})
					if w.Watch != nil {
						w.Watch.ticked(g)
					}
				}
			})
		})
	}
	if w.Watch != nil {
		w.Watch.gateway(g)
	}
}

// tell gives a notice to a stream.
func (g *Gateway) tell(t redirect.Tell) {
	w, s, n := g.w, g.streams[t.Key], t.Notice
	if s == nil {
		return
	}
	if w.Spoil.Notice != nil {
		n = w.Spoil.Notice(g, n)
	}
	if w.Watch != nil {
		w.Watch.tells(g, s, n)
	}
	w.trace(string(g.ID), "tells %s: %s (%s) %s", s.end.who, n.Kind, n.Reason, n.Gateway)
	s.notice(n)
	if n.Kind == redirect.NoticeEnd {
		s.over = true
		w.after(w.cfg.MaxLatency, func() { s.closeAtGateway(false); s.breakAtClient() })
	}
}

// await calls done once p is done.
func (g *Gateway) await(p *redirect.Admitting, done func()) {
	g.waiting[p] = done
	g.settle()
	g.ask(p)
}

// ask carries p's questions until it is done.
func (g *Gateway) ask(p *redirect.Admitting) {
	if done := g.waiting[p]; p.Done && done != nil {
		delete(g.waiting, p)
		done()
	}
	if p.Ask == nil || g.waiting[p] == nil {
		return
	}
	g.Asks++
	w := g.w
	ask := *p.Ask
	answered := false
	finish := func(step func()) {
		g.do(func() {
			if answered || g.waiting[p] == nil {
				return
			}
			answered = true
			step()
			g.settle()
			g.ask(p)
		})
	}
	here, there := string(g.ID), string(ask.To.ID)
	w.carry(here, there, func() {
		target := w.Gateways[ask.To.ID]
		if target == nil || !target.Alive { // refused
			w.deliver(there, here, func() {
				finish(func() {
					g.watch.suspects(ask.To.ID)
					g.Admission.Unanswered(g.now(), p, false)
				})
			})
			return
		}
		target.do(func() {
			target.watch.listen(g.ID)
			answer := w.Spoil.asked(target, ask.Question)
			if w.Watch != nil {
				w.Watch.answered(target, ask.Question, answer)
			}
			w.trace(here, "asks %s for %s below %d (insist %v): %v %v", target.ID, ask.Question.Member, ask.Question.Limit, ask.Question.Insist, answer.Yes, answer.Reports)
			w.carry(there, here, func() {
				finish(func() {
					g.watch.listen(target.ID)
					if w.Spoil.Answer != nil {
						answer = w.Spoil.Answer(g, answer)
					}
					g.Admission.Answered(g.now(), p, answer)
				})
			})
		})
	})
	w.after(g.asking, func() { finish(func() { g.Admission.Unanswered(g.now(), p, true) }) })
}

// EndAll tells every stream to end.
func (g *Gateway) EndAll(reason redirect.Reason) {
	g.do(func() { g.Admission.EndAll(reason) })
}
