// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/supervisor"
	"github.com/evenring/evenring/ring"
)

// Supervisor is one supervisor, over all its processes.
type Supervisor struct {
	Member  ring.MemberID
	Machine *supervisor.Machine

	Dials     int                    // of this process
	Asks      int                    // questions put for this process
	Moves     int                    // times that it was accepted by another gateway than before, over all processes
	Gap       time.Duration          // longest time without a stream, while running and once attached
	Redirects map[ring.GatewayID]int // how often it was sent there

	w       *World
	running bool
	process uint64
	forced  *Gateway // the first dial goes there
	streams map[placement.Generation]*stream
	last    ring.GatewayID
	dark    time.Time // since when it has had no stream; zero: it has one, or had none yet
}

// StartSupervisor starts a supervisor, or starts it again.
func (w *World) StartSupervisor(m ring.MemberID) *Supervisor { return w.startAt(m, nil) }

// StartAt starts a supervisor whose first dial goes to g, where it asks to
// stay: the way to put a fleet into a given shape.
func (w *World) StartAt(m ring.MemberID, g *Gateway) *Supervisor { return w.startAt(m, g) }

func (w *World) startAt(m ring.MemberID, g *Gateway) *Supervisor {
	s := w.Supervisors[m]
	if s == nil {
		s = &Supervisor{Member: m, w: w, Redirects: make(map[ring.GatewayID]int)}
		w.Supervisors[m] = s
	}
	s.process++
	s.running, s.Dials, s.Asks, s.dark, s.forced = true, 0, 0, time.Time{}, g
	s.streams = make(map[placement.Generation]*stream)
	cfg := supervisor.Config{Member: m, Service: Service, Generation: placement.Generation(w.now.UnixNano()), Jitter: w.rnd.Float64}
	if w.cfg.Supervisor != nil {
		w.cfg.Supervisor(&cfg)
	}
	machine, err := supervisor.New(cfg)
	if err != nil {
		panic(err) // a fault of the test
	}
	s.Machine = machine
	s.step(supervisor.Start{})
	return s
}

// Kill ends the process without a word: its streams break.
func (s *Supervisor) Kill() {
	s.running = false
	s.process++
	for _, gen := range sorted(s.streams) {
		st := s.streams[gen]
		st.open = false
		s.w.deliver(func() { st.closeAtGateway(false) })
	}
	s.streams = nil
	s.w.trace(string(s.Member), "killed")
}

// Stop says goodbye and ends the process.
func (s *Supervisor) Stop() {
	s.step(supervisor.Stop{})
	s.running = false
	s.process++
}

func (s *Supervisor) step(ev supervisor.Event) {
	w := s.w
	for _, act := range s.Machine.Step(w.now, ev) {
		switch act := act.(type) {
		case supervisor.Dial:
			s.dial(act)
		case supervisor.Close:
			if st := s.streams[act.Generation]; st != nil {
				delete(s.streams, act.Generation)
				st.open = false
				w.deliver(func() { st.closeAtGateway(true) })
			}
		case supervisor.Adopt:
			if s.last != "" && s.last != act.Home.Gateway {
				s.Moves++
			}
			s.last = act.Home.Gateway
			w.trace(string(s.Member), "attached to %s", act.Home.Gateway)
			if w.Adopted != nil {
				w.Adopted(s)
			}
		}
	}
	switch {
	case len(s.streams) == 0 && s.dark.IsZero() && s.last != "":
		s.dark = w.now
	case len(s.streams) > 0 && !s.dark.IsZero():
		s.Gap = max(s.Gap, w.now.Sub(s.dark))
		s.dark = time.Time{}
	}
	if at, ok := s.Machine.Deadline(); ok {
		process := s.process
		w.at(at, func() {
			if due, ok := s.Machine.Deadline(); ok && s.process == process && !due.After(w.now) {
				s.step(supervisor.Tick{})
			}
		})
	}
}

func (s *Supervisor) dial(d supervisor.Dial) {
	w, process, gen := s.w, s.process, d.Hello.Generation
	s.Dials++
	if s.forced != nil {
		d.Addr, d.Hello.Stay, s.forced = s.forced.Endpoint, true, nil
	}
	back := func(ev supervisor.Event) {
		w.deliver(func() {
			if s.process == process {
				s.step(ev)
			}
		})
	}
	w.deliver(func() {
		g := w.target(d.Addr)
		if g == nil || !g.Alive {
			back(supervisor.Failed{Generation: gen, Err: fmt.Errorf("sim: %s refuses", d.Addr)})
			return
		}
		if w.Reached != nil {
			w.Reached(g)
		}
		p := g.Admission.Hello(w.now, d.Hello)
		g.await(p, func() {
			v := p.Verdict
			s.Asks += p.Asked
			w.trace(string(s.Member), "%s says %s (%s) %s", g.ID, v.Outcome, v.Reason, v.Gateway)
			st := &stream{gateway: g, key: p.Key, sup: s, process: process, gen: gen, open: true}
			if v.Outcome == redirect.Accept {
				g.streams[p.Key] = st
				g.settle()
			}
			w.deliver(func() {
				switch {
				case s.process != process:
					st.closeAtGateway(false)
				case v.Outcome == redirect.Accept && !g.Alive:
					s.step(supervisor.Failed{Generation: gen})
				default:
					if v.Outcome == redirect.Accept {
						s.streams[gen] = st
					}
					if v.Outcome == redirect.Redirect {
						s.Redirects[v.Gateway]++
					}
					s.step(supervisor.Answered{Generation: gen, Verdict: v})
				}
			})
		})
	})
}

// target finds who listens at an address.
func (w *World) target(addr string) *Gateway {
	if addr == Service {
		return w.pick()
	}
	for _, id := range w.ids {
		if g := w.Gateways[id]; g.Endpoint == addr && g.Alive {
			return g
		}
	}
	return nil
}

func (s *Supervisor) notice(st *stream, n redirect.Notice) {
	if st.open && s.process == st.process {
		s.step(supervisor.Noticed{Generation: st.gen, Notice: n})
	}
}

// breakAtSupervisor lets the supervisor see that the stream has ended.
func (st *stream) breakAtSupervisor() {
	s := st.sup
	s.w.deliver(func() {
		if st.open && s.process == st.process {
			st.open = false
			delete(s.streams, st.gen)
			s.step(supervisor.Lost{Generation: st.gen})
		}
	})
}
