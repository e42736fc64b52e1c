// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/evenring/evenring/ring"
)

// Request asks where one member belongs.
type Request struct {
	Member   ring.MemberID    `json:"member"`
	Home     ring.GatewayID   `json:"home,omitempty"`     // whose counts include this member already; empty: it is a newcomer
	Held     bool             `json:"held,omitempty"`     // it is on hold there: its stream broke
	Promised bool             `json:"promised,omitempty"` // it is not counted there yet, but one of those promised
	Prefer   ring.GatewayID   `json:"prefer,omitempty"`   // where the walk begins; empty: at Home
	Avoid    []ring.GatewayID `json:"avoid,omitempty"`    // never these
}

// Decision is where a member belongs, and why. The zero value is Nowhere.
type Decision struct {
	Gateway     ring.GatewayID `json:"gateway"` // empty exactly if Reason is Nowhere
	Endpoint    string         `json:"endpoint"`
	Incarnation Incarnation    `json:"incarnation,string"`
	Reason      Reason         `json:"reason"`

	Cap   int `json:"cap"`   // even share of the live supervisors, rounded up, the newcomer counted once
	Share int `json:"share"` // the same, rounded down
	Limit int `json:"limit"` // the step that decided: the gateway had room because its load was below this. At Full: the cap
	Load  int `json:"load"`  // the gateway's load as seen, this member left out

	Version uint64        `json:"version,string"` // of the view
	Age     time.Duration `json:"age_ns"`         // of the view
}

// terms are the two steps of room.
type terms struct{ share, cap int }

// even returns the terms of so many supervisors on so many gateways, at least one.
func even(live, placeable int) terms {
	t := terms{share: live / placeable}
	t.cap = t.share
	if t.share*placeable < live {
		t.cap++
	}
	return t
}

// andOne returns the terms of one supervisor more, from those of so many.
func (t terms) andOne(live, placeable int) terms {
	if live-t.share*placeable+1 == placeable {
		return terms{t.share + 1, t.share + 1}
	}
	return terms{t.share, t.share + 1}
}

// divisor is how many gateways carry the live: the placeable ones, and of those
// not the ones that the member must avoid.
func (v *View) divisor(r *Request) int {
	n := v.placeable
	for i, id := range r.Avoid {
		if p := v.position(id); p >= 0 && v.gateways[p].Placeable() && !slices.Contains(r.Avoid[:i], id) {
			n--
		}
	}
	return n
}

// terms computes the terms of a request; false: there is no gateway to choose from.
func (v *View) terms(r *Request) (terms, bool) {
	n := v.divisor(r)
	if n == 0 {
		return terms{}, false
	}
	live := v.live
	if r.Home == "" {
		live++
	}
	return even(live, n), true
}

// weighed is the load, where each promise counts as often as the weight says.
func (g *Gateway) weighed(weight int) int { return g.Load() + weight*g.Promised }

// load is what g carries in the eyes of this request: the member itself left
// out, and each promise counted once for everybody who places, who promise as much.
func (v *View) load(r *Request, g *Gateway) int {
	if r.Home == "" || r.Home != g.ID {
		return g.weighed(v.rivals)
	}
	return v.loadAtHome(r, g)
}

func (v *View) loadAtHome(r *Request, g *Gateway) int {
	n := g.weighed(v.rivals)
	switch {
	case r.Promised:
		n -= v.rivals
	case v.asking && r.Held:
		n -= g.Held // the others on hold come back like this one, and the first ones stay
	case v.asking:
		n -= g.Held + 1
	default:
		n--
	}
	return max(n, 0)
}

// Place decides where the member belongs: the first gateway on its walk that
// has room, or, if nobody has, the first that may be a target. It never fails:
// with nobody to choose from the decision is Nowhere.
//
// A newcomer, a member whose home comes first on its walk, and one whose home
// or whom to avoid may be no targets anyway, cost the same however large the
// fleet is and however few have room. Other requests cost a walk for each step that finds no room.
// It does not allocate.
func (v *View) Place(r Request) (d Decision) {
	v.place(&r, &d)
	return d
}

// place decides, and returns the position of the gateway, or -1.
func (v *View) place(r *Request, d *Decision) (at int) {
	if r.Home != "" || r.Prefer != "" || len(r.Avoid) > 0 {
		at, reason, limit, t := v.choose(r)
		v.write(d, r, at, reason, limit, t)
		return at
	}
	// A newcomer: what choose and write come to, mostly with the first answer.
	t, reason, limit := v.newcomer, Owner, v.newcomer.share
	slot, at := v.ring.LocateHash(r.Member.Hash())
	if s := v.room(limit); !s.has(slot, at) {
		if s.ringed > 0 {
			at, reason = v.layout.next(s, slot), Overflow
		} else {
			at, reason, limit = v.quick(r, slot, at, -1, t)
		}
	}
	if at >= 0 {
		*d = v.drafts[at]
		d.Reason, d.Limit = reason, limit
	}
	d.Cap, d.Share, d.Version, d.Age = t.cap, t.share, v.version, v.age
	return at
}

// write writes the decision on the gateway at this position down; below 0 it is Nowhere.
func (v *View) write(d *Decision, r *Request, at int, reason Reason, limit int, t terms) {
	if at >= 0 {
		*d = v.drafts[at]
		d.Reason, d.Limit = reason, limit
		if r.Home == d.Gateway {
			d.Load = v.loadAtHome(r, &v.gateways[at])
		}
	}
	d.Cap, d.Share, d.Version, d.Age = t.cap, t.share, v.version, v.age
}

