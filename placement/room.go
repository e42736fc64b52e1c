// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"crypto/subtle"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/evenring/evenring/ring"
)

// room is a set of gateways, kept as a bit for each slot of the ring whose
// owner is in it. The first of them on a member's walk is the owner of the
// first such slot at or after the member's own: finding it costs the same,
// however few they are. 4099 slots are 65 words.
//
// The last gateway to come or go is not yet in the bits. Where loads are near the limit, a gateway
// often goes and comes again, as a place is kept there and given up, and then nothing has to be flipped.
type room struct {
	limit    int    // the targets whose load is below this; noRoom: not in use
	slots    []byte // 64 slots are 8 bytes, the lowest slot in the lowest bit of the first
	late     int    // the position whose bits say the opposite; nobody: all are right
	ringed   int    // how many own slots
	slotless int    // how many do not
}

const (
	noRoom    = math.MinInt
	unlimited = math.MaxInt
	nobody    = -2 // not -1, the owner of a slot that nobody owns
)

// bit reports what is written for the slot.
func (s *room) bit(slot int) bool { return s.slots[slot>>3]>>(slot&7)&1 != 0 }

// has reports whether the slot, which this gateway owns, is of the set.
func (s *room) has(slot, owner int) bool { return s.bit(slot) != (owner == s.late) }

// seek returns the first slot whose bit is set, at or after this one, around the circle. One must be.
func (s *room) seek(slot int) int {
	w := slot >> 6
	b := s.word(w) &^ (1<<(slot&63) - 1)
	for b == 0 {
		if w++; w<<3 == len(s.slots) {
			w = 0
		}
		b = s.word(w)
	}
	return w<<6 + bits.TrailingZeros64(b)
}

func (s *room) word(w int) uint64 { return binary.LittleEndian.Uint64(s.slots[w<<3:]) }

// layout is what a ring's slots look like from their owners. It is immutable.
type layout struct {
	ring     *ring.Ring
	bytes    int      // of a set
	owned    []uint16 // slots, by owner
	first    []int    // by position, and one more: where a gateway's slots begin in owned
	masks    [][]byte // by position: its slots as a set, if it has many; otherwise nil
	slotless []int    // positions without a slot
}

func newLayout(r *ring.Ring) *layout {
	l := &layout{ring: r, bytes: (r.Slots() + 63) / 64 * 8, first: make([]int, r.Len()+1), masks: make([][]byte, r.Len())}
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
		if 32*owned > l.bytes { // the whole set is flipped faster than so many slots one by one
			l.masks[i] = make([]byte, l.bytes)
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
			mask[slot>>3] |= 1 << (slot & 7)
		}
	}
	return l
}

// next returns the position of the set's first gateway on the walk from this slot. One of the set must own slots.
func (l *layout) next(s *room, slot int) int {
	if s.late == nobody {
		return l.ring.At(s.seek(slot))
	}
	late := l.owned[l.first[s.late]:l.first[s.late+1]]
	if !s.bit(int(late[0])) { // in, but not written: whoever comes first
		k, _ := slices.BinarySearch(late, uint16(slot))
		mine := int(late[k%len(late)])
		if s.ringed == 1 {
			return s.late
		}
		n := len(l.owned)
		if found := s.seek(slot); (found-slot+n)%n < (mine-slot+n)%n {
			return l.ring.At(found)
		}
		return s.late
	}
	for { // out, but still written
		slot = s.seek(slot)
		if i := l.ring.At(slot); i != s.late {
			return i
		}
		if slot++; slot == len(l.owned) {
			slot = 0
		}
	}
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
	if s.late == i {
		s.late = nobody
		return
	}
	l.catchUp(s)
	s.late = i
}

// catchUp makes all bits right.
func (l *layout) catchUp(s *room) {
	i := s.late
	if s.late = nobody; i == nobody {
		return
	}
	if mask := l.masks[i]; mask != nil {
		subtle.XORBytes(s.slots, s.slots, mask)
		return
	}
	slots := s.slots
	for _, slot := range l.owned[l.first[i]:l.first[i+1]] {
		slots[slot>>3] ^= 1 << (slot & 7)
	}
}

// empty makes s the empty set for a limit.
func (l *layout) empty(s *room, limit int) {
	if s.slots == nil {
		s.slots = make([]byte, l.bytes)
	}
	clear(s.slots)
	s.limit, s.late, s.ringed, s.slotless = limit, nobody, 0, 0
}
