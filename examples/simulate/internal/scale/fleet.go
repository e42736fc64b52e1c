// SPDX-License-Identifier: Apache-2.0

// Package scale carries plans of stops and starts out on fleets as large as ten
// million supervisors on a thousand gateways. It decides by the real rules, those of packages ring and
// placement, and keeps a few bytes for each supervisor where a real gateway
// keeps a stream.
//
// One decision is over, and its supervisor attached, before the next begins, and all gateways that
// hear each other share one view, whose counts are exact. What stale views cost is the question of package internal/herd.
package scale

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

const (
	last    = math.MaxUint32 // the end of a list of supervisors
	nowhere = math.MaxUint16 // no gateway's number
)

// fleet is the gateways and who is on them. The three slices hold all that is
// known of a supervisor: seven bytes.
type fleet struct {
	gateways []gateway // by number; the numbers of those that are gone are used again
	numbers  map[ring.GatewayID]uint16
	sides    []*side
	doors    []uint16 // the gateways that the Service picks from
	newest   placement.Incarnation
	rnd      *rand.Rand

	where []uint16 // supervisor -> gateway
	next  []uint32 // supervisor -> the next one of the same gateway
	moves []uint8  // how often it changed gateway

	arrived   int
	moved     int
	decisions int
	asks      int
	peak      int // the most that a gateway has had at any moment
	faults    faults

	pulse func() error // called every so many decisions; an error ends what is under way
}

// gateway is one gateway: what it says of itself, and whom it serves.
type gateway struct {
	placement.Gateway
	side *side  // nil: it is gone
	head uint32 // its first supervisor
}

// side is the gateways that hear each other: all of them, unless the network is parted.
type side struct {
	view *placement.View
	live int
}

func newFleet(supervisors int, seed uint64, pulse func() error) *fleet {
	return &fleet{
		numbers: make(map[ring.GatewayID]uint16), rnd: rand.New(rand.NewPCG(seed, 4)), sides: []*side{{}}, pulse: pulse,
		where: make([]uint16, supervisors), next: make([]uint32, supervisors), moves: make([]uint8, supervisors),
	}
}

// start starts gateways; r is the ring with them.
func (f *fleet) start(ids []ring.GatewayID, r *ring.Ring) {
	for _, id := range ids {
		f.newest++
		g := gateway{head: last, side: f.sides[0], Gateway: placement.Gateway{
			ID: id, Endpoint: string(id) + ":1", State: placement.Ready, Known: true, Counts: placement.Counts{Incarnation: f.newest},
		}}
		f.numbers[id] = f.house(g)
	}
	f.redraw(f.sides[0], r)
}

// house gives the gateway a number.
func (f *fleet) house(g gateway) uint16 {
	for n := range f.gateways {
		if f.gateways[n].side == nil {
			f.gateways[n] = g
			return uint16(n)
		}
	}
	f.gateways = append(f.gateways, g)
	return uint16(len(f.gateways) - 1)
}

// remove takes gateways out of the fleet; r is the ring of the rest.
func (f *fleet) remove(ids []ring.GatewayID, r *ring.Ring) {
	for _, id := range ids {
		g := &f.gateways[f.numbers[id]]
		if g.Load() > 0 {
			f.faults.add("%s leaves the fleet with %d supervisors", id, g.Load())
		}
		g.side = nil
		delete(f.numbers, id)
	}
	f.redraw(f.sides[0], r)
}

// redraw makes a side's view anew, on another ring.
func (f *fleet) redraw(s *side, r *ring.Ring) {
	var all []placement.Gateway
	s.live = 0
	for n := range f.gateways {
		if g := &f.gateways[n]; g.side == s {
			all = append(all, g.Gateway)
			s.live += g.Load()
		}
	}
	s.view = placement.NewView(placement.Picture{Ring: r, Gateways: all, Live: s.live, Asking: true})
	f.open()
}

