// SPDX-License-Identifier: Apache-2.0

package fleetscript

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/evenring/evenring/internal/sim"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// account is what has happened since it was last read.
type account struct {
	moves      map[ring.MemberID]int // of each, up to then
	redirected tally
	refused    tally
	moved      tally // told to move
	ended      tally // told to end
	aboveCap   tally
	overCap    map[*sim.Gateway]map[redirect.Reason]uint64 // up to then
	reported   map[*sim.Gateway]time.Duration              // how long the drain took that was reported last
	ignored    []string

	hellos  []time.Duration // when they came
	comings []time.Duration // the first of each supervisor
	came    map[ring.MemberID]bool
	traffic map[string]*volume
}

// volume is how much of one kind was said.
type volume struct {
	messages, longest int
	members           int // the most in one message
}

// tally counts by reason.
type tally map[redirect.Reason]uint64

// String returns the sum, and what it is made of.
func (t tally) String() string {
	sum := uint64(0)
	var parts []string
	for _, r := range slices.Sorted(maps.Keys(t)) {
		if t[r] > 0 {
			sum += t[r]
			parts = append(parts, fmt.Sprintf("%s %d", r, t[r]))
		}
	}
	if sum == 0 {
		return "0"
	}
	return fmt.Sprintf("%d (%s)", sum, strings.Join(parts, ", "))
}

// open begins the account of a world. What passes the world's Spoil is counted and left as it is.
func (a *account) open(w *sim.World) {
	*a = account{
		moves: make(map[ring.MemberID]int), overCap: make(map[*sim.Gateway]map[redirect.Reason]uint64),
		reported: make(map[*sim.Gateway]time.Duration), came: make(map[ring.MemberID]bool), traffic: make(map[string]*volume),
	}
	a.forget()
	w.Spoil.Verdict = func(_ *sim.Gateway, v redirect.Verdict) redirect.Verdict {
		switch v.Outcome {
		case redirect.Redirect:
			a.redirected[v.Reason]++
		case redirect.Refuse:
			a.refused[v.Reason]++
		}
		return v
	}
	w.Spoil.Notice = func(_ *sim.Gateway, n redirect.Notice) redirect.Notice {
		switch n.Kind {
		case redirect.NoticeMove:
			a.moved[n.Reason]++
		case redirect.NoticeEnd:
			a.ended[n.Reason]++
		}
		return n
	}
	w.Rejected = func(g *sim.Gateway, r roster.Rejected) {
		if line := fmt.Sprintf("%s ignored a word: %v", g.ID, r.Err); !slices.Contains(a.ignored, line) {
			a.ignored = append(a.ignored, line)
		}
	}
	w.Said = a.said
}

func (a *account) forget() {
	a.redirected, a.refused, a.moved, a.ended, a.aboveCap, a.ignored = tally{}, tally{}, tally{}, tally{}, tally{}, nil
}

// hello counts one that has reached a gateway.
func (a *account) hello(m ring.MemberID, at time.Duration) {
	a.hellos = append(a.hellos, at)
	if !a.came[m] {
		a.came[m] = true
		a.comings = append(a.comings, at)
	}
}

// densest returns how many of several moments, in order, lie within a window at most.
func densest(all []time.Duration, window time.Duration) (most int) {
	first := 0
	for last, at := range all {
		for at-all[first] >= window {
			first++
		}
		most = max(most, last-first+1)
	}
	return most
}

func (a *account) said(m roster.Message, bytes int) {
	kind, members := "heartbeats", 0
	switch m := m.(type) {
	case roster.Delta:
		kind, members = "deltas", len(m.Changes)
	case roster.Snapshot:
		kind, members = "snapshot pages", len(m.Entries)
	case roster.SnapshotRequest:
		kind = "snapshot requests"
	}
	v := a.traffic[kind]
	if v == nil {
		v = &volume{}
		a.traffic[kind] = v
	}
	v.messages++
	v.longest, v.members = max(v.longest, bytes), max(v.members, members)
}

// cap counts who was accepted above the cap since the last time.
func (a *account) cap(all []*sim.Gateway) {
	for _, g := range all {
		now := g.Admission.Stats(g.Now()).OverCap
		for r, n := range now {
			a.aboveCap[r] += n - a.overCap[g][r]
		}
		a.overCap[g] = now
	}
}
