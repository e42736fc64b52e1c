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
	ID        ring.GatewayID
	Endpoint  string
	Admission *redirect.Admission
	Alive     bool
	InService bool           // the load balancer picks it
	Asks      int            // questions it has put
	Report    handoff.Report // of its drain, once that is over

	w       *World
	streams map[redirect.Key]*stream
	waiting map[*redirect.Admitting]func()
	due     time.Time // the next look at the admission's deadline that is planned
	drain   *handoff.Machine
	asking  time.Duration
}

// stream is one accepted stream, both ends.
type stream struct {
	gateway *Gateway
	key     redirect.Key
	sup     *Supervisor
	process uint64
	gen     placement.Generation
	open    bool
}

// never satisfies redirect.Peers: the world carries questions itself.
type never struct{}

func (never) Ask(context.Context, placement.Gateway, placement.Question) (placement.Answer, error) {
	return placement.Answer{}, errors.New("sim: the world carries questions")
}

// StartGateway starts a gateway and connects it with every live one. Under an ID
// that was used before it is a new incarnation.
func (w *World) StartGateway(id ring.GatewayID) *Gateway {
	w.lastStart = max(w.lastStart+1, placement.Incarnation(w.now.UnixNano()))
	g := &Gateway{ID: id, Endpoint: fmt.Sprint("peer-", id), w: w, Alive: true, InService: true, streams: make(map[redirect.Key]*stream), waiting: make(map[*redirect.Admitting]func())}
	cfg := redirect.Config{Gateway: id, Incarnation: w.lastStart, Endpoint: g.Endpoint, Jitter: w.rnd.Float64}
	if !w.cfg.NoAsks {
		cfg.Peers = never{}
	}
	if w.cfg.Gateway != nil {
		w.cfg.Gateway(&cfg)
	}
	g.asking = cmp.Or(cfg.AskTimeout, redirect.DefaultAskTimeout)
	g.Endpoint = cfg.Endpoint
	a, err := redirect.NewAdmission(w.now, cfg)
	if err != nil {
		panic(err) // a fault of the test
	}
	g.Admission = a
	if at, started := slices.BinarySearch(w.ids, id); !started {
		w.ids = slices.Insert(w.ids, at, id)
	}
	w.Gateways[id] = g
	a.Serve(w.now)
	for _, other := range w.ids {
		if p := w.Gateways[other]; p != g && p.Alive {
			p.do(func() { p.Admission.Step(w.now, roster.LinkUp{Gateway: id}) })
			a.Step(w.now, roster.LinkUp{Gateway: other})
		}
	}
	g.settle()
	return g
}

// Kill ends the gateway without a word: its streams break.
func (g *Gateway) Kill() {
	g.Alive, g.InService = false, false
	for _, key := range sorted(g.streams) {
		g.streams[key].breakAtSupervisor()
	}
	g.w.trace(string(g.ID), "killed")
}

// Stop ends the gateway after a word to its peers.
func (g *Gateway) Stop() {
	g.Kill()
	self, _ := g.Admission.Roster().Gateway(g.ID)
	for _, id := range g.w.ids {
		if p := g.w.Gateways[id]; p.Alive {
			g.w.deliver(func() {
				p.do(func() { p.Admission.Step(g.w.now, roster.Departed{Gateway: g.ID, Incarnation: self.Incarnation}) })
			})
		}
	}
}

// Drain hands everybody over, and then stops the gateway.
func (g *Gateway) Drain(cfg handoff.Config) error {
	m, err := handoff.New(cfg)
	if err != nil {
		return err
	}
	all, err := g.Admission.StartDrain(g.w.now)
	if err != nil {
		return err
	}
	members := make([]handoff.Member, len(all))
	for i, s := range all {
		members[i] = handoff.Member{ID: s.Member, Movable: s.Movable}
	}
	g.drain, g.InService = m, false
	g.hand(handoff.Begin{Members: members})
	g.settle()
	return nil
}

