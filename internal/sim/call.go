// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"time"

	"github.com/evenring/evenring/redirect/forward"
	"github.com/evenring/evenring/ring"
)

// answerBy is how long whoever sends a request on waits for the answer.
const answerBy = 3 * time.Second

// Call is one request for a supervisor, put to a gateway. It runs over the
// peer links and the streams, in the gateway's own time.
type Call struct {
	Member ring.MemberID
	Reason forward.Reason // once it is over
	Over   bool
	Runs   *int // how often it was executed, wherever that was

	g          *Gateway
	m          *forward.Machine
	idempotent bool
	done       func(forward.Reason)
}

// Call puts a request for m to the gateway. done, which may be nil, is called once it is over;
// if the gateway ends meanwhile, with Stopped.
func (g *Gateway) Call(m ring.MemberID, idempotent bool, done func(forward.Reason)) *Call {
	c := g.call(forward.Config{Idempotent: idempotent}, m, new(int), done)
	g.do(c.begin)
	return c
}

func (g *Gateway) call(cfg forward.Config, m ring.MemberID, runs *int, done func(forward.Reason)) *Call {
	cfg.Self = g.ID
	if g.w.Spoil.Call != nil {
		g.w.Spoil.Call(&cfg)
	}
	machine, err := forward.New(cfg)
	if err != nil {
		panic(err) // a fault of the test
	}
	c := &Call{Member: m, Runs: runs, g: g, m: machine, idempotent: cfg.Idempotent, done: done}
	g.calls = append(g.calls, c)
	return c
}

func (c *Call) begin() {
	c.step(forward.Begin{Route: c.g.Admission.Route(c.g.now(), c.Member, "")})
}

// look tells a call that waits where the member is by now.
func (c *Call) look() {
	if c.m.State() == forward.Waiting {
		c.step(forward.Routed{Route: c.g.Admission.Route(c.g.now(), c.Member, "")})
	}
}

// forsaken: the gateway has ended.
func (c *Call) forsaken() { c.end(forward.Stopped) }

func (c *Call) end(r forward.Reason) {
	if c.Over {
		return
	}
	c.Over, c.Reason = true, r
	if c.done != nil {
		c.done(r)
	}
}

func (c *Call) step(ev forward.Event) {
	g := c.g
	for _, act := range c.m.Step(g.now(), ev) {
		switch act := act.(type) {
		case forward.Send:
			c.send(act)
		case forward.Finish:
			g.w.trace(string(g.ID), "call for %s: %s", c.Member, act.Reason)
			g.calls = slices.DeleteFunc(g.calls, func(o *Call) bool { return o == c })
			c.end(act.Reason)
		}
	}
	if at, ok := c.m.Deadline(); ok {
		g.at(at, func() {
			if due, ok := c.m.Deadline(); ok && g.Alive && !due.After(g.now()) {
				c.step(forward.Tick{})
			}
		})
	}
}

func (c *Call) send(a forward.Send) {
	g, w := c.g, c.g.w
	answered := false
	answer := func(o forward.Outcome) {
		g.do(func() {
			if answered || c.Over {
				return
			}
			answered = true
			c.m.Step(g.now(), forward.Routed{Route: g.Admission.Route(g.now(), c.Member, "")})
			c.step(forward.Answered{Attempt: a.Attempt, Outcome: o})
		})
	}
	w.after(answerBy, func() { answer(forward.Uncertain) })
	if a.To.ID == g.ID {
		g.deliver(c, answer)
		return
	}
	here, there := string(g.ID), string(a.To.ID)
	w.pass(here, there, func() {
		target := w.Gateways[a.To.ID]
		if target == nil || !target.Alive {
			w.deliver(there, here, func() { answer(forward.NotSent) })
			return
		}
		next := target.call(forward.Config{Forwarded: true, Idempotent: c.idempotent}, c.Member, c.Runs, func(r forward.Reason) {
			w.pass(there, here, func() { answer(outcome(r)) })
		})
		target.do(next.begin)
	})
}

// outcome is what a forwarded request's end is to whoever forwarded it.
func outcome(r forward.Reason) forward.Outcome {
	switch r {
	case forward.Done:
		return forward.Replied
	case forward.Lost, forward.Stopped:
		return forward.Uncertain
	default:
		return forward.NotHere
	}
}

// deliver gives a request to the member's stream here.
func (g *Gateway) deliver(c *Call, answer func(forward.Outcome)) {
	w := g.w
	var st *stream
	for _, key := range sorted(g.streams) {
		if one := g.streams[key]; one.hello.Member == c.Member && one.hello.Session == "" && !one.over {
			st = one
		}
	}
	if st == nil {
		w.after(0, func() { answer(forward.NotHere) })
		return
	}
	st.down.pass(w, string(g.ID), st.end.name, func() {
		st.end.in(st.process, func() {
			if st.open {
				*c.Runs++
				w.pass(st.end.name, string(g.ID), func() { answer(forward.Replied) })
			}
		})
	})
}
