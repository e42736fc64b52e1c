// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"slices"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// side is a gateway's part in a plan.
type side struct {
	id   ring.GatewayID
	load int
	open bool // may be given somebody
}

// terms is the even share, rounded down and up.
type terms struct{ share, cap int }

// plan is the fleet in the eyes of one gateway that settles.
//
// A supervisor that moves counts twice for a while: where it is, and where its
// place is kept. Of its own this gateway knows; those of others hide among the
// places that are kept anywhere. So there is a high count of everybody, in
// which they all are newcomers, and a low one, in which they all are counted
// already. Who gives keeps to the high one, and what a receiver may have is
// measured by the low one; the two are the same as soon as nobody is under way.
type plan struct {
	own       int    // this gateway's load without those that go
	others    []side // the other placeable gateways, in ID order
	asking    bool   // a question of this gateway is out
	elsewhere int    // places that are kept, anywhere, for others than those that go from here
	high, low terms
}

// outgoing is how many go from here.
type outgoing struct {
	asking  map[ring.GatewayID]int // whose question is out, by target
	pending int                    // who were told to move and may still be in time
	here    int                    // who were told, in time or not, and have not left
	failed  int                    // of these, who are late: no place is kept for them
}

// newPlan makes a plan. In one of a gateway that is not placeable there is no next move.
func newPlan(self ring.GatewayID, gateways []placement.Gateway, out outgoing) plan {
	p := plan{asking: len(out.asking) > 0, elsewhere: -out.pending}
	all := make([]side, 0, len(gateways))
	for i := range gateways {
		g := &gateways[i]
		if !g.Placeable() {
			continue
		}
		s := side{id: g.ID, load: g.Load() + out.asking[g.ID], open: g.Endpoint != ""}
		p.elsewhere += g.Reserved
		if g.ID == self {
			s.load -= out.here
			for _, n := range out.asking {
				s.load -= n
			}
			p.own = s.load
		} else {
			p.others = append(p.others, s)
		}
		all = append(all, s)
	}
	p.elsewhere = max(0, p.elsewhere)
	p.high = even(all, out.failed)
	p.low = even(all, out.failed-p.elsewhere)
	return p
}

// even returns the terms on which these share their load and so much more. One
// that may not be given anybody takes part only as far as it has enough.
func even(all []side, more int) terms {
	for {
		total := more
		for _, s := range all {
			total += s.load
		}
		if len(all) == 0 || total <= 0 {
			return terms{}
		}
		t := terms{share: total / len(all), cap: (total + len(all) - 1) / len(all)}
		rest := slices.DeleteFunc(slices.Clone(all), func(s side) bool { return !s.open && s.load < t.share })
		if len(rest) == len(all) {
			return t
		}
		all = rest
	}
}

// offer is the next move.
type offer struct {
	to    ring.GatewayID
	limit int // the target must be below this
}

// next returns the next move that this gateway may make, passing over the
// targets that rest; without one, the offer has no target.
func (p *plan) next(rests func(ring.GatewayID) bool) offer {
	if p.own <= p.high.cap && !p.turn() {
		return offer{}
	}
	if p.neediest(p.low.share, nil) != "" {
		return offer{p.neediest(p.low.share, rests), p.low.share}
	}
	if p.asking { // the answer may be in the counts already, and hide that somebody is below the share
		return offer{}
	}
	return offer{p.neediest(p.low.cap, rests), p.low.cap}
}

// owes reports whether this gateway may have to give somebody, now or once
// others are through.
func (p *plan) owes() bool {
	return p.own > p.low.cap || p.own == p.low.cap && p.low.cap > p.low.share && p.neediest(p.low.share, nil) != ""
}

// turn reports whether this gateway, with the even share rounded up, may give
// one more: nobody has more, nobody is under way, and somebody is below
// the share. Others may have their turn at the same time; who is below the share says yes to as many as
// it needs.
func (p *plan) turn() bool {
	if p.own != p.high.cap || p.high.cap == p.high.share || p.elsewhere > 0 {
		return false
	}
	above := func(s side) bool { return s.load > p.high.cap }
	return !slices.ContainsFunc(p.others, above) && p.neediest(p.high.share, nil) != ""
}

// neediest returns the emptiest of the others that is below limit and does not
// rest; among equals the last in ID order, as placement.View.Settle has it.
func (p *plan) neediest(limit int, rests func(ring.GatewayID) bool) ring.GatewayID {
	var best *side
	for i := range p.others {
		s := &p.others[i]
		if !s.open || s.load >= limit || rests != nil && rests(s.id) {
			continue
		}
		if best == nil || s.load <= best.load {
			best = s
		}
	}
	if best == nil {
		return ""
	}
	return best.id
}

// moves returns the fewest moves that make the fleet even, and how many of them are this gateway's.
func moves(self ring.GatewayID, gateways []placement.Gateway) (fleet placement.Balance, own int) {
	v := placement.NewView(placement.Picture{Self: self, Gateways: gateways})
	fleet = v.Balance()
	for _, t := range v.Settle(fleet.Moves) {
		if t.From == self {
			own += t.Count
		}
	}
	return fleet, own
}