// open finds out which gateways the Service may pick.
func (f *fleet) open() {
	f.doors = f.doors[:0]
	for n := range f.gateways {
		if g := &f.gateways[n]; g.side != nil && g.Placeable() {
			f.doors = append(f.doors, uint16(n))
		}
	}
}

// set tells a gateway's own view what is new of it.
func (f *fleet) set(g *gateway) { g.side.view.Set(g.Gateway) }

// count adds to the supervisors of a gateway.
func (f *fleet) count(n uint16, attached, held int) {
	g := &f.gateways[n]
	g.Attached += attached
	g.Held += held
	g.Sequence++
	f.peak = max(f.peak, g.Load())
	f.set(g)
}

// place finds a gateway for one supervisor that has come to, or is to leave, the
// gateway with number at. That one looks at its view and asks, as redirect.Admission does.
func (f *fleet) place(at uint16, r placement.Request) (uint16, error) {
	v := f.gateways[at].side.view
	search := placement.NewSearch(f.gateways[at].ID, 0, r)
	ask, d := search.Begin(v)
	for ask != nil {
		f.asks++
		ask, d = search.Answered(v, f.answer(ask, &r))
	}
	f.decisions++
	to, ok := f.numbers[d.Gateway]
	if !ok {
		f.faults.add("%s finds no gateway (%s)", r.Member, d.Reason)
		to = nowhere
	} else {
		f.examine(at, &f.gateways[to], r.Member, d)
	}
	if f.decisions%pulseEvery == 0 {
		return to, f.pulse()
	}
	return to, nil
}

// pulseEvery is how many decisions there are from one pulse to the next.
const pulseEvery = 1024

// answer is the word of the gateway that is asked to keep a place, by its own exact count.
func (f *fleet) answer(ask *placement.Ask, r *placement.Request) placement.Answer {
	n, ok := f.numbers[ask.To.ID]
	if !ok {
		return placement.Answer{}
	}
	g := &f.gateways[n]
	load := g.Load()
	if r.Held && r.Home == g.ID {
		load -= g.Held // they come back like this one, and the first ones stay
	}
	return placement.Answer{
		Gateway: g.ID, State: g.State,
		Yes: g.State == placement.Ready && (ask.Question.Insist || load < ask.Question.Limit),
	}
}

// examine finds what a decision must never be.
func (f *fleet) examine(at uint16, g *gateway, m ring.MemberID, d placement.Decision) {
	switch {
	case g.State != placement.Ready || g.Suspect || g.Endpoint == "":
		f.faults.add("%s is placed on %s, which is %s, suspect: %t", m, g.ID, g.State, g.Suspect)
	case g.side != f.gateways[at].side:
		f.faults.add("%s is placed on %s, which %s does not hear", m, g.ID, f.gateways[at].ID)
	case d.Reason <= placement.Preferred && d.Load >= d.Cap:
		f.faults.add("%s is placed on %s (%s) beside %d: the cap is %d", m, g.ID, d.Reason, d.Load, d.Cap)
	}
}

// enlist puts a supervisor on a gateway's list.
func (f *fleet) enlist(m uint32, n uint16) {
	f.where[m] = n
	if n != nowhere {
		f.next[m], f.gateways[n].head = f.gateways[n].head, m
	}
}

// move takes a supervisor, which is on no list, from one gateway to another.
func (f *fleet) move(m uint32, from, to uint16) {
	f.enlist(m, to)
	if to != nowhere {
		f.count(to, +1, 0)
	} else {
		f.gateways[from].side.live--
	}
	if to != from && f.moves[m] < math.MaxUint8 {
		f.moves[m]++
	}
	if to != from {
		f.moved++
	}
}

// faults are broken promises, in words.
type faults struct {
	first []string
	more  int
}

// many is as many faults as are worth reading.
const many = 10

func (f *faults) add(format string, args ...any) {
	if len(f.first) == many {
		f.more++
		return
	}
	f.first = append(f.first, fmt.Sprintf(format, args...))
}

func (f *faults) all() []string {
	if f.more == 0 {
		return f.first
	}
	return append(f.first, fmt.Sprint("and ", f.more, " more"))
}
