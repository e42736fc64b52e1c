// SPDX-License-Identifier: Apache-2.0

package redirect

import (
	"time"

	"github.com/evenring/evenring/ring"
)

// guests are the supervisors that a gateway expects from the others, where
// there is no peer link. Everybody places the same crowd from the same counts: for each
// newcomer that it has placed on itself, each of the others is taken to have sent
// it one, just as each of its promises is taken to have been made by all of
// them. Without that its own place would look cheaper to it than everybody else's. The zero
// value expects nobody.
type guests struct {
	expected []expectation // in order of time
	total    int
	promises []promised // in order of time, the first of them open
	settled  time.Time  // the latest end of a promise that has settled
}

type promised struct {
	member ring.MemberID
	until  time.Time
}

type expectation struct {
	count int
	until time.Time
}

// expect adds so many, up to until.
func (g *guests) expect(n int, until time.Time) {
	if n > 0 {
		g.expected = append(g.expected, expectation{n, until})
		g.total += n
	}
}

// arrive takes one of them as come.
func (g *guests) arrive() {
	if g.total == 0 {
		return
	}
	g.total--
	if g.expected[0].count--; g.expected[0].count == 0 {
		g.expected = g.expected[1:]
	}
}

// promised notes a promise, so that what was expected when it was made is known to be as old.
func (g *guests) promised(m ring.MemberID, until time.Time) {
	g.promises = append(g.promises, promised{m, until})
}

// shown notes that a promise up to until has shown up elsewhere. What was expected before all
// those that are still open has become known in the same way by now, and is expected no longer.
func (g *guests) shown(until time.Time, open func(ring.MemberID, time.Time) bool) {
	if until.After(g.settled) {
		g.settled = until
	}
	g.tidy(open)
	upTo := g.settled
	if len(g.promises) > 0 && !g.promises[0].until.After(upTo) {
		upTo = g.promises[0].until.Add(-1)
	}
	g.forget(upTo)
}

// tidy drops promises that are not open.
func (g *guests) tidy(open func(ring.MemberID, time.Time) bool) {
	for len(g.promises) > 0 && !open(g.promises[0].member, g.promises[0].until) {
		g.promises = g.promises[1:]
	}
}

// forget expects those no longer who were expected up to then: they have come
// by now, or show in the counts of others.
func (g *guests) forget(until time.Time) {
	for len(g.expected) > 0 && !g.expected[0].until.After(until) {
		g.total -= g.expected[0].count
		g.expected = g.expected[1:]
	}
}
