// SPDX-License-Identifier: Apache-2.0

package redirect

import (
	"context"
	"time"

	"github.com/evenring/evenring/ring"
)

// Settling is one settle of a gateway, from [Gateway.StartSettle] to Stop. Its
// methods are safe for concurrent use.
type Settling struct{ gateway *Gateway }

// StartSettle begins a settle. Errors: [ErrDraining], [ErrSettling] and [ErrNoPeers]. A drain that
// starts ends it.
func (g *Gateway) StartSettle() (s *Settling, err error) {
	g.do(func(_ time.Time, a *Admission) {
		if err = a.StartSettle(); err == nil {
			s = &Settling{g}
			g.settling = s
		}
	})
	return s, err
}

// Stop ends the settle. Whoever was told to move may still do so.
func (s *Settling) Stop() {
	s.gateway.do(func(_ time.Time, a *Admission) {
		if s.gateway.settling == s {
			s.gateway.settling = nil
			a.StopSettle()
		}
	})
}

// Sight returns the fleet as it is seen now, where these supervisors are, and
// a channel that is closed once any of that may have changed.
func (s *Settling) Sight(members ...ring.MemberID) (sight Sight, changed <-chan struct{}) {
	s.gateway.do(func(now time.Time, a *Admission) {
		sight = a.Sight(now, members...)
		sight.Over = s.over(a)
		changed = s.gateway.routes.changed()
	})
	return sight, changed
}

// over reports whether the settle has ended. It is called under the gateway's lock.
func (s *Settling) over(a *Admission) bool { return s.gateway.settling != s || a.settling == nil }

// MoveTo tells an attached supervisor to move to the gateway to, as
// [Admission.MoveTo] has it, and returns what its stream was told. Errors:
// [ErrNoRoom], [ErrNotHere], [ErrNotMovable], [ErrDraining] once the settle is over, and ctx's.
func (s *Settling) MoveTo(ctx context.Context, m ring.MemberID, to ring.GatewayID, limit int) (Notice, error) {
	return s.gateway.move(ctx, func(now time.Time, a *Admission) (*Admitting, error) {
		if s.over(a) {
			return nil, ErrDraining
		}
		return a.MoveTo(now, m, to, limit)
	})
}