// choose decides: which position, or -1, why, below which limit and under which terms.
func (v *View) choose(r *Request) (at int, reason Reason, limit int, t terms) {
	if r.Prefer == "" {
		r.Prefer = r.Home
	}
	prefer := v.position(r.Prefer)
	if !v.simple(r, prefer) {
		return v.walked(r, prefer)
	}
	t = v.newcomer
	if r.Home != "" {
		t = v.resident
	}
	slot, owner := v.ring.Locate(r.Member)
	at, reason, limit = v.quick(r, slot, owner, prefer, t)
	return at, reason, limit, t
}

// quick decides by the sets of those with room.
func (v *View) quick(r *Request, slot, owner, prefer int, t terms) (at int, reason Reason, limit int) {
	for limit := t.share; limit <= t.cap; limit++ {
		if prefer >= 0 {
			if g := &v.gateways[prefer]; v.target(g) && v.load(r, g) < limit {
				return prefer, Preferred, limit
			}
		}
		s := v.room(limit)
		if s.ringed > 0 {
			if at = v.layout.next(s, slot); at == owner {
				return at, Owner, limit
			}
			return at, Overflow, limit
		}
		if s.slotless > 0 {
			return v.slotless(s), Overflow, limit
		}
	}
	switch s := &v.targets; {
	case s.ringed > 0:
		return v.layout.next(s, slot), Full, t.cap
	case s.slotless > 0:
		return v.slotless(s), Full, t.cap
	default:
		return -1, Nowhere, 0
	}
}

// simple reports whether the sets hold the answer: they know nothing of
// gateways to avoid, and of the member itself only that it may be counted where its walk begins.
func (v *View) simple(r *Request, prefer int) bool {
	for _, id := range r.Avoid {
		if i := v.position(id); i >= 0 && v.gateways[i].Placeable() {
			return false
		}
	}
	if r.Home != r.Prefer {
		if i := v.position(r.Home); i >= 0 && i != prefer && v.target(&v.gateways[i]) {
			return false
		}
	}
	return true
}

// slotless returns the position of the first of the set that owns no slot.
func (v *View) slotless(s *room) int {
	for _, i := range v.layout.slotless {
		if v.below(&v.gateways[i], s.limit) {
			return i
		}
	}
	for i := v.ring.Len(); i < len(v.gateways); i++ {
		if v.below(&v.gateways[i], s.limit) {
			return i
		}
	}
	return -1
}

// walk yields positions of v.gateways in the member's walk order: prefer
// first, then clockwise, then those that are not on the ring.
func (v *View) walk(m ring.MemberID, prefer int) iter.Seq[int] {
	return func(yield func(int) bool) {
		if prefer >= 0 && !yield(prefer) {
			return
		}
		for i := range v.ring.Walk(m) {
			if i != prefer && !yield(i) {
				return
			}
		}
		for i := v.ring.Len(); i < len(v.gateways); i++ {
			if i != prefer && !yield(i) {
				return
			}
		}
	}
}

// walked decides by going round. It is the rule as it is told, and what quick
// must agree with.
func (v *View) walked(r *Request, prefer int) (int, Reason, int, terms) {
	t, ok := v.terms(r)
	if !ok {
		return -1, Nowhere, 0, terms{}
	}
	for limit := t.share; limit <= t.cap; limit++ {
		for i := range v.walk(r.Member, prefer) {
			g := &v.gateways[i]
			if !v.target(g) || slices.Contains(r.Avoid, g.ID) || v.load(r, g) >= limit {
				continue
			}
			reason := Overflow
			switch owner, _ := v.ring.Owner(r.Member); g.ID {
			case r.Prefer:
				reason = Preferred
			case owner:
				reason = Owner
			}
			return i, reason, limit, t
		}
	}
	for i := range v.walk(r.Member, -1) { // the owner, and not the preferred one
		if g := &v.gateways[i]; v.target(g) && !slices.Contains(r.Avoid, g.ID) {
			return i, Full, t.cap, t
		}
	}
	return -1, Nowhere, 0, t
}

// least turns a decision into one for the least loaded that may be a target.
// Among equals it is the one who looks, whose own load is exact, and then the first on the walk.
func (v *View) least(r *Request, d Decision) Decision {
	best := d
	best.Reason = Insisted
	for i := range v.walk(r.Member, v.position(cmp.Or(r.Prefer, r.Home))) {
		g := &v.gateways[i]
		if !v.target(g) || slices.Contains(r.Avoid, g.ID) {
			continue
		}
		if n := v.load(r, g); n < best.Load || n == best.Load && g.ID == v.self {
			v.write(&best, r, i, Insisted, d.Limit, terms{share: d.Share, cap: d.Cap})
		}
	}
	return best
}

// Youngest returns the target that started last, other than this one; empty if
// there is none. Whoever is handed over prefers it: in a rolling restart it is
// the least likely to stop next, so that each supervisor moves once.
// Incarnations of different gateways are comparable as far as their clocks
// are, and a preference needs no more. It looks at every gateway.
func (v *View) Youngest(except ring.GatewayID) ring.GatewayID {
	best := -1
	for i := range v.gateways {
		g := &v.gateways[i]
		if g.ID != except && v.target(g) && (best < 0 || g.Incarnation > v.gateways[best].Incarnation) {
			best = i
		}
	}
	if best < 0 {
		return ""
	}
	return v.gateways[best].ID
}
