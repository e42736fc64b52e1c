// SPDX-License-Identifier: Apache-2.0

// Package placement decides where a supervisor belongs.
//
// A [View] is one gateway's picture of the fleet: the ring, every gateway's
// state and load, and how many supervisors are live. [View.Place] finds the
// first gateway with room, clockwise from the member's slot;
// [View.Explain] tells a person how that came about, and [Predict] what a plan
// of stops and starts will come to.
//
// Room has two steps, and together they keep the spread (most minus fewest
// served) at 1 or below with fresh counts. With L live supervisors and G placeable
// gateways, the share is floor(L/G) and the cap is ceil(L/G). As long as
// somebody is below the share, only those below it have room; after that, those below the
// cap. The cap alone would not do: 13 supervisors on 3 gateways fit under a
// cap of 5 as 5/5/3. The cap is soft: when nobody has room the ring's owner
// takes the member all the same, and nobody is ever turned away for being one
// too many.
//
// A picture is never quite fresh, and everybody who places from the same stale
// picture sees the same room. So a [Search] asks the target to keep a place
// before the supervisor is sent there ([Question], [Answer]); without a way to
// ask, a [Ledger] counts what it has promised, and a [Book] does so for many
// goroutines.
//
// Everything here is pure: no clock, no randomness, no goroutine. A View is
// like a map: any number of goroutines may read it while nobody changes it. A
// Search and a Ledger belong to one goroutine at a time.
package placement

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/evenring/evenring/ring"
)

// Picture is what a [View] is made from.
type Picture struct {
	Self     ring.GatewayID // who looks; it needs no endpoint to be its own target
	Ring     *ring.Ring     // nil: empty
	Gateways []Gateway      // in any order; of two with one ID the last counts, and one without an ID is nobody; those that are not on the ring come last on every walk
	Live     int            // distinct supervisors: attached anywhere, reserved or held
	Asking   bool           // targets are asked before anybody is sent to them
	Rivals   int            // without asking: how many gateways place from pictures like this one; 0 is 1
	Version  uint64         // of the facts; goes into every decision
	Age      time.Duration  // of the oldest of the facts; goes into every decision
}

// View is a picture of the fleet that placements are made from. It is made by
// [NewView] for one ring, and kept up to date by [View.Set] and the like. It
// may be read by many goroutines while none changes it.
type View struct {
	self      ring.GatewayID
	ring      *ring.Ring
	layout    *layout
	gateways  []Gateway  // by position on the ring, then the rest by ID
	drafts    []Decision // by position: what a decision on that gateway says whoever asks
	live      int
	placeable int
	asking    bool
	rivals    int
	version   uint64
	age       time.Duration

	newcomer, resident terms // of a request without anybody to avoid

	// The targets below a limit, by limit. All limits in use lie next to each
	// other, so that a few sets, each at its limit's remainder, hold them and
	// those that were in use a moment ago.
	rooms   [4]room
	targets room // all of them
}

// NewView returns the view of a picture. It copies p.Gateways. A gateway that is on the
// ring and not in the list is unknown, and so never a target.
func NewView(p Picture) *View {
	v := &View{
		self: p.Self, ring: p.Ring, layout: newLayout(p.Ring), live: max(0, p.Live), asking: p.Asking, rivals: max(1, p.Rivals), version: p.Version, age: p.Age,
		gateways: make([]Gateway, p.Ring.Len(), max(p.Ring.Len(), len(p.Gateways))),
	}
	for i, id := range p.Ring.Gateways() {
		v.gateways[i].ID = id
	}
	for _, g := range p.Gateways {
		if i, ok := p.Ring.Index(g.ID); ok {
			v.gateways[i] = g
		} else if g.ID != "" {
			v.gateways = append(v.gateways, g)
		}
	}
	rest := v.gateways[p.Ring.Len():]
	slices.SortStableFunc(rest, func(a, b Gateway) int { return cmp.Compare(a.ID, b.ID) })
	v.gateways = v.gateways[:p.Ring.Len()]
	for i, g := range rest {
		if i+1 == len(rest) || rest[i+1].ID != g.ID {
			v.gateways = append(v.gateways, g)
		}
	}
	v.drafts = make([]Decision, len(v.gateways))
	v.gather()
	return v
}

// Clone returns a view of its own that shows the same.
func (v *View) Clone() *View {
	c := *v
	c.gateways = slices.Clone(v.gateways)
	c.drafts = slices.Clone(v.drafts)
	for i := range c.rooms {
		c.rooms[i].slots = slices.Clone(c.rooms[i].slots)
	}
	c.targets.slots = slices.Clone(c.targets.slots)
	return &c
}

// Set takes newer facts of one gateway. What was promised to it stays: it is
// the view's own, and g.Promised is not read. A gateway that the view has not
// had before and that is not on the ring comes last on every walk; one without an ID is nobody. The ring itself stays:
// when gateways come and go for good, make a new view.
//
// It takes time in proportion to the gateway's slots at most, and as a rule
// none of them is touched.
func (v *View) Set(g Gateway) {
	if g.ID == "" {
		return
	}
	i := v.position(g.ID)
	if i < 0 {
		rest := v.gateways[v.ring.Len():]
		at, _ := slices.BinarySearchFunc(rest, g.ID, func(x Gateway, id ring.GatewayID) int { return cmp.Compare(x.ID, id) })
		i = v.ring.Len() + at
		v.gateways = slices.Insert(v.gateways, i, Gateway{ID: g.ID})
		v.drafts = slices.Insert(v.drafts, i, Decision{})
	}
	old := &v.gateways[i]
	if g.Promised = old.Promised; g != *old {
		v.put(i, g)
	}
}

