// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/supervisor"
	"github.com/evenring/evenring/ring"
)

// Supervisor is one supervisor, over all its processes.
type Supervisor struct {
	end
	Member   ring.MemberID
	Machine  *supervisor.Machine
	Sessions []*Session

	Dials     int                    // of this process
	Asks      int                    // questions put for this process
	Moves     int                    // times that it was accepted by another gateway than before, over all processes
	Gap       time.Duration          // longest time without a stream, while running and once attached
	Redirects map[ring.GatewayID]int // how often it was sent there

	forced *Gateway // the first dial goes there
	last   ring.GatewayID
	dark   time.Time // since when it has had no stream; zero: it has one, or had none yet
	watch  supervisorWatch
}

// StartSupervisor starts a supervisor, or starts it again.
func (w *World) StartSupervisor(m ring.MemberID) *Supervisor { return w.startAt(m, nil) }

// StartAt starts a supervisor whose first dial goes to g, where it asks to
// stay: the way to put a fleet into a given shape.
func (w *World) StartAt(m ring.MemberID, g *Gateway) *Supervisor { return w.startAt(m, g) }

func (w *World) startAt(m ring.MemberID, g *Gateway) *Supervisor {
	s := w.Supervisors[m]
	if s == nil {
		s = &Supervisor{Member: m, Redirects: make(map[ring.GatewayID]int)}
		s.end = end{host: &host{w: w, clock: w.Clocks[string(m)]}, name: string(m), who: string(m), on: s}
		w.Supervisors[m] = s
	}
	s.begin()
	s.Dials, s.Asks, s.dark, s.forced, s.watch = 0, 0, time.Time{}, g, supervisorWatch{}
	cfg := supervisor.Config{Member: m, Service: Service, Generation: placement.Generation(s.now().UnixNano()), Jitter: w.rnd.Float64}
	if w.cfg.Supervisor != nil {
		w.cfg.Supervisor(&cfg)
	}
	if w.Spoil.Supervisor != nil {
		w.Spoil.Supervisor(&cfg)
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
	s.die()
	s.w.trace(string(s.Member), "killed")
}

// Stop says goodbye and ends the process.
func (s *Supervisor) Stop() {
	s.step(supervisor.Stop{})
	s.running = false
	s.process++
	s.Resume()
	s.w.trace(string(s.Member), "stopped")
}

// Running reports whether it has a process.
func (s *Supervisor) Running() bool { return s.running }

func (s *Supervisor) step(ev supervisor.Event) {
	w := s.w
	before := s.watch.begin(s, ev)
	actions := w.Spoil.step(s, s.now(), ev)
	for _, act := range actions {
		switch act := act.(type) {
		case supervisor.Dial:
			w.trace(s.who, "dials %s, stay %v, avoiding %s", act.Addr, act.Hello.Stay, act.Hello.Avoid)
			s.Dials++
			h := act.Hello
			if s.forced != nil {
				act.Addr, h.Stay, s.forced = s.forced.Endpoint, true, nil
			}
			s.dial(act.Addr, h)
		case supervisor.Abandon:
			s.abandon(act.Generation)
		case supervisor.Close:
			s.drop(act.Generation)
		case supervisor.Adopt:
			if s.last != "" && s.last != act.Home.Gateway {
				s.Moves++
			}
			s.last = act.Home.Gateway
			w.trace(string(s.Member), "attached to %s", act.Home.Gateway)
			if w.Adopted != nil {
				w.Adopted(s)
			}
			s.publish(act.Home)
		case supervisor.Forget:
			s.publish(supervisor.Home{})
		}
	}
	if w.Watch != nil {
		w.Watch.supervisor(s, ev, before, actions)
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
		s.at(at, func() {
			if due, ok := s.Machine.Deadline(); ok && s.process == process && !due.After(s.now()) {
				s.step(supervisor.Tick{})
			}
		})
	}
}

// publish tells the sessions where the supervisor is.
func (s *Supervisor) publish(home supervisor.Home) {
	for _, one := range s.Sessions {
		one.homeChanged(home)
	}
}

func (s *Supervisor) reached(p *redirect.Admitting) { s.Asks += p.Asked }

func (s *Supervisor) answered(gen placement.Generation, v redirect.Verdict) {
	if v.Outcome == redirect.Redirect {
		s.Redirects[v.Gateway]++
	}
	s.step(supervisor.Answered{Generation: gen, Verdict: v})
}

func (s *Supervisor) failed(gen placement.Generation, err error) {
	delete(s.dials, gen)
	s.step(supervisor.Failed{Generation: gen, Err: err})
}

func (s *Supervisor) lost(gen placement.Generation) { s.step(supervisor.Lost{Generation: gen}) }

func (s *Supervisor) noticed(st *stream, n redirect.Notice) {
	if s.w.Watch != nil {
		s.w.Watch.noticed(s, st, n)
	}
	s.step(supervisor.Noticed{Generation: st.gen(), Notice: n})
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
