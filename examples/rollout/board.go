// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/evenring/evenring/examples/internal/report"
)

// board gathers what the supervisors' processes report: who is where now, and
// what happened since the step began.
type board struct {
	mu       sync.Mutex
	members  map[string]*member
	since    happenings
	lastMove time.Time
}

type member struct {
	gateway  string // empty: no stream
	last     string // the last gateway that accepted it
	sessions map[string]place
	want     int    // sessions that it is to have
	attached int    // times since the step began
	moves    int    // since the step began
	from     string // the last gateway before the step began
}

type place struct {
	gateway string
	atHome  bool
}

// happenings are counted from the beginning of a step.
type happenings struct {
	gaps      []float64 // milliseconds, one for each time somebody was accepted
	refused   int
	redirects map[string]int // by target
}

func newBoard() *board {
	return &board{members: make(map[string]*member), since: happenings{redirects: make(map[string]int)}}
}

// begin starts a step.
func (b *board) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.since = happenings{redirects: make(map[string]int)}
	for _, m := range b.members {
		m.attached, m.moves, m.from = 0, 0, m.last
	}
}

// expect adds a member that is to be served, with so many sessions.
func (b *board) expect(name string, sessions int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.members[name] == nil {
		b.members[name] = &member{sessions: make(map[string]place)}
	}
	b.members[name].want = sessions
}

// died notes that the process that hosts these members has ended.
func (b *board) died(names []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range names {
		if m := b.members[name]; m != nil {
			m.gateway = ""
			clear(m.sessions)
		}
	}
	b.lastMove = time.Now()
}

// event takes one line of a report.
func (b *board) event(e report.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.members[e.Member]
	if m == nil {
		return
	}
	switch e.Kind {
	case report.Attached:
		if m.last != "" && m.last != e.Gateway {
			m.moves++
		}
		m.gateway, m.last = e.Gateway, e.Gateway
		m.attached++
		b.since.gaps = append(b.since.gaps, e.GapMS)
	case report.Lost:
		m.gateway = ""
	case report.Verdict:
		switch e.Outcome {
		case "refuse":
			b.since.refused++
		case "redirect":
			b.since.redirects[e.Gateway]++
		}
	case report.Session:
		if e.Gateway == "" {
			delete(m.sessions, e.Session)
		} else {
			m.sessions[e.Session] = place{e.Gateway, e.AtHome}
		}
	}
	b.lastMove = time.Now()
}

// figures is the board, read at one moment.
type figures struct {
	served     map[string]int
	sessions   int
	misplaced  int // sessions that are not where their supervisor is
	missing    int // sessions without a stream
	supervisor int
	lost       int // supervisors without a stream
	moved      int
	maxMoves   int
	least      int // the fewest times that anybody was accepted since the step began
	gapMax     float64
	gapP99     float64
	refused    int
	redirects  map[string]int
	quiet      time.Duration // since the last event
}

func (b *board) read() figures {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := figures{served: make(map[string]int), redirects: maps.Clone(b.since.redirects), refused: b.since.refused, quiet: time.Since(b.lastMove), least: -1}
	for _, m := range b.members {
		f.supervisor++
		if m.gateway == "" {
			f.lost++
		} else {
			f.served[m.gateway]++
		}
		if m.moves > 0 {
			f.moved++
			f.maxMoves = max(f.maxMoves, m.moves)
		}
		if f.least < 0 || m.attached < f.least {
			f.least = m.attached
		}
		f.sessions += len(m.sessions)
		f.missing += max(0, m.want-len(m.sessions))
		for _, p := range m.sessions {
			if p.gateway != m.gateway || !p.atHome {
				f.misplaced++
			}
		}
	}
	gaps := slices.Sorted(slices.Values(b.since.gaps))
	if n := len(gaps); n > 0 {
		f.gapMax = gaps[n-1]
		f.gapP99 = gaps[(n*99+99)/100-1]
	}
	return f
}

// mover is a supervisor that has changed gateway since the step began.
type mover struct {
	member   string
	from, to string
}

// movers returns them by name. One that is back where it was is one, too.
func (b *board) movers() []mover {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []mover
	for _, name := range slices.SortedFunc(maps.Keys(b.members), byNumber) {
		if m := b.members[name]; m.moves > 0 {
			all = append(all, mover{name, m.from, m.last})
		}
	}
	return all
}

// places returns where each supervisor has its stream; empty: nowhere.
func (b *board) places() map[string]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := make(map[string]string, len(b.members))
	for name, m := range b.members {
		at[name] = m.gateway
	}
	return at
}

// lastEvent returns when the last one came.
func (b *board) lastEvent() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lastMove
}

// spread is most minus fewest served, over the given gateways.
func (f figures) spread(gateways []string) int {
	lo, hi := -1, 0
	for _, id := range gateways {
		n := f.served[id]
		if lo < 0 || n < lo {
			lo = n
		}
		hi = max(hi, n)
	}
	return hi - max(lo, 0)
}
