// SPDX-License-Identifier: Apache-2.0

package ring

import "iter"

// Clockwise yields every gateway once, in the order in which m is to be
// offered to them: the owners of m's slot and of the slots after it, then, in
// ID order, the gateways that own no slot. It may be ranged more than once.
func (r *Ring) Clockwise(m MemberID) iter.Seq[GatewayID] {
	return func(yield func(GatewayID) bool) {
		r.walk(r.Slot(m), func(i int) bool { return yield(r.ids[i]) })
	}
}

// Walk is [Ring.Clockwise] in positions, for callers that keep what they know
// of gateways in an array: position i is that of [Ring.Gateway](i). It may be
// ranged more than once, and does not allocate for up to 1024 gateways.
func (r *Ring) Walk(m MemberID) iter.Seq[int] {
	return func(yield func(int) bool) { r.walk(r.Slot(m), yield) }
}

func (r *Ring) walk(slot int, yield func(int) bool) {
	if r.Len() == 0 {
		return
	}
	var few [1024 / 64]uint64 // on the stack
	seen := few[:]
	if len(r.ids) > 64*len(few) {
		seen = make([]uint64, (len(r.ids)+63)/64)
	}
	for left := r.owners; left > 0; slot++ {
		if slot == len(r.table) {
			slot = 0
		}
		i := r.table[slot]
		word, bit := i/64, uint64(1)<<(i%64)
		if seen[word]&bit != 0 {
			continue
		}
		seen[word] |= bit
		left--
		if !yield(int(i)) {
			return
		}
	}
	if r.owners == len(r.ids) {
		return
	}
	for i, share := range r.shares {
		if share == 0 && !yield(i) {
			return
		}
	}
}
