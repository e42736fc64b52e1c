// SPDX-License-Identifier: Apache-2.0

// Package placement decides where a supervisor belongs.
//
// A [View] is one gateway's picture of the fleet, frozen: the ring, every
// gateway's state and load, and how many supervisors are live. [View.Place]
// walks the ring clockwise from the member's slot and takes the first gateway
// with room; [View.Explain] tells a person how that came about.
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
// ask, a [Ledger] counts what it has promised.
//
// Everything here is pure: no clock, no randomness, no goroutine. Views are
// immutable and safe for concurrent use; a Search and a Ledger belong to one
// goroutine at a time.
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
	Gateways []Gateway      // each once, in any order; those that are not on the ring come last on every walk
	Live     int            // distinct supervisors: attached anywhere, reserved or held
	Asking   bool           // targets are asked before anybody is sent to them
	Rivals   int            // without asking: how many gateways place from pictures like this one; 0 is 1
	Version  uint64         // of the facts; goes into every decision
	Age      time.Duration  // of the oldest of the facts; goes into every decision
}

// View is an immutable picture of the fleet, safe for concurrent use.
type View struct {
	self      ring.GatewayID
	ring      *ring.Ring
	gateways  []Gateway // by position on the ring, then the rest by ID
	live      int
	placeable int
	asking    bool
	rivals    int
	version   uint64
	age       time.Duration
}

// NewView freezes a picture. It copies p.Gateways. A gateway that is on the
// ring and not in the list is unknown, and so never a target.
func NewView(p Picture) *View {
	v := &View{
		self: p.Self, ring: p.Ring, live: p.Live, asking: p.Asking, rivals: max(1, p.Rivals), version: p.Version, age: p.Age,
		gateways: make([]Gateway, p.Ring.Len(), max(p.Ring.Len(), len(p.Gateways))),
	}
	for i, id := range p.Ring.Gateways() {
		v.gateways[i].ID = id
	}
	for _, g := range p.Gateways {
		if i, ok := p.Ring.Index(g.ID); ok {
			v.gateways[i] = g
		} else {
			v.gateways = append(v.gateways, g)
		}
		if g.Placeable() {
			v.placeable++
		}
	}
	slices.SortFunc(v.gateways[p.Ring.Len():], func(a, b Gateway) int { return cmp.Compare(a.ID, b.ID) })
	return v
}

// Gateways returns the gateways, those on the ring in ID order first. It may be ranged over more
// than once.
func (v *View) Gateways() iter.Seq[Gateway] { return slices.Values(v.gateways) }

// Live returns the number of live supervisors that the picture was made with.
func (v *View) Live() int { return v.live }

// Placeable returns how many gateways are placeable.
func (v *View) Placeable() int { return v.placeable }

// Cap returns the even share, rounded up, of the supervisors that are live
// now, without a newcomer; 0 if no gateway is placeable.
func (v *View) Cap() int {
	if v.placeable == 0 {
		return 0
	}
	return (v.live + v.placeable - 1) / v.placeable
}

// CapFor returns the cap that [View.Place] applies to this request.
func (v *View) CapFor(r Request) int {
	t, _ := v.terms(r)
	return t.cap
}

// target reports whether g may be given somebody: placeable, and either the
// one who looks or one that can be dialled.
func (v *View) target(g *Gateway) bool {
	return g.Placeable() && (g.ID == v.self || g.Endpoint != "")
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
