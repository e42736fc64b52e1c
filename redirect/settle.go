// SPDX-License-Identifier: Apache-2.0

package redirect

import (
	"errors"
	"slices"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// Errors of settling.
var (
	ErrSettling = errors.New("redirect: a settle is under way already")
	ErrNoPeers  = errors.New("redirect: to settle takes Config.Peers, for nobody is moved without asking")
	ErrNoRoom   = errors.New("redirect: that gateway keeps no place for that supervisor")
)

// Sight is what a settle looks at.
type Sight struct {
	Self     ring.GatewayID
	Gateways []placement.Gateway // every known one, in ID order
	Stale    bool                // the view is not to be relied on
	Over     bool                // the settle has ended: nobody is moved any more
	Where    []Whereabouts       // of those that were asked for, in that order
}

// Whereabouts says where a supervisor is.
type Whereabouts struct {
	Member ring.MemberID
	At     ring.GatewayID // who serves it, or expects it back; empty: nobody that is known
}

// errand is a supervisor's way from here to a gateway that was chosen for it.
type errand struct {
	to    ring.GatewayID
	limit int
	yes   bool // the target keeps a place
}

// settling is a settle under way: who is to go, or was told to, in its course.
// nil: there is none.
type settling map[ring.MemberID]struct{}

// StartSettle begins a settle: supervisors may be moved, one by one, with
// [Admission.MoveTo]. Errors: [ErrDraining], [ErrSettling] and [ErrNoPeers]. The start of a
// drain ends it.
func (a *Admission) StartSettle() error {
	switch {
	case a.draining:
		return ErrDraining
	case a.settling != nil:
		return ErrSettling
	case a.cfg.Peers == nil:
		return ErrNoPeers
	}
	a.settling = make(settling)
	return nil
}

// StopSettle ends the settle. Whoever was told to move may still do so.
func (a *Admission) StopSettle() { a.settling = nil }

// Sight returns the fleet as it is seen now, and where these supervisors are.
func (a *Admission) Sight(now time.Time, members ...ring.MemberID) Sight {
	a.expire(now)
	s := Sight{Self: a.cfg.Gateway, Gateways: slices.Collect(a.roster.Gateways()), Stale: a.roster.Stale(now), Over: a.settling == nil}
	for _, m := range members {
		s.Where = append(s.Where, Whereabouts{m, a.whereabouts(m)})
	}
	return s
}

// whereabouts returns where m is, as [Whereabouts] has it.
func (a *Admission) whereabouts(m ring.MemberID) ring.GatewayID {
	if a.counted(m) != nil {
		return a.cfg.Gateway
	}
	if home, e, ok := a.roster.Home(m); ok && home != a.cfg.Gateway && !e.Held {
		return home
	}
	return ""
}

// MoveTo starts to move an attached supervisor to the gateway to, if that
// keeps a place for it below limit, and leaves that gateway with less than
// this one has: its load, this supervisor included, stays below this one's before the move, those on their
// way from here left out. The target is asked once and never pressed. Done, the
// placement has set Notice, or Err to [ErrNoRoom], [ErrNotHere] or [ErrDraining].
func (a *Admission) MoveTo(now time.Time, m ring.MemberID, to ring.GatewayID, limit int) (*Admitting, error) {
	a.expire(now)
	s := a.present(m)
	switch {
	case a.settling == nil:
		return nil, ErrDraining
	case s == nil:
		return nil, ErrNotHere
	case !s.movable:
		return nil, ErrNotMovable
	}
	p := &Admitting{
		leaving: true, hello: Hello{Member: m, Generation: s.generation}, errand: &errand{to: to, limit: limit},
	}
	a.turns.enter(p)
	a.start(now)
	return p, nil
}

// remaining is this gateway's load without those that are on their way from here.
func (a *Admission) remaining() int {
	n := a.counts().Load()
	for m := range a.settling {
		if a.counted(m) != nil {
			n--
		}
	}
	return n
}

// askErrand puts the one question of an errand.
func (a *Admission) askErrand(now time.Time, p *Admitting) {
	to, ok := a.view(now).Gateway(p.errand.to)
	p.errand.limit = min(p.errand.limit, a.remaining()-1)
	if !ok || to.ID == a.cfg.Gateway || to.Endpoint == "" || !to.Placeable() || p.errand.limit < 1 {
		p.Err, p.Done = ErrNoRoom, true
		return
	}
	a.settling[p.hello.Member] = struct{}{}
	a.follow(now, p, &placement.Ask{To: to, Question: placement.Question{
		From: a.cfg.Gateway, Member: p.hello.Member, Limit: p.errand.limit,
	}}, placement.Decision{})
}

// finishErrand tells the supervisor to move, if its target keeps a place and
// this gateway has not lost so many meanwhile that it would end below it.
func (a *Admission) finishErrand(now time.Time, p *Admitting) {
	to, ok := a.roster.Gateway(p.errand.to)
	if !p.errand.yes || !ok || !to.Placeable() || a.remaining() < p.errand.limit {
		delete(a.settling, p.hello.Member)
		p.Err, p.Done = ErrNoRoom, true
		return
	}
	p.Decision = placement.Decision{
		Gateway: to.ID, Endpoint: to.Endpoint, Incarnation: to.Incarnation, Limit: p.errand.limit, Cap: a.view(now).Cap(),
	}
	a.dismiss(now, p)
}

// abandon notes that p will tell nobody to move.
func (a *Admission) abandon(p *Admitting) {
	if p.errand != nil {
		delete(a.settling, p.hello.Member)
	}
}

// from returns who served the member before this gateway. A supervisor that
// comes back here names this one, and is known to have come from elsewhere once.
func (a *Admission) from(h Hello) ring.GatewayID {
	if h.Home != a.cfg.Gateway {
		return h.Home
	}
	if s := a.seats[h.Member]; s != nil {
		return s.from
	}
	return ""
}