func (g *Gateway) hand(ev handoff.Event) {
	w := g.w
	for _, act := range g.drain.Step(w.now, ev) {
		switch act := act.(type) {
		case handoff.Order:
			p, err := g.Admission.MoveAway(w.now, act.Member)
			if err != nil {
				w.after(0, func() { g.hand(handoff.Ordered{Member: act.Member}) })
				continue
			}
			g.await(p, func() {
				g.hand(handoff.Ordered{Member: act.Member, Told: p.Err == nil, Target: p.Notice.Gateway})
			})
		case handoff.Close:
			g.Admission.End(act.Member, redirect.ReasonStopped)
		case handoff.Resume:
			g.Admission.StopDrain(w.now)
			g.InService = true
		case handoff.Finished:
			g.Report = act.Report
			if g.Alive {
				g.settle()
				g.Stop()
			}
		}
	}
	g.settle()
	if at, ok := g.drain.Deadline(); ok {
		w.at(at, func() {
			if g.Alive {
				g.hand(handoff.Tick{})
			}
		})
	}
}

// do runs f if the gateway lives, and carries out what follows.
func (g *Gateway) do(f func()) {
	if g.Alive {
		f()
		g.settle()
	}
}

// settle carries out what the admission wants done.
func (g *Gateway) settle() {
	w := g.w
	out := g.Admission.Take()
	for _, p := range out.Turns {
		g.ask(p)
	}
	for _, t := range out.Tells {
		if s := g.streams[t.Key]; s != nil {
			w.deliver(func() { s.sup.notice(s, t.Notice) })
			if t.Notice.Kind == redirect.NoticeEnd {
				w.after(w.cfg.MaxLatency, func() { s.closeAtGateway(false); s.breakAtSupervisor() })
			}
		}
	}
	if !w.Mute {
		for _, send := range out.Sends {
			bytes := roster.Append(nil, send.Message)
			for _, id := range w.ids {
				if p := w.Gateways[id]; p != g && (send.To == "" || send.To == id) {
					w.tell(func() {
						p.do(func() {
							if m, err := roster.Decode(bytes); err == nil {
								p.Admission.Step(w.now, roster.Received{From: g.ID, Message: m})
							}
						})
					})
				}
			}
		}
	}
	if g.drain != nil {
		for _, d := range out.Departures {
			w.after(0, func() {
				if d.To != "" {
					g.hand(handoff.Moved{Member: d.Member, To: d.To})
				} else {
					g.hand(handoff.Closed{Member: d.Member})
				}
			})
		}
	}
	if at, ok := g.Admission.Deadline(); ok && (at.Before(g.due) || !g.due.After(w.now)) {
		g.due = at
		w.at(at, func() {
			g.do(func() {
				if due, ok := g.Admission.Deadline(); ok && !due.After(w.now) {
					g.Admission.Step(w.now, roster.Tick{})
				}
			})
		})
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
		if !answered && g.Alive {
			answered = true
			step()
			g.settle()
			g.ask(p)
		}
	}
	w.deliver(func() {
		target := w.Gateways[ask.To.ID]
		if target == nil || !target.Alive { // refused
			w.deliver(func() { finish(func() { g.Admission.Unanswered(w.now, p, false) }) })
			return
		}
		var answer placement.Answer
		target.do(func() { answer = target.Admission.Asked(w.now, ask.Question) })
		w.trace(string(g.ID), "asks %s for %s below %d (insist %v): %v %v", target.ID, ask.Question.Member, ask.Question.Limit, ask.Question.Insist, answer.Yes, answer.Reports)
		w.deliver(func() { finish(func() { g.Admission.Answered(w.now, p, answer) }) })
	})
	w.after(g.asking, func() { finish(func() { g.Admission.Unanswered(w.now, p, true) }) })
}

// closeAtGateway tells the gateway that the stream has ended.
func (st *stream) closeAtGateway(clean bool) {
	if g := st.gateway; g.streams[st.key] == st {
		delete(g.streams, st.key)
		g.do(func() { g.Admission.Leave(g.w.now, st.key, clean) })
	}
}

// EndAll tells every stream to end.
func (g *Gateway) EndAll(reason redirect.Reason) {
	g.do(func() { g.Admission.EndAll(reason) })
}
