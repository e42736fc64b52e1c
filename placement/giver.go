// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"math"
	"slices"

	"github.com/evenring/evenring/ring"
)

// Giver is a fleet that evens out, in the eyes of one of its gateways: how many
// supervisors that one may give away, to whom, and on what condition. It is what
// package handoff/settle goes by, and [View.Settle] and [Predict] too.
//
// A supervisor that moves counts twice for a while: where it is, and where its
// place is kept. Of its own this gateway knows; those of others hide among the
// places that are kept anywhere. So there is a high count of everybody, in
// which they all are newcomers, and a low one, in which they all are counted
// already. Who gives keeps to the high one, and what a receiver may have is
// measured by the low one; the two are the same as soon as nobody is under way.
//
// A Giver is made for one look at the fleet, by [NewGiver]. The zero value has nothing to give.
type Giver struct {
	all       []side // the placeable gateways, in ID order
	self      int    // this one's number; len(all): it is not among them
	asking    bool   // a question of this gateway is out
	elsewhere int    // places that are kept, anywhere, for others than those that go from here
	high, low terms
}

// side is a gateway's part in it.
type side struct {
	id   ring.GatewayID
	load int  // of this gateway: without those that go
	open bool // may be given somebody
}

// Outgoing is how many go from a gateway at the moment. The zero value is nobody.
type Outgoing struct {
	Asking  map[ring.GatewayID]int // whose question is out, by target; it is only read
	Pending int                    // who were told to move and may still be in time
	Here    int                    // who were told, in time or not, and have not left
	Failed  int                    // of these, who are late: no place is kept for them
}

// Offer is one move that a gateway may make. The zero value is none.
type Offer struct {
	To    ring.GatewayID // empty: nobody
	Limit int            // the target must be below this, by its own count, for what is seen of it may be old
}

// NewGiver returns the giver of the gateway self, which sees these gateways, each
// once, in any order. Only placeable ones take part; one that is not may give nobody. It
// takes time in proportion to the gateways.
func NewGiver(self ring.GatewayID, gateways []Gateway, out Outgoing) Giver {
	all := sides(gateways)
	g := Giver{all: all, self: len(all), asking: len(out.Asking) > 0, elsewhere: -out.Pending}
	for i := range gateways {
		if gateways[i].Placeable() {
			g.elsewhere += gateways[i].Reserved
		}
	}
	for i := range g.all {
		s := &g.all[i]
		s.load += out.Asking[s.id]
		if s.id != self {
			continue
		}
		g.self = i
		s.load -= out.Here
		for _, n := range out.Asking {
			s.load -= n
		}
	}
	g.elsewhere = max(0, g.elsewhere)
	g.high = level(g.all, out.Failed)
	g.low = level(g.all, out.Failed-g.elsewhere)
	return g
}

// sides returns the placeable ones of these gateways, in ID order.
func sides(gateways []Gateway) []side {
	all := make([]side, 0, len(gateways))
	for i := range gateways {
		if g := &gateways[i]; g.Placeable() {
			all = append(all, side{id: g.ID, load: g.Load(), open: g.Endpoint != ""})
		}
	}
	slices.SortFunc(all, func(a, b side) int { return cmp.Compare(a.id, b.id) })
	return all
}

// level returns the terms on which these share their load and so much more. One
// that may not be given anybody takes part only if it has more than the share.
func level(all []side, more int) terms {
	for {
		total := more
		for i := range all {
			total += all[i].load
		}
		if len(all) == 0 {
			return terms{math.MaxInt, math.MaxInt}
		}
		t := even(max(0, total), len(all))
		rest := slices.DeleteFunc(slices.Clone(all), func(s side) bool { return !s.open && s.load <= t.share })
		if len(rest) == len(all) {
			return t
		}
		all = rest
	}
}

// Next returns the next move that this gateway may make, passing over the
// ones that rest, for the target has just said no to such a one; rests may be nil. outOfTurn: it does not wait for those of [Giver.Behind].
func (g *Giver) Next(outOfTurn bool, rests func(Offer) bool) Offer {
	if !g.present() {
		return Offer{}
	}
	if g.own() <= g.high.cap {
		if behind, may := g.turn(); !may || behind > 0 && !outOfTurn {
			return Offer{}
		}
	}
	if g.needy(g.low.share) {
		return g.neediest(g.low.share, rests)
	}
	if g.asking { // the answer may be in the counts already, and hide that somebody is below the share
		return Offer{}
	}
	return g.neediest(g.low.cap, rests)
}

