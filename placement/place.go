// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"
	"time"

	"github.com/evenring/evenring/ring"
)

// Request asks where one member belongs.
type Request struct {
	Member ring.MemberID
	Home   ring.GatewayID   // whose counts include this member already; empty: it is a newcomer
	Held   bool             // it is on hold there: its stream broke
	Prefer ring.GatewayID   // where the walk begins; empty: at Home
	Avoid  []ring.GatewayID // never these
}

// Decision is where a member belongs, and why. The zero value is Nowhere.
type Decision struct {
	Gateway     ring.GatewayID // empty exactly if Reason is Nowhere
	Endpoint    string
	Incarnation Incarnation
	Reason      Reason

	Cap   int // even share of the live supervisors, rounded up, the newcomer counted once
	Share int // the same, rounded down
	Limit int // the step that decided: the gateway had room because its load was below this. At Full: the cap
	Load  int // the gateway's load as seen, this member left out
	Rank  int // its rank on the walk, 0 for the first

	Version uint64        // of the view
	Age     time.Duration // of the view
}

// round is one pass over the walk: who is below limit, when a promise of ours
// that the target has not counted yet weighs so much, has room.
type round struct {
	limit  int
	weight int
}

// terms are the figures of one request, computed once.
type terms struct {
	cap, share int
	rounds     [4]round
	n          int // rounds in use
}

// terms computes cap and share over the gateways that may be chosen: one that
// the member must avoid carries none of the load.
func (v *View) terms(r Request) (terms, bool) {
	placeable := v.placeable
	for i, id := range r.Avoid {
		if p := v.position(id); p >= 0 && v.gateways[p].Placeable() && !slices.Contains(r.Avoid[:i], id) {
			placeable--
		}
	}
	if placeable <= 0 {
		return terms{}, false
	}
	live := v.live
	if r.Home == "" {
		live++
	}
	t := terms{cap: (live + placeable - 1) / placeable, share: live / placeable, n: 2}
	t.rounds = [...]round{{t.share, v.rivals}, {t.cap, v.rivals}, {t.share, 1}, {t.cap, 1}}
	if v.rivals > 1 {
		t.n = 4
	}
	return t, true
}

// load is what g carries in the eyes of this request: the member itself left
// out, what we promised counted, fresh promises as often as the round says.
func (v *View) load(r Request, g *Gateway, weight int) int {
	n := g.Load() + g.Pending + weight*g.Promised
	if g.ID == r.Home {
		switch {
		case v.asking && r.Held:
			n -= g.Held // the others on hold come back like this one, and the first ones stay
		case v.asking:
			n -= g.Held + 1
		default:
			n--
		}
	}
	return max(n, 0)
}

// Place decides where the member belongs: the first gateway on its walk that
// has room, or, if nobody has, the first that may be a target. It never fails:
// with nobody to choose from the decision is Nowhere. It costs one walk for each step that finds no room.
func (v *View) Place(r Request) Decision {
	d := Decision{Version: v.version, Age: v.age}
	t, ok := v.terms(r)
	if !ok {
		return d
	}
	d.Cap, d.Share = t.cap, t.share
	if r.Prefer == "" {
		r.Prefer = r.Home
	}
	prefer := v.position(r.Prefer)
	for _, round := range t.rounds[:t.n] {
		rank := 0
		for i := range v.walk(r.Member, prefer) {
			g := &v.gateways[i]
			if v.target(g) && !slices.Contains(r.Avoid, g.ID) && v.load(r, g, round.weight) < round.limit {
				reason := Overflow
				switch owner, _ := v.ring.Owner(r.Member); g.ID {
				case r.Prefer:
					reason = Preferred
				case owner:
					reason = Owner
				}
				return v.decide(d, g, r, rank, reason, round.limit)
			}
			rank++
		}
	}
	rank := 0
	for i := range v.walk(r.Member, -1) { // the owner, and not the preferred one
		if g := &v.gateways[i]; v.target(g) && !slices.Contains(r.Avoid, g.ID) {
			return v.decide(d, g, r, rank, Full, t.cap)
		}
		rank++
	}
	return d
}

// least turns a decision into one for the least loaded that may be a target:
// who insists should do the least harm. Among equals it is the one who looks,
// whose own load is exact, and then the first on the walk.
func (v *View) least(r Request, d Decision) Decision {
	best, rank := d, 0
	best.Reason = Insisted
	for i := range v.walk(r.Member, v.position(r.Prefer)) {
		g := &v.gateways[i]
		n := v.load(r, g, 1)
		if v.target(g) && !slices.Contains(r.Avoid, g.ID) && (n < best.Load || n == best.Load && g.ID == v.self) {
			best = v.decide(d, g, r, rank, Insisted, d.Limit)
		}
		rank++
	}
	return best
}

func (v *View) decide(d Decision, g *Gateway, r Request, rank int, reason Reason, limit int) Decision {
	d.Gateway, d.Endpoint, d.Incarnation = g.ID, g.Endpoint, g.Incarnation
	d.Reason, d.Limit, d.Load, d.Rank = reason, limit, v.load(r, g, 1), rank
	return d
}
