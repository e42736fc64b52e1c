// SPDX-License-Identifier: Apache-2.0

package redirect

import (
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/ring"
)

// reservation is a place that this gateway keeps for a member on its way.
type reservation struct {
	generation placement.Generation // the newest that the asker had seen
	until      time.Time
}

// Asked answers another gateway's question: it keeps the place if there is
// room, and says what it knows.
func (a *Admission) Asked(now time.Time, q placement.Question) placement.Answer {
	a.expire(now)
	a.step(now, roster.Heard{Gateway: q.From})
	a.step(now, roster.Hinted{Reports: q.Reports})
	answer := placement.Answer{Gateway: a.cfg.Gateway, State: a.self().State}
	if answer.State == placement.Ready && a.busyFor(now, q) {
		answer.State = placement.Starting // who asks looks elsewhere
	}
	switch {
	case answer.State != placement.Ready:
	case q.Insist || a.loadFor(q.Member) < q.Limit:
		answer.Yes = true
		if !a.expects(q.Member) {
			a.pace.take(now)
		}
		a.reserve(now, q)
	default:
		answer.Limit = a.limitFor(now, q.Member)
	}
	answer.Reports = a.roster.Reports()
	return answer
}

// limitFor is the limit below which this gateway has room for m in its own eyes, or 0.
func (a *Admission) limitFor(now time.Time, m ring.MemberID) int {
	r := a.request(Hello{Member: m})
	r.Prefer = a.cfg.Gateway
	if d := a.view(now).Place(r); d.Gateway == a.cfg.Gateway && d.Reason == placement.Preferred && a.loadFor(m) < d.Limit {
		return d.Limit
	}
	return 0
}

func (a *Admission) reserve(now time.Time, q placement.Question) {
	until := now.Add(a.cfg.Reserve)
	if s := a.counted(q.Member); s != nil { // its seat is its place
		if s.state == held {
			if !s.expected() {
				a.expected++
			}
			s.back = until
			if s.until.Before(until) {
				s.until = until // what was promised outlasts the hold
			}
			a.agenda.add(until, q.Member)
		}
		return
	}
	if home, e, ok := a.roster.Home(q.Member); ok && home != a.cfg.Gateway && e.Generation > q.Generation {
		return // it has found a place since
	}
	a.reserved[q.Member] = reservation{generation: q.Generation, until: until}
	a.agenda.add(until, q.Member)
	a.step(now, roster.Reserved{Count: len(a.reserved)})
}

// expects reports whether m comes to its own place here: it counts already.
func (a *Admission) expects(m ring.MemberID) bool {
	_, reserved := a.reserved[m]
	return reserved || a.counted(m) != nil
}

// release drops m's reservation, if there is one, and counts it.
func (a *Admission) release(now time.Time, m ring.MemberID, counter *uint64) {
	if _, ok := a.reserved[m]; ok {
		delete(a.reserved, m)
		*counter++
		a.step(now, roster.Reserved{Count: len(a.reserved)})
	}
}
