// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
)

// end is the client's end of streams: a supervisor's, or a session's.
type end struct {
	*host
	name    string // of the supervisor, on the network
	who     string
	running bool
	process uint64
	streams map[placement.Generation]*stream
	dials   map[placement.Generation]*dial
	on      user
}

// user is whose streams they are. What concerns a process that has ended does not reach it.
type user interface {
	reached(p *redirect.Admitting) // there is a verdict, still on its way
	answered(gen placement.Generation, v redirect.Verdict)
	failed(gen placement.Generation, err error)
	lost(gen placement.Generation)
	noticed(st *stream, n redirect.Notice)
}

// dial is one under way.
type dial struct {
	gateway *Gateway
	p       *redirect.Admitting
}

// stream is one accepted stream, both ends.
type stream struct {
	gateway *Gateway
	key     redirect.Key
	end     *end
	hello   redirect.Hello
	process uint64
	open    bool
	over    bool // the gateway has told it to end
	broken  bool // it has ended in the middle, whether or not anybody has seen that
	down    *line
}

func (st *stream) gen() placement.Generation { return st.hello.Generation }

// begin begins another process.
func (e *end) begin() {
	e.process++
	e.running = true
	e.streams = make(map[placement.Generation]*stream)
	e.dials = make(map[placement.Generation]*dial)
}

// die ends the process without a word: its streams break.
func (e *end) die() {
	e.running = false
	e.process++
	e.Resume() // what waits is for the process that has ended, or for its sessions
	for _, gen := range sorted(e.streams) {
		st := e.streams[gen]
		st.open = false
		e.w.deliver(e.name, string(st.gateway.ID), func() { st.closeAtGateway(false) })
	}
	e.streams, e.dials = nil, nil
}

// in runs f in the process, unless that has ended by then.
func (e *end) in(process uint64, f func()) {
	e.enter(func() {
		if e.process == process {
			f()
		}
	})
}

// dial carries a hello to whoever listens at addr, and the verdict back.
func (e *end) dial(addr string, h redirect.Hello) {
	w, process, gen := e.w, e.process, h.Generation
	d := &dial{}
	e.dials[gen] = d
	w.deliver(e.name, addr, func() {
		g := w.target(addr)
		if g == nil || !g.Alive {
			w.deliver(addr, e.name, func() {
				e.in(process, func() { e.on.failed(gen, fmt.Errorf("sim: %s refuses", addr)) })
			})
			return
		}
		if w.cut(e.name, string(g.ID)) {
			return
		}
		d.gateway = g
		g.do(func() { g.hello(e, process, d, h) })
	})
}

// abandon gives up a dial, unless its verdict is on its way.
func (e *end) abandon(gen placement.Generation) {
	d := e.dials[gen]
	delete(e.dials, gen)
	if d == nil || d.gateway == nil {
		return
	}
	e.w.deliver(e.name, string(d.gateway.ID), func() {
		g := d.gateway
		g.do(func() {
			if d.p != nil && g.waiting[d.p] != nil {
				delete(g.waiting, d.p)
				g.Admission.Cancel(g.now(), d.p)
			}
		})
	})
}

func (g *Gateway) hello(e *end, process uint64, d *dial, h redirect.Hello) {
	w := g.w
	if w.Reached != nil {
		w.Reached(g)
	}
	said := h
	if w.Spoil.Hello != nil {
		h = w.Spoil.Hello(g, h)
	}
	before := g.knows(h.Member)
	d.p = g.Admission.Hello(g.now(), h)
	if w.Watch != nil {
		g.watch.pending[d.p] = &before
	}
	g.await(d.p, func() {
		v := d.p.Verdict
		if w.Spoil.Verdict != nil {
			v = w.Spoil.Verdict(g, v)
		}
		e.on.reached(d.p)
		w.trace(e.who, "%s says %s (%s) %s", g.ID, v.Outcome, v.Reason, v.Gateway)
		st := &stream{gateway: g, key: d.p.Key, end: e, hello: said, process: process, open: true, down: &line{}}
		if v.Outcome == redirect.Accept {
			g.streams[d.p.Key] = st
		}
		if w.Watch != nil {
			w.Watch.verdict(g, said, before, d.p, v)
		}
		if v.Outcome == redirect.Accept {
			g.settle()
		}
		if w.cut(e.name, string(g.ID)) {
			st.broken = true
			w.after(w.notice(string(g.ID), e.name), func() { st.closeAtGateway(false) })
			return
		}
		arrive := func() {
			switch {
			case e.process != process:
				st.closeAtGateway(false)
			case v.Outcome == redirect.Accept && !g.Alive:
				e.on.failed(h.Generation, nil)
			default:
				if v.Outcome == redirect.Accept {
					e.streams[said.Generation] = st
				}
				delete(e.dials, said.Generation)
				e.on.answered(said.Generation, v)
			}
		}
		at := w.now.Add(w.latency(string(g.ID), e.name))
		st.down.last = at
		w.at(at, func() {
			if w.cut(e.name, string(g.ID)) {
				st.closeAtGateway(false)
				return
			}
			e.enter(arrive)
		})
	})
}

// drop ends one stream, with a word to the gateway.
func (e *end) drop(gen placement.Generation) {
	st := e.streams[gen]
	if st == nil {
		return
	}
	delete(e.streams, gen)
	st.open = false
	if e.w.cut(e.name, string(st.gateway.ID)) {
		st.broken = true
		e.w.after(e.w.notice(string(st.gateway.ID), e.name), func() { st.closeAtGateway(false) })
		return
	}
	e.w.deliver(e.name, string(st.gateway.ID), func() { st.closeAtGateway(true) })
}

// notice carries a word of the gateway's.
func (st *stream) notice(n redirect.Notice) {
	st.down.pass(st.gateway.w, string(st.gateway.ID), st.end.name, func() {
		st.end.in(st.process, func() {
			if st.open {
				st.end.on.noticed(st, n)
			}
		})
	})
}

// breakAtClient lets the client see that the stream has ended.
func (st *stream) breakAtClient() {
	e := st.end
	st.down.end(e.w, string(st.gateway.ID), e.name, func() {
		e.in(st.process, func() {
			if st.open {
				st.open = false
				delete(e.streams, st.gen())
				e.on.lost(st.gen())
			}
		})
	})
}

// closeAtGateway tells the gateway that the stream has ended.
func (st *stream) closeAtGateway(clean bool) {
	g := st.gateway
	g.do(func() {
		if g.streams[st.key] != st {
			return
		}
		delete(g.streams, st.key)
		if g.w.Watch != nil && !clean {
			defer g.w.Watch.broke(st)()
		}
		if g.w.Spoil.Leave != nil {
			clean = g.w.Spoil.Leave(clean)
		}
		g.Admission.Leave(g.now(), st.key, clean)
	})
}

// Break breaks the stream; each end sees it in its own time.
func (st *stream) Break() {
	w := st.end.w
	st.broken = true
	g, e := string(st.gateway.ID), st.end.name
	w.after(w.notice(e, g), st.breakAtClient)
	w.after(w.notice(g, e), func() { st.closeAtGateway(false) })
}
