// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"cmp"
	"iter"
	"math"
	"math/big"
	"slices"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// door picks a gateway at random, as the Service does.
func (f *fleet) door() uint16 { return f.doors[f.rnd.IntN(len(f.doors))] }

// arrive lets the next newcomers come through the Service.
func (f *fleet) arrive(count int) error {
	from := f.arrived
	f.arrived += count
	for m, id := range named(sequence(from, f.arrived)) {
		to, err := f.place(f.door(), placement.Request{Member: id})
		f.enlist(m, to)
		if to != nowhere {
			f.count(to, +1, 0)
			s := f.gateways[to].side
			s.live++
			s.view.SetLive(s.live)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stop drains a gateway, which then leaves; r is the ring of the rest.
func (f *fleet) stop(id ring.GatewayID, r *ring.Ring) error {
	n := f.numbers[id]
	g := &f.gateways[n]
	g.State = placement.Draining
	f.set(g)
	request := placement.Request{
		Home: id, Avoid: []ring.GatewayID{id},
		Prefer: g.side.view.Youngest(id), // the same for all: nothing but counts changes meanwhile
	}
	for m, name := range named(slices.Values(f.take(n))) {
		request.Member = name
		to, err := f.place(n, request)
		f.count(n, -1, 0)
		f.move(m, n, to)
		if err != nil {
			return err
		}
	}
	f.remove([]ring.GatewayID{id}, r)
	return nil
}

// crash ends gateways without a word. Their supervisors come back through the
// Service, in no order; r is the ring of the rest.
func (f *fleet) crash(ids []ring.GatewayID, r *ring.Ring) error {
	var lost []uint32
	for _, id := range ids {
		n := f.numbers[id]
		f.gateways[n].Suspect = true
		f.set(&f.gateways[n])
		lost = append(lost, f.take(n)...)
	}
	f.open()
	f.rnd.Shuffle(len(lost), func(i, j int) { lost[i], lost[j] = lost[j], lost[i] })
	avoid := make([]ring.GatewayID, 1)
	for m, name := range named(slices.Values(lost)) {
		from := f.where[m]
		avoid[0] = f.gateways[from].ID
		to, err := f.place(f.door(), placement.Request{Member: name, Home: avoid[0], Avoid: avoid})
		f.count(from, -1, 0)
		f.move(m, from, to)
		if err != nil {
			return err
		}
	}
	f.remove(ids, r)
	return nil
}

// comeBack breaks every stream at once; each supervisor, on hold at its home, comes
// back through the Service, in no order.
func (f *fleet) comeBack() error {
	for n := range f.gateways {
		if g := &f.gateways[n]; g.side != nil {
			f.count(uint16(n), -g.Attached, +g.Attached)
			g.head = last
		}
	}
	for m, name := range named(f.scattered()) {
		home := f.where[m]
		to, err := f.place(f.door(), placement.Request{Member: name, Home: f.gateways[home].ID, Held: true})
		f.count(home, 0, -1)
		f.move(m, home, to)
		if err != nil {
			return err
		}
	}
	return nil
}

// split parts the network: the first of two rings is of those that the rest do
// not hear any more. Each half has forgotten the other: its time to live is over.
func (f *fleet) split(first, second *ring.Ring) {
	other := &side{}
	f.sides = append(f.sides, other)
	for _, id := range second.Gateways() {
		f.gateways[f.numbers[id]].side = other
	}
	f.redraw(f.sides[0], first)
	f.redraw(other, second)
}

// heal lets all hear each other again.
func (f *fleet) heal(r *ring.Ring) {
	f.sides = f.sides[:1]
	for n := range f.gateways {
		if g := &f.gateways[n]; g.side != nil {
			g.side = f.sides[0]
		}
	}
	f.redraw(f.sides[0], r)
}

// settle carries out what placement.View.Settle plans. Of those that a gateway
// gives, the ones that have moved before go first, and then it goes by ID.
func (f *fleet) settle() error {
	v := f.sides[0].view
	fewest, before := v.Balance().Moves, f.moved
	var from ring.GatewayID
	var givers []uint32
	for _, t := range v.Settle() {
		giver, receiver := f.numbers[t.From], f.numbers[t.To]
		if t.From != from {
			f.enlistAll(givers, f.numbers[from])
			from, givers = t.From, f.take(giver)
			slices.SortStableFunc(givers, func(a, b uint32) int { return cmp.Compare(min(1, f.moves[b]), min(1, f.moves[a])) })
		}
		for _, m := range givers[:t.Count] {
			if f.gateways[receiver].Load()+1 >= f.gateways[giver].Load() {
				f.faults.add("settle: %s gives, with %d, to %s, with %d", t.From, f.gateways[giver].Load(), t.To, f.gateways[receiver].Load())
			}
			f.count(giver, -1, 0)
			f.move(m, giver, receiver)
		}
		givers = givers[t.Count:]
		if err := f.pulse(); err != nil {
			return err
		}
	}
	f.enlistAll(givers, f.numbers[from])
	if moved := f.moved - before; moved != fewest {
		f.faults.add("settle: %d moves; %d suffice", moved, fewest)
	}
	if again := v.Settle(); len(again) > 0 {
		f.faults.add("settle: a second one would move somebody from %s to %s", again[0].From, again[0].To)
	}
	return nil
}

func (f *fleet) enlistAll(some []uint32, n uint16) {
	for _, m := range some {
		f.enlist(m, n)
	}
}

// take empties a gateway's list and returns who was on it, in ID order.
func (f *fleet) take(n uint16) []uint32 {
	g := &f.gateways[n]
	all := make([]uint32, 0, g.Attached)
	for m := g.head; m != last; m = f.next[m] {
		all = append(all, m)
	}
	g.head = last
	if len(all) != g.Attached {
		f.faults.add("%s lists %d and serves %d", g.ID, len(all), g.Attached)
	}
	slices.Sort(all)
	return all
}

// scattered yields everybody once, no two neighbours one after the other.
func (f *fleet) scattered() iter.Seq[uint32] {
	n := uint64(f.arrived)
	step := max(1, uint64(float64(n)*(math.Sqrt(5)-1)/2))
	for new(big.Int).GCD(nil, nil, new(big.Int).SetUint64(step), new(big.Int).SetUint64(n)).Cmp(big.NewInt(1)) != 0 {
		step++
	}
	return func(yield func(uint32) bool) {
		m := uint64(0)
		for range n {
			if !yield(uint32(m)) {
				return
			}
			m = (m + step) % n
		}
	}
}

func sequence(from, to int) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for m := from; m < to; m++ {
			if !yield(uint32(m)) {
				return
			}
		}
	}
}

// named yields these supervisors with their IDs, which are in the order of their
// numbers. IDs are made when they are needed, a thousand in one string.
func named(members iter.Seq[uint32]) iter.Seq2[uint32, ring.MemberID] {
	const batch, width = 1000, 11
	return func(yield func(uint32, ring.MemberID) bool) {
		some := make([]uint32, 0, batch)
		text := make([]byte, 0, batch*width)
		flush := func() bool {
			all := ring.MemberID(text)
			for i, m := range some {
				if !yield(m, all[i*width:(i+1)*width]) {
					return false
				}
			}
			some, text = some[:0], text[:0]
			return true
		}
		for m := range members {
			some = append(some, m)
			text = append(text, "s0000000000"...)
			for i, rest := len(text)-1, m; rest > 0; i, rest = i-1, rest/10 {
				text[i] += byte(rest % 10)
			}
			if len(some) == batch && !flush() {
				return
			}
		}
		flush()
	}
}
