// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"sync"
	"time"

	"github.com/evenring/evenring/examples/internal/report"
	"github.com/evenring/evenring/ring"
)

// truth is where the supervisors say that they are served.
type truth map[ring.MemberID]ring.GatewayID

// board gathers what the supervisors' processes report.
type board struct {
	mu     sync.Mutex
	places truth                      // those that have a stream
	back   map[ring.MemberID]struct{} // those that were accepted since the round began
	last   time.Time                  // when the last of them was
}

func newBoard() *board { return &board{places: make(truth), back: make(map[ring.MemberID]struct{})} }

// begin starts a round: everybody is to come.
func (b *board) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.back)
	b.last = time.Time{}
}

// event takes one line of a report.
func (b *board) event(e report.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	member := ring.MemberID(e.Member)
	switch e.Kind {
	case report.Attached:
		b.places[member] = ring.GatewayID(e.Gateway)
		b.back[member] = struct{}{}
		if e.At.After(b.last) {
			b.last = e.At
		}
	case report.Lost:
		delete(b.places, member)
		delete(b.back, member)
	}
}

// served returns how many have come since the round began and have a stream, and when the last
// was accepted.
func (b *board) served() (n int, last time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.back), b.last
}

func (b *board) read() truth {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.places)
}
