// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/evenring/evenring/handoff"
	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/forward"
	"github.com/evenring/evenring/redirect/session"
	"github.com/evenring/evenring/redirect/supervisor"
)

// Spoil stands between the world and the machines and changes what passes:
// the way to plant a fault without a switch in the machines. What a nil func
// would change is left as it is.
type Spoil struct {
	Gateway    func(*redirect.Config)
	Supervisor func(*supervisor.Config)

	Step    func(s *Supervisor, now time.Time, ev supervisor.Event) []supervisor.Action
	Session func(session.Event) session.Event // nil: it is lost
	Call    func(*forward.Config)
	Hello   func(*Gateway, redirect.Hello) redirect.Hello
	Verdict func(*Gateway, redirect.Verdict) redirect.Verdict
	Notice  func(*Gateway, redirect.Notice) redirect.Notice
	Roster  func(*Gateway, roster.Event) roster.Event // nil: it is lost
	Asked   func(*Gateway, placement.Question) placement.Answer
	Answer  func(*Gateway, placement.Answer) placement.Answer
	Leave   func(clean bool) bool
	Drain   func(handoff.Event) handoff.Event // nil: it is lost
}

func (s Spoil) step(sup *Supervisor, now time.Time, ev supervisor.Event) []supervisor.Action {
	if s.Step != nil {
		return s.Step(sup, now, ev)
	}
	return sup.Machine.Step(now, ev)
}

func (s Spoil) asked(g *Gateway, q placement.Question) placement.Answer {
	if s.Asked != nil {
		return s.Asked(g, q)
	}
	return g.Admission.Asked(g.now(), q)
}

func (s Spoil) roster(g *Gateway, ev roster.Event) roster.Event {
	if s.Roster != nil {
		return s.Roster(g, ev)
	}
	return ev
}
