// SPDX-License-Identifier: Apache-2.0

package redirect

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/ring"
)

// Departure says that a supervisor which this gateway served is served no more.
type Departure struct {
	Member ring.MemberID
	To     ring.GatewayID // who serves it now; empty: nobody that is known, its stream has closed
	Clean  bool           // it said goodbye
}

// Supervisor is one attached supervisor.
type Supervisor struct {
	Member     ring.MemberID
	Generation placement.Generation
	Movable    bool           // it follows redirects
	From       ring.GatewayID // who served it before this gateway; empty: nobody that is known
}

// seat is a supervisor's place at this gateway.
type seat struct {
	generation placement.Generation
	state      seatState
	key        Key // of its stream; held: of the one that broke
	movable    bool
	from       ring.GatewayID // who served it before
	told       bool           // its stream was told to move or to end
	until      time.Time      // held: when the hold ends; left: when the stream is told to end
	back       time.Time      // held: sent back here, and expected by then; zero: not that anybody knows
}

func (s *seat) expected() bool { return !s.back.IsZero() }

type seatState uint8

const (
	attached seatState = iota
	held               // the stream broke uncleanly; expected back
	left               // served elsewhere; the old stream is still open
)

// present returns m's seat if it is attached here, or nil.
func (a *Admission) present(m ring.MemberID) *seat {
	if s := a.seats[m]; s != nil && s.state == attached {
		return s
	}
	return nil
}

// counted returns m's seat if it counts for this gateway's load: attached or held. Otherwise nil.
func (a *Admission) counted(m ring.MemberID) *seat {
	if s := a.seats[m]; s != nil && s.state != left {
		return s
	}
	return nil
}

// Leave says that the stream key has ended. Clean: the supervisor said
// goodbye, and nobody will come back for it; otherwise it is expected back for
// Config.Hold. A key whose stream was superseded, or is not known, changes nothing.
func (a *Admission) Leave(now time.Time, key Key, clean bool) {
	a.expire(now)
	if a.children.leave(key) {
		return
	}
	m, ok := a.owners[key]
	if !ok {
		return
	}
	delete(a.owners, key)
	s := a.seats[m]
	if s == nil || s.key != key {
		return
	}
	switch {
	case s.state == left:
		a.unseat(m)
		return
	case clean:
		a.unseat(m)
		a.step(now, roster.Left{Member: m, Generation: s.generation})
	default:
		s.state = held
		s.until = now.Add(a.cfg.Hold)
		a.agenda.add(s.until, m)
		a.step(now, roster.Held{Member: m, Generation: s.generation})
	}
	if a.departed != nil {
		a.departed[m] = s.generation
	}
	a.out.Departures = append(a.out.Departures, Departure{Member: m, Clean: clean})
}

// shownElsewhere takes another gateway's word that it serves a member now.
func (a *Admission) shownElsewhere(now time.Time, gateway ring.GatewayID, at roster.Entry) {
	m := at.Member
	if r, ok := a.reserved[m]; ok && at.Generation > r.generation {
		a.release(now, m, &a.tally.elsewhere)
	}
	if _, until, ok := a.ledger.Target(m); ok {
		a.ledger.Settle(m)
		a.guests.shown(until, a.open)
	}
	g, departed := a.departed[m]
	s := a.counted(m)
	seated := s != nil && s.generation < at.Generation
	if seated || departed && at.Generation > g {
		delete(a.departed, m)
		a.out.Departures = append(a.out.Departures, Departure{Member: m, To: gateway})
	}
	if !seated {
		return
	}
	a.step(now, roster.Left{Member: m, Generation: s.generation})
	if s.state == held {
		a.unseat(m)
		return
	}
	if !s.told {
		a.contest(now, m)
	}
	s.state = left // the supervisor closes the old stream itself, once it has its Accept
	s.until = now.Add(a.cfg.Linger)
	a.agenda.add(s.until, m)
}

// open reports whether the promise for m up to until has neither settled nor expired.
func (a *Admission) open(m ring.MemberID, until time.Time) bool {
	_, expires, ok := a.ledger.Target(m)
	return ok && expires.Equal(until)
}

// unseat takes m's seat away, if it has one.
func (a *Admission) unseat(m ring.MemberID) {
	if s := a.seats[m]; s != nil {
		if s.expected() {
			a.expected--
		}
		delete(a.seats, m)
	}
}

// contest notes that m's healthy stream was taken over.
func (a *Admission) contest(now time.Time, m ring.MemberID) {
	a.rivalry.note(m, now, a.cfg.Hold)
	a.agenda.add(now.Add(a.cfg.Hold), m)
}

// End tells m's stream to end, for reason; false: m is not attached here.
func (a *Admission) End(m ring.MemberID, reason Reason) bool {
	s := a.seats[m]
	if s == nil || s.state == held {
		return false
	}
	s.told = true
	a.tell(s.key, Notice{Kind: NoticeEnd, Reason: reason})
	return true
}

// EndAll tells every stream to end, sessions' too, for reason.
func (a *Admission) EndAll(reason Reason) {
	for _, s := range a.seats {
		s.told = true
	}
	keys := slices.Collect(maps.Keys(a.owners))
	keys = slices.AppendSeq(keys, maps.Keys(a.children.byKey))
	slices.Sort(keys)
	for _, key := range keys {
		a.tell(key, Notice{Kind: NoticeEnd, Reason: reason})
	}
}

// Supervisors returns who is attached, in ID order.
func (a *Admission) Supervisors() []Supervisor {
	all := make([]Supervisor, 0, len(a.seats))
	for m, s := range a.seats {
		if s.state == attached {
			all = append(all, Supervisor{Member: m, Generation: s.generation, Movable: s.movable, From: s.from})
		}
	}
	slices.SortFunc(all, func(x, y Supervisor) int { return cmp.Compare(x.Member, y.Member) })
	return all
}

// expire ends what has run out: holds, reservations, promises, lingering streams.
func (a *Admission) expire(now time.Time) {
	for {
		m, ok := a.agenda.pop(now)
		if !ok {
			return
		}
		if r, ok := a.reserved[m]; ok && !r.until.After(now) {
			a.release(now, m, &a.tally.expired)
		}
		a.ledger.Expire(m, now)
		a.guests.forget(now)
		a.guests.tidy(a.open)
		a.rivalry.forget(m, now)
		s := a.seats[m]
		if s != nil && s.expected() && !s.back.After(now) {
			s.back = time.Time{}
			a.expected--
		}
		if s == nil || s.until.IsZero() || s.until.After(now) {
			continue
		}
		switch s.state {
		case held:
			a.unseat(m)
			a.step(now, roster.Left{Member: m, Generation: s.generation})
		case left:
			s.until = time.Time{}
			a.tell(s.key, Notice{Kind: NoticeEnd, Reason: ReasonMoved})
		}
	}
}
