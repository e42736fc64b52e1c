// SPDX-License-Identifier: Apache-2.0

package roster

import (
	"cmp"
	"slices"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// Where says where a request for a member goes.
type Where uint8

// The answers. The zero value promises nothing.
const (
	Unknown   Where = iota // nobody that is known of has the member, and not everybody's record is here
	Nobody                 // nobody has it, and the roster is complete
	Here                   // this gateway has it
	Elsewhere              // another gateway has it
)

var whereText = [...]string{"unknown", "nobody", "here", "elsewhere"}

// String returns the stable text.
func (w Where) String() string {
	if int(w) < len(whereText) {
		return whereText[w]
	}
	return whereText[Unknown]
}

// Route says who has a member. The zero value is that of a member nobody knows.
type Route struct {
	Where   Where
	Holders []Holder // those that have it, best first; none if Where is Nobody or Unknown. The receiver's.
}

// Holder is a gateway that has a member.
type Holder struct {
	placement.Gateway
	Generation placement.Generation // of the member's attempt there
	Expected   bool                 // it has no stream there now, and is expected to have one soon
}

// Route returns who has the member. Those come last where its stream broke,
// before them those that are suspect, and before them those that drain; among
// equals the higher generation is first. Nothing but a broken stream speaks
// against this gateway itself: its own record is exact.
//
// Nobody is said only of a roster that is complete: callers may use it, it is
// not stale, and no gateway is known to have told more than has arrived here.
func (r *Roster) Route(now time.Time, m ring.MemberID) Route {
	var route Route
	for id, e := range r.Holders(m) {
		route.Holders = append(route.Holders, Holder{Gateway: r.view(r.byID[id]), Generation: e.Generation, Expected: e.Held})
	}
	slices.SortStableFunc(route.Holders, func(x, y Holder) int { return cmp.Compare(r.handicap(x), r.handicap(y)) })
	switch {
	case len(route.Holders) > 0 && route.Holders[0].ID == r.self.id:
		route.Where = Here
	case len(route.Holders) > 0:
		route.Where = Elsewhere
	case !r.lacks(now):
		route.Where = Nobody
	}
	return route
}

// handicap is how much speaks against a request to the holder.
func (r *Roster) handicap(h Holder) int {
	switch other := h.ID != r.self.id; {
	case h.Expected:
		return 3
	case other && h.Suspect:
		return 2
	case other && h.State == placement.Draining:
		return 1
	default:
		return 0
	}
}

// lacks reports whether members may be missing from this roster.
func (r *Roster) lacks(now time.Time) bool {
	if !r.readyForCallers(now).OK || r.Stale(now) {
		return true
	}
	return slices.ContainsFunc(r.sorted, func(rec *record) bool {
		return rec != r.self && !rec.delisted && (!rec.synced || rec.behind() || rec.unseen() > 0)
	})
}