// SetLive tells how many supervisors are live now.
func (v *View) SetLive(live int) {
	if live = max(0, live); live != v.live {
		v.live = live
		v.measure()
	}
}

// SetRivals tells how many gateways place from pictures like this one now; see [Picture].
func (v *View) SetRivals(n int) {
	if n = max(1, n); n != v.rivals {
		v.rivals = n
		v.gather()
	}
}

// SetSource tells which facts the view shows now, and how old the oldest is.
func (v *View) SetSource(version uint64, age time.Duration) { v.version, v.age = version, age }

// Gateways returns the gateways, those on the ring in ID order first. It may be ranged over more
// than once.
func (v *View) Gateways() iter.Seq[Gateway] { return slices.Values(v.gateways) }

// Gateway returns one gateway, and whether the view has it.
func (v *View) Gateway(id ring.GatewayID) (Gateway, bool) {
	if i := v.position(id); i >= 0 {
		return v.gateways[i], true
	}
	return Gateway{}, false
}

// Ring returns the ring that the view was made for.
func (v *View) Ring() *ring.Ring { return v.ring }

// Live returns the number of live supervisors.
func (v *View) Live() int { return v.live }

// Placeable returns how many gateways are placeable.
func (v *View) Placeable() int { return v.placeable }

// Cap returns the even share, rounded up, of the supervisors that are live
// now, without a newcomer; 0 if no gateway is placeable.
func (v *View) Cap() int { return v.resident.cap }

// CapFor returns the cap that [View.Place] applies to this request.
func (v *View) CapFor(r Request) int {
	t, _ := v.terms(&r)
	return t.cap
}

// target reports whether g may be given somebody: placeable, and either the
// one who looks or one that can be dialled.
func (v *View) target(g *Gateway) bool {
	return g.Placeable() && (g.Endpoint != "" || g.ID == v.self)
}

// fit reports whether the gateway with this ID may be a target.
func (v *View) fit(id ring.GatewayID) bool {
	i := v.position(id)
	return i >= 0 && v.target(&v.gateways[i])
}

// draft is what a decision on g says whoever asks.
func (v *View) draft(g *Gateway) Decision {
	return Decision{Gateway: g.ID, Endpoint: g.Endpoint, Incarnation: g.Incarnation, Load: g.weighed(v.rivals)}
}

// put replaces the gateway at position i and keeps the sets right.
func (v *View) put(i int, g Gateway) {
	old := &v.gateways[i]
	was, is := v.target(old), v.target(&g)
	before, after := old.weighed(v.rivals), g.weighed(v.rivals)
	placeable := v.placeable
	if old.Placeable() {
		placeable--
	}
	if g.Placeable() {
		placeable++
	}
	*old = g
	v.drafts[i] = v.draft(&g)
	if was != is {
		v.layout.flip(&v.targets, i, is)
	}
	if !was {
		before = unlimited
	}
	if !is {
		after = unlimited
	}
	v.sift(i, before, after)
	if placeable != v.placeable {
		v.placeable = placeable
		v.measure()
	}
}

// sift takes the gateway into the sets, or out of them, as its load
// changes; the load of one that is no target is unlimited.
func (v *View) sift(i, before, after int) {
	low, high := min(before, after), max(before, after)
	for k := range v.rooms {
		if s := &v.rooms[k]; low < s.limit && s.limit <= high {
			v.layout.flip(s, i, after < before)
		}
	}
}

// gather makes everything anew that follows from the gateways.
func (v *View) gather() {
	for i := range v.rooms {
		v.rooms[i].limit = noRoom
	}
	v.placeable = 0
	for i := range v.gateways {
		g := &v.gateways[i]
		v.drafts[i] = v.draft(g)
		if g.Placeable() {
			v.placeable++
		}
	}
	v.fill(&v.targets, unlimited)
	v.measure()
}

// measure computes the limits, and makes the sets that they need.
func (v *View) measure() {
	v.resident, v.newcomer = terms{}, terms{}
	if v.placeable > 0 {
		v.resident = even(v.live, v.placeable)
		v.newcomer = v.resident.andOne(v.live, v.placeable)
	}
	// No limit is below the first or above the second, and they are next to each other.
	for _, limit := range [...]int{v.resident.share, v.newcomer.cap} {
		if s := v.room(limit); s.limit != limit {
			v.fill(s, limit)
		}
	}
}

// fill makes s the set for the limit.
func (v *View) fill(s *room, limit int) {
	v.layout.empty(s, limit)
	for i := range v.gateways {
		if v.below(&v.gateways[i], limit) {
			v.layout.flip(s, i, true)
		}
	}
	v.layout.catchUp(s)
}

// below reports whether g is of the set for the limit.
func (v *View) below(g *Gateway, limit int) bool { return v.target(g) && g.weighed(v.rivals) < limit }

func (v *View) room(limit int) *room { return &v.rooms[uint(limit)%uint(len(v.rooms))] }

// position finds a gateway, or returns -1.
func (v *View) position(id ring.GatewayID) int {
	if id == "" {
		return -1
	}
	if i, ok := v.ring.Index(id); ok {
		return i
	}
	for i := v.ring.Len(); i < len(v.gateways); i++ {
		if v.gateways[i].ID == id {
			return i
		}
	}
	return -1
}
