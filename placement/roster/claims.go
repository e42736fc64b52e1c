// SPDX-License-Identifier: Apache-2.0

package roster

import (
	"encoding/binary"
	"maps"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// ref points to a claim; 0 to none.
type ref uint32

// claim is one gateway's entry for one member. It is a link in two lists: of
// the claims on its member, its place first, and of its gateway's claims, a
// circle around an anchor that stands for no member.
type claim struct {
	member     ring.MemberID
	generation placement.Generation
	next, prev ref    // in the gateway's circle
	other      ref    // the next claim on this member
	owner      uint32 // the record's slot, the record's phase when this was made or put on a page, and whether the member is held
}

// The bits of a claim's owner below its record's slot.
const (
	heldBit  = 1
	phaseBit = 2
	slotBits = 2 // above them
)

func (c *claim) slot() uint32 { return c.owner >> slotBits }
func (c *claim) held() bool   { return c.owner&heldBit != 0 }

func (c *claim) entry() Entry {
	return Entry{Member: c.member, Generation: c.generation, Held: c.held()}
}

func ownerOf(rec *record, held bool) uint32 {
	owner := rec.slot<<slotBits | rec.phase
	if held {
		owner |= heldBit
	}
	return owner
}

// Claims live in chunks, so that growing copies none of them.
const (
	chunkBits = 10
	chunkSize = 1 << chunkBits
)

// claims is everybody's entries: one map from member to place, and the claims
// linked by number. What is freed is used again, and never returned.
type claims struct {
	places  map[ring.MemberID]ref
	chunks  [][]claim
	used    ref // claims handed out, claim 0 included
	free    ref // freed claims, linked by next
	records []*record

	now       time.Time // of the step
	changedAt time.Time // of the last one that entered or removed a claim
}

func newClaims() claims {
	return claims{places: make(map[ring.MemberID]ref), used: 1}
}

func (s *claims) at(r ref) *claim { return &s.chunks[r>>chunkBits][r&(chunkSize-1)] }

func (s *claims) alloc() ref {
	if r := s.free; r != 0 {
		s.free = s.at(r).next
		return r
	}
	r := s.used
	s.used++
	if int(r>>chunkBits) == len(s.chunks) {
		s.chunks = append(s.chunks, make([]claim, chunkSize))
	}
	return r
}

func (s *claims) release(r ref) {
	*s.at(r) = claim{next: s.free}
	s.free = r
}

// anchor returns an empty circle.
func (s *claims) anchor() ref {
	r := s.alloc()
	*s.at(r) = claim{next: r, prev: r}
	return r
}

func (s *claims) link(anchor, r ref) {
	a, c := s.at(anchor), s.at(r)
	c.prev, c.next = a.prev, anchor
	s.at(a.prev).next = r
	a.prev = r
}

func (s *claims) unlink(r ref) {
	c := s.at(r)
	s.at(c.prev).next = c.next
	s.at(c.next).prev = c.prev
}

// expect makes room for n more members at once, if that spares growing several
// times. Those that are here already are moved, so there must be few.
func (s *claims) expect(n int) {
	if n <= 4*len(s.places) || n < chunkSize {
		return
	}
	places := make(map[ring.MemberID]ref, len(s.places)+n)
	maps.Copy(places, s.places)
	s.places = places
}

// place returns the member's place.
func (s *claims) place(m ring.MemberID) (*claim, bool) {
	r, ok := s.places[m]
	if !ok {
		return nil, false
	}
	return s.at(r), true
}

// find returns the first claim on the member and the record's own, each 0 if there is none.
func (s *claims) find(rec *record, m ring.MemberID) (first, own ref) {
	first = s.places[m]
	for r := first; r != 0; r = s.at(r).other {
		if s.at(r).slot() == rec.slot {
			return first, r
		}
	}
	return first, 0
}

// before reports whether a is a better place than b for the member of both.
func (s *claims) before(a, b *claim) bool {
	if a.generation != b.generation {
		return a.generation > b.generation
	}
	return s.records[a.slot()].id < s.records[b.slot()].id
}

// put makes e the record's entry. first and r are what find returned, and borrowed says that
// e.Member shares its bytes with a message. The claim is returned if anything
// changed, and nil otherwise; placed says that the record has thereby become the
// member's place, or is so with a higher generation.
func (s *claims) put(rec *record, e Entry, first, r ref, borrowed bool) (changed *claim, placed bool) {
	if r != 0 {
		if c := s.at(r); c.generation == e.Generation && c.held() == e.Held {
			s.relink(rec, r)
			return nil, false
		}
	}
	old := first
	if first != 0 {
		s.settle(first, -1)
	}
	name := e.Member.Hash()
	var before placement.Generation
	if r != 0 {
		if first == r {
			before = s.at(r).generation
		}
		s.tally(rec, r, name, -1)
		s.unlink(r)
		first = s.without(first, r)
	} else {
		m := e.Member
		switch {
		case first != 0:
			m = s.at(first).member
		case borrowed:
			m = ring.MemberID(strings.Clone(string(m)))
		}
		r = s.alloc()
		s.at(r).member = m
	}
	c := s.at(r)
	c.generation, c.owner = e.Generation, ownerOf(rec, e.Held)
	s.tally(rec, r, name, +1)
	s.link(rec.anchor, r)
	if first = s.with(first, r); first != old {
		s.places[c.member] = first
	}
	s.settle(first, +1)
	return c, first == r && e.Generation > before
}

// remove takes the claim away.
func (s *claims) remove(rec *record, r ref) {
	m := s.at(r).member
	first := s.places[m]
	s.settle(first, -1)
	s.tally(rec, r, m.Hash(), -1)
	s.unlink(r)
	if first = s.without(first, r); first == 0 {
		delete(s.places, m)
	} else {
		s.places[m] = first
		s.settle(first, +1)
	}
	s.release(r)
}

// relink puts the claim back into its record's circle, from whatever circle it is in.
func (s *claims) relink(rec *record, r ref) {
	s.unlink(r)
	s.link(rec.anchor, r)
}

// split moves the record's claims to a circle of their own and returns its anchor.
func (s *claims) split(rec *record) ref {
	apart := s.anchor()
	a, b := s.at(rec.anchor), s.at(apart)
	if a.next == rec.anchor {
		return apart
	}
	b.next, b.prev = a.next, a.prev
	s.at(b.next).prev = apart
	s.at(b.prev).next = apart
	a.next, a.prev = rec.anchor, rec.anchor
	return apart
}

// with and without return the list of claims on one member with r in its
// order, or without it.
func (s *claims) with(first, r ref) ref {
	c := s.at(r)
	if first == 0 || s.before(c, s.at(first)) {
		c.other = first
		return r
	}
	p := s.at(first)
	for p.other != 0 && !s.before(c, s.at(p.other)) {
		p = s.at(p.other)
	}
	c.other, p.other = p.other, r
	return first
}

func (s *claims) without(first, r ref) ref {
	if first == r {
		return s.at(r).other
	}
	p := s.at(first)
	for p.other != r {
		p = s.at(p.other)
	}
	p.other = s.at(r).other
	return first
}

// tally adds n times the claim to its record's figures. name is the hash of its member.
func (s *claims) tally(rec *record, r ref, name uint64, n int) {
	c := s.at(r)
	if c.held() {
		rec.held += n
	} else {
		rec.attached += n
	}
	rec.digest += uint64(n) * fingerprint(name, c.generation, c.held())
	rec.changedAt, s.changedAt = s.now, s.now
}

// settle adds n times the member to the figures of the record that is its place.
func (s *claims) settle(first ref, n int) {
	c := s.at(first)
	rec := s.records[c.slot()]
	rec.placed += n
	if c.held() {
		rec.placedHeld += n
	}
}

// fingerprint is an entry's share of its record's digest, which is the sum
// over all entries: it does not depend on their order. name is the hash of its member.
func fingerprint(name uint64, g placement.Generation, held bool) uint64 {
	var b [17]byte
	binary.LittleEndian.PutUint64(b[:8], name)
	binary.LittleEndian.PutUint64(b[8:16], uint64(g))
	if held {
		b[16] = 1
	}
	return xxhash.Sum64(b[:])
}
