// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"iter"
	"maps"
	"time"

	"github.com/evenring/evenring/ring"
)

// Ledger keeps what one gateway has promised: places for members that it sent
// elsewhere and that have not shown up yet. Without a peer link nobody else
// knows of them. A promise ends when the member shows up anywhere, or when it
// expires. The zero value is empty. Not safe for concurrent use.
type Ledger struct {
	promises map[ring.MemberID]promise
}

type promise struct {
	gateway ring.GatewayID
	seen    Counts // of the gateway when the promise was made
	expires time.Time
}

// Promise notes that m was sent to g, up to expires. A newer promise for the
// same member takes the place of the older.
func (l *Ledger) Promise(m ring.MemberID, g Gateway, expires time.Time) {
	if l.promises == nil {
		l.promises = make(map[ring.MemberID]promise)
	}
	l.promises[m] = promise{gateway: g.ID, seen: g.Counts, expires: expires}
}

// Settle ends the promise for m, if there is one: it has shown up.
func (l *Ledger) Settle(m ring.MemberID) bool {
	_, ok := l.promises[m]
	delete(l.promises, m)
	return ok
}

// Expire ends the promise for m if it has run out.
func (l *Ledger) Expire(m ring.MemberID, now time.Time) bool {
	p, ok := l.promises[m]
	return ok && !p.expires.After(now) && l.Settle(m)
}

// Target returns the gateway that m was last sent to; false: it was not.
func (l *Ledger) Target(m ring.MemberID) (ring.GatewayID, bool) {
	p, ok := l.promises[m]
	return p.gateway, ok
}

// Members returns who has an open promise, in no order.
func (l *Ledger) Members() iter.Seq[ring.MemberID] { return maps.Keys(l.promises) }

// Apply adds the open promises to the gateways that they were made for, in
// place. A promise is Promised until the gateway has counted anew, and Pending
// after that: until then others may have promised the same room.
func (l *Ledger) Apply(gateways []Gateway) {
	if len(l.promises) == 0 {
		return
	}
	at := make(map[ring.GatewayID]*Gateway, len(gateways))
	for i := range gateways {
		at[gateways[i].ID] = &gateways[i]
	}
	for _, p := range l.promises {
		switch g := at[p.gateway]; {
		case g == nil:
		case g.Counts.Newer(p.seen):
			g.Pending++
		default:
			g.Promised++
		}
	}
}
