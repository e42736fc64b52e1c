// SPDX-License-Identifier: Apache-2.0

package rostertest

import (
	"fmt"

	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/ring"
)

// calm: gateways start one after the other, serving already, and change.
func calm(e *exam) {
	for i := range gateways {
		n := e.start(gatewayID(i))
		for j := range 20 {
			e.attach(n, ring.MemberID(fmt.Sprintf("first-%d-%d", i, j)))
		}
	}
	e.agree()
	e.churn()
	e.agree()
}

// storm: nothing that the weather does outlasts it.
func storm(e *exam, w weather) {
	e.startAll()
	e.agree()
	for range 2 {
		e.weather.Store(&w)
		e.churn()
		e.agree()
	}
}

// partition: both sides go on, members that one has turn up at the other, and
// the sides come together again.
func partition(e *exam) {
	e.startAll()
	e.churn()
	e.agree()
	for _, split := range []int{1, 2} {
		w := weather{side: make(map[ring.GatewayID]int)}
		for i := split; i < gateways; i++ {
			w.side[gatewayID(i)] = 1
		}
		e.weather.Store(&w)
		e.churn()
		e.agree()
	}
	for _, id := range e.ids() {
		for m := range e.nodes[id].truth {
			e.sameHome(m)
		}
	}
}

// sameHome checks that all have one place for the member, that of its highest generation.
func (e *exam) sameHome(m ring.MemberID) {
	e.t.Helper()
	var want ring.GatewayID
	var best roster.Entry
	for id, n := range e.nodes {
		if entry, ok := n.truth[m]; ok && entry.Generation > best.Generation {
			want, best = id, entry
		}
	}
	for id, n := range e.nodes {
		n.mu.Lock()
		home, entry, _ := n.roster.Home(m)
		n.mu.Unlock()
		if home != want || entry != best {
			e.t.Fatalf("rostertest: %s has %s at %s, generation %d; it is at %s, generation %d", id, m, home, entry.Generation, want, best.Generation)
		}
	}
}

// restart: a gateway dies and starts again under its ID, serving others, before
// and after the rest have noticed, in fair weather and in foul.
func restart(e *exam) {
	e.startAll()
	e.churn()
	e.agree()
	foul := weather{loss: 0.3, twice: 0.3, late: 0.3}
	for i, w := range []*weather{{}, &foul} {
		id := gatewayID(1 + i)
		e.weather.Store(w)
		e.change()
		e.kill(id)
		n := e.start(id)
		e.attach(n, ring.MemberID(fmt.Sprintf("since-start-%d", i)))
		e.churn()
		e.agree()
	}
}

// largeRecord: a record of several pages goes to one that starts late.
func largeRecord(e *exam) {
	const members = 40_000
	first, second := e.start(gatewayID(0)), e.start(gatewayID(1))
	for i := range members {
		e.attach(first, ring.MemberID(fmt.Sprintf("a member with a rather long name, number %d", i)))
	}
	e.attach(second, "another")
	e.agree()
	e.start(gatewayID(2))
	e.agree()
}
