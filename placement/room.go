// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"math"
	"math/bits"

	"github.com/evenring/evenring/ring"
)

// room is a set of gateways, kept as a bit for each slot of the ring whose
// owner is in it. The first of them on a member's walk is the owner of the
// first such slot at or after the member's own: finding it costs the same,
// however few they are. 4099 slots are 65 words.
type room struct {
	limit    int // the targets whose load is below this; noRoom: not in use
	slots    []uint64
	ringed   int // how many own slots
	slotless int // how many do not
}

const (
	noRoom    = -1
	unlimited = math.MaxInt
)

// has reports whether the slot is of the set.
func (s *room) has(slot int) bool { return s.slots[slot>>6]>>(slot&63)&1 != 0 }

// next returns the first slot of the set at or after this one, around the
// circle. The set must have one.
func (s *room) next(slot int) int {
	w := slot >> 6
	b := s.slots[w] &^ (1<<(slot&63) - 1)
	for b == 0 {
		if w++; w == len(s.slots) {
			w = 0
		}
		b = s.slots[w]
	}
	return w<<6 + bits.TrailingZeros64(b)
}

// layout is what a ring's slots look like from their owners. It is immutable.
type layout struct {
	words    int
	owned    []uint16   // slots, by owner
	first    []int      // by position, and one more: where a gateway's slots begin in owned
	masks    [][]uint64 // by position: its slots as a set, if it has many; otherwise nil
	slotless []int      // positions without a slot
}

func newLayout(r *ring.Ring) *layout {
	l := &layout{words: (r.Slots() + 63) / 64, first: make([]int, r.Len()+1), masks: make([][]uint64, r.Len())}
	if r.Len() == 0 {
		return l
	}
	for slot := range r.Slots() {
		l.first[r.At(slot)+1]++
	}
	for i := range r.Len() {
		owned := l.first[i+1]
		if owned == 0 {
			l.slotless = append(l.slotless, i)
		}
		if 4*owned > l.words { // so many words are flipped faster than the slots one by one
			l.masks[i] = make([]uint64, l.words)
		}
		l.first[i+1] += l.first[i]
	}
	l.owned = make([]uint16, r.Slots())
	at := make([]int, r.Len())
	copy(at, l.first)
	for slot := range r.Slots() {
		i := r.At(slot)
		l.owned[at[i]] = uint16(slot)
		at[i]++
		if mask := l.masks[i]; mask != nil {
			mask[slot>>6] |= 1 << (slot & 63)
		}
	}
	return l
}

// flip takes the gateway at position i into the set, or out of it.
func (l *layout) flip(s *room, i int, in bool) {
	n := 1
	if !in {
		n = -1
	}
	if i >= len(l.masks) || l.first[i] == l.first[i+1] {
		s.slotless += n
		return
	}
	s.ringed += n
	if mask := l.masks[i]; mask != nil {
		slots := s.slots
		for len(mask) >= 8 && len(slots) >= 8 { // one check of bounds for eight words
			to, from := (*[8]uint64)(slots), (*[8]uint64)(mask)
			to[0] ^= from[0]
			to[1] ^= from[1]
			to[2] ^= from[2]
			to[3] ^= from[3]
			to[4] ^= from[4]
			to[5] ^= from[5]
			to[6] ^= from[6]
			to[7] ^= from[7]
			slots, mask = slots[8:], mask[8:]
		}
		for w, b := range mask {
			slots[w] ^= b
		}
		return
	}
	slots := s.slots
	for _, slot := range l.owned[l.first[i]:l.first[i+1]] {
		slots[slot>>6] ^= 1 << (slot & 63)
	}
}

// empty makes s the empty set for a limit.
func (l *layout) empty(s *room, limit int) {
	if s.slots == nil {
		s.slots = make([]uint64, l.words)
	}
	clear(s.slots)
	s.limit, s.ringed, s.slotless = limit, 0, 0
}
