// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"time"

	"github.com/evenring/evenring/ring"
)

// Ledger keeps what one gateway has promised: places for members that it sent
// elsewhere and that have not shown up yet. Without a peer link nobody else
// knows of them. A promise ends when the member shows up anywhere, or when it
// expires. The zero value is empty, and counts in no view. Not safe for concurrent use.
type Ledger struct {
	view      *View
	promises  map[ring.MemberID]*promise
	spare     *promise // those that have ended, to be used again
	newcomers int
}

type promise struct {
	next     *promise // among the spare ones
	gateway  ring.GatewayID
	at       int // the gateway's position in the view when the promise was made; -1: it counts nowhere
	newcomer bool
	expires  time.Time
}

// Bind makes the open promises, and those to come, count in v, whose gateways
// must have none. Whatever view they counted in before is left as it is.
func (l *Ledger) Bind(v *View) {
	for _, p := range l.promises {
		if p.at = v.position(p.gateway); p.at >= 0 {
			v.promise(p.at, 1)
		}
	}
	l.view = v
}

// Promise notes that m was sent to g, up to expires; newcomer says that nobody's counts include it. A
// newer promise for the same member takes the place of the older.
func (l *Ledger) Promise(m ring.MemberID, g ring.GatewayID, newcomer bool, expires time.Time) {
	if before := l.promises[m]; before != nil {
		newcomer = newcomer || before.newcomer
		l.end(m, before)
	}
	i := -1
	if l.view != nil {
		i = l.view.position(g)
	}
	l.put(m, i, g, newcomer, expires)
}

// put notes a promise for a member that has none.
func (l *Ledger) put(m ring.MemberID, at int, g ring.GatewayID, newcomer bool, expires time.Time) {
	if at >= 0 {
		l.view.promise(at, 1)
	}
	if newcomer {
		l.newcomers++
	}
	p := l.spare
	if p == nil {
		p = new(promise)
	} else {
		l.spare = p.next
	}
	p.gateway, p.at, p.newcomer, p.expires = g, at, newcomer, expires
	if l.promises == nil {
		l.promises = make(map[ring.MemberID]*promise)
	}
	l.promises[m] = p
}

// Settle ends the promise for m, if there is one: it has shown up.
func (l *Ledger) Settle(m ring.MemberID) bool {
	p := l.promises[m]
	if p != nil {
		l.end(m, p)
	}
	return p != nil
}

// end ends m's promise.
func (l *Ledger) end(m ring.MemberID, p *promise) {
	delete(l.promises, m)
	if p.newcomer {
		l.newcomers--
	}
	if i := l.position(p); i >= 0 {
		l.view.promise(i, -1)
	}
	p.next, l.spare = l.spare, p
}

// position returns where the promise counts, or -1.
func (l *Ledger) position(p *promise) int {
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
	p := l.promises[m]
	if p == nil || p.expires.After(now) {
		return false
	}
	l.end(m, p)
	return true
}

// Target returns the gateway that m was last sent to, and when the promise expires; false: it was not.
func (l *Ledger) Target(m ring.MemberID) (g ring.GatewayID, expires time.Time, ok bool) {
	if p := l.promises[m]; p != nil {
		return p.gateway, p.expires, true
	}
	return "", time.Time{}, false
}

// Newcomers returns how many open promises are for members that nobody's counts included.
func (l *Ledger) Newcomers() int { return l.newcomers }

// promise adds n to the promises of the gateway at position i.
func (v *View) promise(i, n int) {
	g, load := &v.gateways[i], &v.drafts[i].Load
	before := *load
	after := before + n*v.rivals
	g.Promised += n
	*load = after
	if v.target(g) {
		v.sift(i, before, after)
	}
}
