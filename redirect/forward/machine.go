// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"slices"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/ring"
)

// candidates is how many gateways a request is given to at most.
const candidates = 2

// Machine decides who is given one request. It is not safe for concurrent use.
type Machine struct {
	cfg    Config
	state  State
	reason Reason

	route  roster.Route // the newest
	tried  []stream     // those that were given the request
	unsure bool         // one of them may have executed it
	last   Outcome      // of the last attempt
	since  time.Time    // Waiting: since when
}

// stream is what a request is given to. A member that has attached to a gateway
// anew has another one there.
type stream struct {
	gateway    ring.GatewayID
	generation placement.Generation
}

// New returns the machine of one request, idle. The error is that of [Config.Validate].
func New(cfg Config) (*Machine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Machine{cfg: cfg.resolved()}, nil
}

// State returns where the machine is.
func (m *Machine) State() State { return m.state }

// Reason returns how the request ended; None: it has not.
func (m *Machine) Reason() Reason { return m.reason }

// Deadline returns when the machine wants a [Tick], and false if it wants none.
func (m *Machine) Deadline() (time.Time, bool) {
	return m.since.Add(m.wait()), m.state == Waiting
}

// Step takes one event and returns what is to be done, in order. Every event is
// legal in every state; one that means nothing there changes nothing. The
// routes become the machine's.
func (m *Machine) Step(now time.Time, event Event) []Action {
	switch e := event.(type) {
	case Begin:
		if m.state == Idle {
			m.route = e.Route
			return m.next(now)
		}
	case Routed:
		m.route = e.Route
		if m.state == Waiting {
			return m.next(now)
		}
	case Answered:
		if m.state == Sending && e.Attempt == len(m.tried) {
			return m.answered(now, e.Outcome)
		}
	case Tick:
		if m.state == Waiting {
			return m.next(now)
		}
	case Stop:
		if m.state != Over {
			return m.finish(Stopped)
		}
	}
	return nil
}

func (m *Machine) answered(now time.Time, o Outcome) []Action {
	m.last = o
	switch o {
	case Replied:
		return m.finish(Done)
	case NotHere, NotSent:
		return m.next(now)
	default:
		m.unsure = true
		if m.cfg.Idempotent {
			return m.next(now)
		}
		return m.finish(Lost)
	}
}

// next gives the request to whoever is next, waits for somebody to be, or gives up.
func (m *Machine) next(now time.Time) []Action {
	if len(m.tried) < candidates {
		for _, h := range m.route.Holders {
			if m.fit(h) {
				m.state = Sending
				m.tried = append(m.tried, stream{h.ID, h.Generation})
				return []Action{Send{Attempt: len(m.tried), To: h}}
			}
		}
	}
	if !m.worthWaiting() {
		return m.finish(m.failure())
	}
	if m.state != Waiting {
		m.state, m.since = Waiting, now
	}
	if at, _ := m.Deadline(); !now.Before(at) {
		return m.finish(m.failure())
	}
	return nil
}

// fit reports whether a holder may be given the request now.
func (m *Machine) fit(h roster.Holder) bool {
	switch {
	case slices.Contains(m.tried, stream{h.ID, h.Generation}):
		return false
	case h.Suspect && m.last == NotHere && m.triedNewer(h.Generation):
		return false // it has been elsewhere since, and is on its way: news of that is what to wait for
	case h.ID == m.cfg.Self:
		return !h.Expected
	default:
		return !m.cfg.Forwarded && h.Endpoint != ""
	}
}

// triedNewer reports whether the member's place at a later time was tried.
func (m *Machine) triedNewer(g placement.Generation) bool {
	return slices.ContainsFunc(m.tried, func(s stream) bool { return s.generation > g })
}

// worthWaiting reports whether news could lead to another attempt.
func (m *Machine) worthWaiting() bool {
	if len(m.tried) == candidates {
		return false
	}
	if m.cfg.Forwarded {
		return slices.ContainsFunc(m.route.Holders, m.expectedHere)
	}
	// Of a gateway without an endpoint there is nothing to be heard but that.
	return len(m.route.Holders) == 0 || len(m.tried) > 0 || slices.ContainsFunc(m.route.Holders, m.expectedHere)
}

func (m *Machine) expectedHere(h roster.Holder) bool { return h.ID == m.cfg.Self && h.Expected }

func (m *Machine) wait() time.Duration {
	if len(m.tried) == 0 && len(m.route.Holders) == 0 {
		return m.cfg.Settle
	}
	return m.cfg.Patience
}

// failure says why there is no answer.
func (m *Machine) failure() Reason {
	switch {
	case m.unsure:
		return Lost
	case len(m.tried) > 0 && m.last == NotSent:
		return Unreachable
	case len(m.tried) > 0:
		return Missed
	case slices.ContainsFunc(m.route.Holders, m.expectedHere):
		return Away
	case m.cfg.Forwarded:
		return Missed
	case len(m.route.Holders) > 0:
		return Unreachable
	case m.route.Where == roster.Nobody:
		return Nobody
	default:
		return Incomplete
	}
}

func (m *Machine) finish(reason Reason) []Action {
	m.state, m.reason = Over, reason
	return []Action{Finish{reason}}
}
