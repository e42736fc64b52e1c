// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/session"
	"github.com/evenring/evenring/redirect/supervisor"
)

// Session is one child session of a supervisor, on the same machine. It
// outlives its supervisor's process.
type Session struct {
	end
	ID      redirect.SessionID
	Machine *session.Machine

	sup *Supervisor
}

// StartSession starts a session of the supervisor.
func (s *Supervisor) StartSession(id redirect.SessionID) *Session {
	one := &Session{ID: id, sup: s}
	one.end = end{host: s.host, name: s.name, who: fmt.Sprintf("%s/%s", s.Member, id), on: one}
	one.begin()
	m, err := session.New(session.Config{
		Session: id, Member: s.Member, Service: Service, Jitter: s.w.rnd.Float64,
		Generation: placement.Generation(s.now().UnixNano()),
	})
	if err != nil {
		panic(err) // a fault of the test
	}
	one.Machine = m
	s.Sessions = append(s.Sessions, one)
	if home := s.Machine.Home(); s.Machine.State().Connected() {
		one.homeChanged(home)
	}
	one.step(session.Start{})
	return one
}

// Stop ends the session.
func (s *Session) Stop() {
	s.step(session.Stop{})
	s.running = false
	s.process++
}

func (s *Session) homeChanged(home supervisor.Home) {
	if s.running {
		s.step(session.HomeChanged{Home: home})
	}
}

func (s *Session) step(ev session.Event) {
	if s.w.Spoil.Session != nil {
		if ev = s.w.Spoil.Session(ev); ev == nil {
			return
		}
	}
	for _, act := range s.Machine.Step(s.now(), ev) {
		switch act := act.(type) {
		case session.Dial:
			s.dial(act.Addr, act.Hello)
		case session.Abandon:
			s.abandon(act.Generation)
		case session.Close:
			s.drop(act.Generation)
		case session.Adopt:
			s.w.trace(s.who, "attached to %s, at home %v", act.Gateway, act.AtHome)
		}
	}
	if at, ok := s.Machine.Deadline(); ok {
		process := s.process
		s.at(at, func() {
			if due, ok := s.Machine.Deadline(); ok && s.process == process && !due.After(s.now()) {
				s.step(session.Tick{})
			}
		})
	}
}

func (s *Session) reached(*redirect.Admitting) {}

func (s *Session) answered(gen placement.Generation, v redirect.Verdict) {
	s.step(session.Answered{Generation: gen, Verdict: v})
}

func (s *Session) failed(gen placement.Generation, err error) {
	delete(s.dials, gen)
	s.step(session.Failed{Generation: gen, Err: err})
}

func (s *Session) lost(gen placement.Generation) { s.step(session.Lost{Generation: gen}) }

func (s *Session) noticed(st *stream, n redirect.Notice) {
	s.step(session.Noticed{Generation: st.gen(), Notice: n})
}
