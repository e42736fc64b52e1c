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
// expires. The zero value is empty, and counts in no view. Not safe for concurrent use.
type Ledger struct {
	view     *View
	promises map[ring.MemberID]promise
}

type promise struct {
	gateway ring.GatewayID
	at      int    // the gateway's position in the view when the promise was made; -1: it counts nowhere
	epoch   uint32 // of the gateway then
	expires time.Time
}

// Bind makes the open promises, and those to come, count in v, whose gateways
// must have none: as Promised until the gateway has counted anew, and as Pending
// after that, for until then others may have promised the same room. Whatever view
// they counted in before is left as it is.
func (l *Ledger) Bind(v *View) {
	for m, p := range l.promises {
		i, before := v.position(p.gateway), l.position(p)
		if i >= 0 {
			fresh := before >= 0 && p.epoch == l.view.epochs[before] && !v.gateways[i].Counts.Newer(l.view.gateways[before].Counts)
			p.epoch = v.epochs[i]
			if !fresh {
				p.epoch--
			}
			v.promise(i, 1, fresh)
		}
		p.at = i
		l.promises[m] = p
	}
	l.view = v
}

// Promise notes that m was sent to g, up to expires. A newer promise for the
// same member takes the place of the older.
func (l *Ledger) Promise(m ring.MemberID, g ring.GatewayID, expires time.Time) {
	l.Settle(m)
	i := -1
	if l.view != nil {
		i = l.view.position(g)
	}
	l.put(m, g, i, expires)
}

// put notes the promise of the gateway at this position, or -1, for a member that has none.
func (l *Ledger) put(m ring.MemberID, g ring.GatewayID, at int, expires time.Time) {
	p := promise{gateway: g, at: at, expires: expires}
	if at >= 0 {
		p.epoch = l.view.epochs[at]
		l.view.promise(at, 1, true)
	}
	if l.promises == nil {
		l.promises = make(map[ring.MemberID]promise)
	}
	l.promises[m] = p
}

// Settle ends the promise for m, if there is one: it has shown up.
func (l *Ledger) Settle(m ring.MemberID) bool {
	p, ok := l.promises[m]
	if !ok {
		return false
	}
	delete(l.promises, m)
	if i := l.position(p); i >= 0 {
		l.view.promise(i, -1, p.epoch == l.view.epochs[i])
	}
	return true
}

// position returns where the promise counts, or -1.
func (l *Ledger) position(p promise) int {
	if l.view == nil || p.at < 0 {
		return -1
	}
	if p.at < len(l.view.gateways) && l.view.gateways[p.at].ID == p.gateway {
		return p.at
	}
	return l.view.position(p.gateway)
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

// promise adds n to the promises of the gateway at position i.
func (v *View) promise(i, n int, fresh bool) {
	g := &v.gateways[i]
	before, heavyBefore := g.weighed(1), g.weighed(v.rivals)
	if fresh {
		g.Promised += n
	} else {
		g.Pending += n
	}
	v.drafts[i].Load += n
	if v.target(g) {
		v.sift(0, i, before, before+n)
		if v.rivals > 1 {
			v.sift(1, i, heavyBefore, g.weighed(v.rivals))
		}
	}
}
