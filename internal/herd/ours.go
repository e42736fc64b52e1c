// SPDX-License-Identifier: Apache-2.0

package herd

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/evenring/evenring/internal/sim"
	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/supervisor"
)

// patience is the virtual time that a wave may take.
const patience = 10 * time.Minute

// batch is short, so that a view that is brought up to date shows everybody who was served by then.
const batch = 100 * time.Microsecond

// Ours is this library: the real machines of gateways and supervisors, on a
// network whose every message takes a time of its own, so that dials and
// questions of the whole fleet are under way at once and overtake each other.
type Ours struct {
	NoAsks  bool // there is no peer link to ask over
	MaxHops int  // without a peer link; 0: 2
	Trouble Trouble
}

// Trouble is what happens to questions and answers. The zero value is nothing.
type Trouble struct {
	Loss    float64       // share of the questions, and of the answers, that are lost
	Late    float64       // share of them that take longer
	LateBy  time.Duration // up to so much
	Reserve time.Duration // a place is kept for so long; 0: redirect.DefaultReserve
	Stall   time.Duration // one gateway stands still for so long, while the wave comes; 0: none does
}

// Run places a wave. The error says that it did not come to rest: somebody is not served.
func (o Ours) Run(wave Wave) (Outcome, error) {
	if err := wave.Validate(); err != nil {
		return Outcome{}, err
	}
	w := sim.New(sim.Config{
		Seed: wave.Seed, NoAsks: o.NoAsks, MinLatency: min(time.Millisecond, wave.latency()), MaxLatency: wave.latency(),
		Gateway: func(c *redirect.Config) {
			c.MaxHops, c.Roster.Batch, c.Reserve = o.MaxHops, batch, o.Trouble.Reserve
		},
		Supervisor: func(c *supervisor.Config) { c.MaxHops = o.MaxHops },
	})
	for _, id := range wave.gateways() {
		w.StartGateway(id)
	}
	w.Run(time.Second) // they meet
	began := w.Elapsed()
	w.Mute, w.Hold = wave.stale(), true
	account := newAnswers(cmp.Or(o.Trouble.Reserve, redirect.DefaultReserve))
	seen := newOrder(wave)
	served, adopted, refreshes := 0, 0, 0
	w.Spoil.Hello = func(g *sim.Gateway, h redirect.Hello) redirect.Hello {
		seen.hello(g, h)
		return h
	}
	w.Spoil.Asked = func(g *sim.Gateway, q placement.Question) placement.Answer {
		a := account.asked(g, q)
		seen.asked(g, q, a)
		return a
	}
	w.Spoil.Verdict = func(g *sim.Gateway, v redirect.Verdict) redirect.Verdict {
		seen.verdict(g, v)
		if v.Outcome == redirect.Accept {
			if served++; wave.due(served) {
				refreshes++
				w.After(0, func() { // once this step is over
					seen.refreshed()
					w.Refresh()
				})
			}
		}
		return v
	}
	w.Adopted = func(s *sim.Supervisor) {
		seen.adopted(s)
		adopted++
	}
	o.Trouble.begin(w, wave)
	rnd := rand.New(rand.NewPCG(wave.Seed, 1))
	for i := range wave.Supervisors {
		if wave.Over > 0 {
			w.After(time.Duration(rnd.Int64N(int64(wave.Over))), func() { w.StartSupervisor(wave.member(i)) })
		} else {
			w.StartSupervisor(wave.member(i))
		}
	}
	if !w.Until(patience, func() bool { return adopted >= wave.Supervisors }) || !w.Until(patience, w.Settled) {
		return Outcome{}, fmt.Errorf("herd: seed %d: not at rest after %v: %v", wave.Seed, patience, w.Served())
	}
	out := Outcome{Questions: account.of(w), Refreshes: refreshes, Took: w.Elapsed() - began, Order: seen.sum.Sum64()}
	for _, n := range w.Served() {
		out.Served = append(out.Served, n)
	}
	for _, s := range w.Supervisors {
		out.Dials.add(s.Dials)
		out.Asks.add(s.Asks)
	}
	return out, nil
}

// begin lets the trouble begin.
func (t Trouble) begin(w *sim.World, wave Wave) {
	w.Links.AskLoss, w.Links.AskSlow, w.Links.AskSlowBy = t.Loss, t.Late, t.LateBy
	if t.Stall > 0 {
		g := w.Gateways[wave.gateways()[0]]
		w.After(2*wave.latency(), g.Pause)
		w.After(2*wave.latency()+t.Stall, g.Resume)
	}
}
