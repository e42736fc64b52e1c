// SPDX-License-Identifier: Apache-2.0

package redirect

import (
	"errors"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/ring"
)

// Errors of handing over.
var (
	ErrDraining   = errors.New("redirect: a drain is under way already")
	ErrNotHere    = errors.New("redirect: that supervisor is not attached here")
	ErrNowhere    = errors.New("redirect: no gateway can take that supervisor")
	ErrNotMovable = errors.New("redirect: that supervisor cannot follow a redirect")
)

// Serve says that the gateway serves, and may be given supervisors.
func (a *Admission) Serve(now time.Time) {
	if !a.draining {
		a.step(now, roster.StateChanged{State: placement.Ready})
	}
}

// StartDrain makes the gateway take nobody new and returns whom it serves, in
// ID order. A second one is told so with [ErrDraining].
func (a *Admission) StartDrain(now time.Time) ([]Supervisor, error) {
	if a.draining {
		return nil, ErrDraining
	}
	a.draining, a.settling = true, nil
	a.departed = make(map[ring.MemberID]placement.Generation)
	a.step(now, roster.StateChanged{State: placement.Draining})
	return a.Supervisors(), nil
}

// StopDrain makes the gateway placeable again.
func (a *Admission) StopDrain(now time.Time) {
	if a.draining {
		a.draining = false
		a.departed = nil
		a.step(now, roster.StateChanged{State: placement.Ready})
	}
}

// MoveAway starts to hand an attached supervisor to another gateway. Done, the
// placement has set Notice, or Err to [ErrNotHere] or [ErrNowhere].
func (a *Admission) MoveAway(now time.Time, m ring.MemberID) (*Admitting, error) {
	a.expire(now)
	s := a.present(m)
	switch {
	case s == nil:
		return nil, ErrNotHere
	case !s.movable:
		return nil, ErrNotMovable
	}
	p := &Admitting{leaving: true, hello: Hello{Member: m, Generation: s.generation}}
	a.turns.enter(p)
	a.start(now)
	return p, nil
}

// dismiss tells a supervisor that leaves, and is still attached, where to go.
func (a *Admission) dismiss(now time.Time, p *Admitting) {
	p.Done = true
	d := p.Decision
	if d.Gateway == "" {
		p.Err = ErrNowhere
		return
	}
	a.promise(now, p)
	s := a.seats[p.hello.Member]
	s.told = true
	p.Notice = Notice{Kind: NoticeMove, Reason: a.moveReason(), Gateway: d.Gateway, Endpoint: d.Endpoint, Incarnation: d.Incarnation, Cap: d.Cap,
		Proof: a.cfg.Proofs.sent(now, p.hello.Member, d.Gateway, d.Incarnation, 1)}
	a.tell(s.key, p.Notice)
}

func (a *Admission) moveReason() Reason {
	if a.draining {
		return ReasonDraining
	}
	return ReasonPlaced
}
