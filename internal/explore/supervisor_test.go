// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/supervisor"
)

// What a supervisor does.
type (
	dialOut struct {
		stream
		addr  string
		hello redirect.Hello
	}
	abandonOut struct{ stream }
	closeOut   struct{ stream }
	adoptOut   struct{ stream } // for the trace alone
)

// sup is a supervisor's process: the real machine, and an account of what it did.
type sup struct {
	i       int
	machine supervisor.Machine

	flying placement.Generation   // the dial in flight; 0: none
	stream placement.Generation   // the one that it has adopted; 0: none
	open   []placement.Generation // accepted, neither closed nor lost
	dials  int                    // of this placement
	home   bool                   // the last dial was one of its home, which is no part of a placement
}

func (f *fleet) newSup(i, process int) *sup {
	share := 0.3 + 0.3*float64(i)
	cfg := supervisor.Config{
		Member: member(i), Service: service, Generation: placement.Generation(1 + 1000*process),
		Jitter: func() float64 { return share },
	}
	f.faults.config(&cfg)
	m, err := supervisor.New(cfg)
	if err != nil {
		panic(err) // a fault of the test
	}
	return &sup{i: i, machine: *m}
}

// supStep is one step under way.
type supStep struct {
	*sup
	fleet *fleet
	now   time.Time
	out   []any
	fault string
}

func (s *supStep) blame(format string, args ...any) {
	if s.fault == "" {
		s.fault = fmt.Sprintf("s%d: ", s.i+1) + fmt.Sprintf(format, args...)
	}
}

func (s *supStep) step(in any) {
	event := in.(supervisor.Event)
	var before mark
	stale := s.stale(event)
	if stale {
		before = s.fleet.printer.of(&s.machine)
	}
	voluntary := true // no word of a gateway's ends the stream
	switch e := event.(type) {
	case supervisor.Answered:
		if e.Verdict.Outcome == redirect.Accept {
			s.open = append(s.open, e.Generation)
		}
		s.landed(e.Generation)
	case supervisor.Failed:
		s.landed(e.Generation)
	case supervisor.Lost:
		s.drop(e.Generation)
		s.dials = 0
	case supervisor.Noticed:
		s.dials = 0
		voluntary = e.Notice.Kind != redirect.NoticeEnd
	case supervisor.Tick:
		if s.flying == 0 {
			s.dials = 0
		}
	case supervisor.Start:
		s.dials = 0
	}
	working := s.sup.stream != 0
	for _, action := range s.fleet.faults.supervisor(s.sup, s.now, event) {
		s.do(action, stale)
	}
	if stale && s.fleet.printer.of(&s.machine) != before {
		s.blame("a stale %T changes its state", event)
	}
	if voluntary && working && len(s.open) == 0 {
		s.blame("closes its last stream before another is accepted")
	}
	for _, gen := range s.open {
		if gen != s.stream {
			s.blame("leaves the stream of generation %d open, which is not its own", gen)
		}
	}
	if state := s.machine.State(); state.Connected() != (s.stream != 0) {
		s.blame("is %s, with stream %d", state, s.stream)
	}
	if _, tick := event.(supervisor.Tick); tick {
		if at, ok := s.machine.Deadline(); ok && !at.After(s.now) {
			s.blame("a tick leaves its deadline in the past")
		}
	}
}

// stale reports whether an event speaks of another attempt than the one under way.
func (s *supStep) stale(event supervisor.Event) bool {
	switch e := event.(type) {
	case supervisor.Answered:
		return e.Generation != s.flying
	case supervisor.Failed:
		return e.Generation != s.flying
	case supervisor.Lost:
		return e.Generation != s.stream
	case supervisor.Noticed:
		return e.Generation != s.stream
	default:
		return false
	}
}

func (s *supStep) landed(gen placement.Generation) {
	if gen == s.flying {
		s.flying = 0
	}
}

func (s *supStep) drop(gen placement.Generation) {
	for i, open := range s.open {
		if open == gen {
			s.open = remove(s.open, i)
			break
		}
	}
	if s.stream == gen {
		s.stream = 0
	}
}

// most is how many dials one placement may take.
const most = 4

func (s *supStep) do(action supervisor.Action, stale bool) {
	switch a := action.(type) {
	case supervisor.Dial:
		if s.flying != 0 {
			s.blame("has two dials in flight")
		}
		s.flying = a.Hello.Generation
		if s.home {
			s.dials = 0
		}
		s.home = a.Addr != service && a.Hello.Hops == 0
		if s.dials++; s.dials > most {
			s.blame("makes dial %d of one placement", s.dials)
		}
		s.out = append(s.out, dialOut{stream{s.i, a.Hello.Generation}, a.Addr, a.Hello})
	case supervisor.Abandon:
		s.landed(a.Generation)
		s.out = append(s.out, abandonOut{stream{s.i, a.Generation}})
	case supervisor.Close:
		s.drop(a.Generation)
		s.out = append(s.out, closeOut{stream{s.i, a.Generation}})
	case supervisor.Adopt:
		s.stream = a.Generation
		s.out = append(s.out, adoptOut{stream{s.i, a.Generation}})
	}
	if _, closes := action.(supervisor.Close); stale && !closes {
		s.blame("a stale event makes it %T", action)
	}
}