// Behind returns how many others would have to fail to give one more before it is the turn
// of this gateway to do so; 0: none, or it has nothing more to give anyway. They may not be there to do it, or not be able to.
func (g *Giver) Behind() int {
	if !g.present() {
		return 0
	}
	behind, _ := g.turn()
	return behind
}

// Owes reports whether this gateway may have to give somebody, now or once
// others are through.
func (g *Giver) Owes() bool {
	return g.present() && (g.own() > g.low.cap || g.own() == g.low.cap && g.low.cap > g.low.share && g.needy(g.low.share))
}

func (g *Giver) present() bool { return g.self < len(g.all) }

func (g *Giver) own() int { return g.all[g.self].load }

// turn reports whether this gateway, with the even share rounded up, may give
// one more: nobody has more, nobody is under way, and somebody is below the share. Of those that
// have as much, as many as are needed have their turn, the first in ID order; behind says how many too many come before this one.
func (g *Giver) turn() (behind int, may bool) {
	if g.own() != g.high.cap || g.high.cap == g.high.share || g.elsewhere > 0 {
		return 0, false
	}
	before, missing := 0, 0
	for i := range g.all {
		switch s := &g.all[i]; {
		case s.load > g.high.cap:
			return 0, false
		case s.load == g.high.cap && i < g.self:
			before++
		case s.open && s.load < g.high.share:
			missing += g.high.share - s.load
		}
	}
	if missing == 0 {
		return 0, false
	}
	return max(0, before-missing+1), true
}

// needy reports whether another gateway is below limit.
func (g *Giver) needy(limit int) bool { return g.neediest(limit, nil).To != "" }

// neediest returns the offer to the emptiest of the others that is below limit, if it does not
// rest; among equals the last in ID order.
func (g *Giver) neediest(limit int, rests func(Offer) bool) Offer {
	best := -1
	for i := range g.all {
		s := &g.all[i]
		if i == g.self || !s.open || s.load >= limit || best >= 0 && s.load > g.all[best].load {
			continue
		}
		if rests == nil || !rests(Offer{s.id, limit}) {
			best = i
		}
	}
	if best < 0 {
		return Offer{}
	}
	return Offer{g.all[best].id, limit}
}

// Leavers are those that a gateway may give away, in the order in which they go: first who
// came from where it goes, then who came from anywhere else, for a drain or a crash had displaced
// them, then the rest; among equals in ID order. The zero value is nobody. It is not
// safe for concurrent use.
type Leavers struct {
	from map[ring.GatewayID][]ring.MemberID // by who served them before; each in ID order
}

// Add adds a member that from served before; empty: nobody that is known. In ID order it
// costs nothing to speak of.
func (l *Leavers) Add(m ring.MemberID, from ring.GatewayID) {
	if l.from == nil {
		l.from = make(map[ring.GatewayID][]ring.MemberID)
	}
	all := l.from[from]
	i, _ := slices.BinarySearch(all, m)
	l.from[from] = slices.Insert(all, i, m)
}

// Take removes and returns the one that goes to this gateway next; false: there is nobody
// left. It takes time in proportion to the gateways that they came from.
func (l *Leavers) Take(to ring.GatewayID) (m ring.MemberID, ok bool) {
	from := to
	if to == "" || len(l.from[to]) == 0 {
		from = ""
		for id, all := range l.from {
			if id != "" && len(all) > 0 && (from == "" || all[0] < l.from[from][0]) {
				from = id
			}
		}
	}
	all := l.from[from]
	if len(all) == 0 {
		return "", false
	}
	l.from[from] = all[1:]
	return all[0], true
}

// Len returns how many there are. It takes time in proportion to the gateways that they came from.
func (l *Leavers) Len() int {
	n := 0
	for _, all := range l.from {
		n += len(all)
	}
	return n
}
