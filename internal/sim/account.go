// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/supervisor"
)

// supervisorWatch is an account of what a supervisor's process has done.
type supervisorWatch struct {
	flying placement.Generation // the dial in flight; 0: none
	stream placement.Generation // the one that it has adopted; 0: none
	newest placement.Generation // dialled with
	dials  int                  // of this placement
	home   bool                 // the last dial was one of its home, which is no part of a placement
}

// moment is a supervisor before a step.
type moment struct {
	working bool // it has its stream
	stale   bool // the event speaks of another attempt than it should
	machine string
}

func (s *supervisorWatch) begin(sup *Supervisor, ev supervisor.Event) moment {
	if sup.w.Watch == nil {
		return moment{}
	}
	var m moment
	switch e := ev.(type) {
	case supervisor.Answered:
		m.stale = e.Generation != s.flying
	case supervisor.Failed:
		m.stale = e.Generation != s.flying
	case supervisor.Lost:
		m.stale = e.Generation != s.stream
	case supervisor.Noticed:
		m.stale = e.Generation != s.stream
	}
	if m.stale {
		m.machine = fmt.Sprintf("%+v", *sup.Machine)
	}
	m.working = s.stream != 0 && sup.streams[s.stream] != nil
	return m
}

// mostDials is how many dials one placement may take.
const mostDials = 4

// supervisor is called after every step of a supervisor.
func (w *Watch) supervisor(s *Supervisor, ev supervisor.Event, before moment, actions []supervisor.Action) {
	a, who := &s.watch, names(s.Member)
	voluntary := true
	switch e := ev.(type) {
	case supervisor.Answered:
		a.landed(e.Generation)
	case supervisor.Failed:
		a.landed(e.Generation)
	case supervisor.Lost:
		a.dials = 0
		if e.Generation == a.stream {
			a.stream = 0
		}
	case supervisor.Noticed:
		a.dials = 0
		voluntary = e.Notice.Kind != redirect.NoticeEnd
	case supervisor.Tick:
		if a.flying == 0 {
			a.dials = 0
		}
	case supervisor.Stop:
		voluntary = false
	}
	for _, act := range actions {
		switch act := act.(type) {
		case supervisor.Dial:
			if a.flying != 0 {
				w.blame(FourDials, who, "%s has two dials in flight", s.Member)
			}
			a.flying, a.newest = act.Hello.Generation, act.Hello.Generation
			if a.home {
				a.dials = 0
			}
			a.home = act.Addr != Service && act.Hello.Hops == 0
			if a.dials++; a.dials > mostDials {
				w.blame(FourDials, who, "%s makes dial %d of one placement", s.Member, a.dials)
			}
		case supervisor.Abandon:
			a.landed(act.Generation)
		case supervisor.Close:
			if a.stream == act.Generation {
				a.stream = 0
			}
		case supervisor.Adopt:
			a.stream = act.Generation
		}
		if _, closes := act.(supervisor.Close); before.stale && !closes {
			w.blame(NoWayBack, who, "a stale %T makes %s %T", ev, s.Member, act)
		}
	}
	if before.stale && before.machine != fmt.Sprintf("%+v", *s.Machine) {
		w.blame(NoWayBack, who, "a stale %T changes %s", ev, s.Member)
	}
	if voluntary && before.working && len(s.streams) == 0 {
		w.blame(MakeBeforeBreak, who, "%s closes its last stream before another is accepted", s.Member)
	}
	for gen := range s.streams {
		if gen != a.stream {
			w.blame(OnePlace, who, "%s leaves a stream open that is not its own", s.Member)
		}
	}
	if state := s.Machine.State(); state.Connected() != (a.stream != 0) {
		w.blame(OnePlace, who, "%s is %s, with stream %d", s.Member, state, a.stream)
	}
	if _, tick := ev.(supervisor.Tick); tick {
		if at, ok := s.Machine.Deadline(); ok && !at.After(s.now()) {
			w.blame(FixedPoint, who, "a tick leaves the deadline of %s in the past", s.Member)
		}
	}
}

func (s *supervisorWatch) landed(gen placement.Generation) {
	if gen == s.flying {
		s.flying = 0
	}
}
