// SPDX-License-Identifier: Apache-2.0

// Package ring says where a supervisor belongs.
//
// The ring is a circle of slots, a prime number of them, each owned by one
// gateway. A member ID hashes to a slot, and the owner of that slot is the
// member's owner. The owners of the slots that follow, each gateway once, are
// the order in which a full gateway's overflow is offered to the others:
// neighbouring slots have different orders, so that the overflow spreads and
// does not land on one neighbour.
//
// A [Ring] depends on the set of gateway IDs and on its [Config], and on
// nothing else: every process that knows the same gateways computes the same
// ring. [Ring.Fingerprint] tells whether two of them did.
//
// The table of owners is the one that github.com/buraksezer/consistent
// computes, consistent hashing with bounded loads (Mirrokni, Thorup,
// Zadimoghaddam, 2016), with one partition to a slot. How every number comes
// about is written down, for other languages, in testdata/README.md.
package ring

import (
	"errors"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// Format numbers the layout: how slots, virtual nodes, table and fingerprint
// are computed. It rises with every change that gives a slot another owner.
const Format = 1

// Ring assigns gateways to members. It is immutable and safe for concurrent
// use. A nil Ring and the zero Ring are legal and empty, equal to what [New]
// makes of the zero Config and no gateways: nobody owns anything, and a
// supervisor is served where it came.
type Ring struct {
	cfg         Config      // resolved; zero in the zero Ring
	ids         []GatewayID // ascending, distinct; a position is an index of it
	shares      []uint16    // slots owned, by position
	owners      int         // positions that own a slot
	table       []uint16    // slot -> position; empty if there is no gateway
	fingerprint uint64
}

// New returns the ring of the given gateways. Neither their order nor
// duplicates matter. No gateways make an empty ring. The error joins every
// fault of cfg and of the IDs: an ID must not be empty, and there may be at
// most [MaxGateways] of them. The slice remains the caller's.
//
// New is meant for changes of membership and not for every placement: it takes
// about 1 ms for a few gateways, 10 ms for 128 and 40 ms for 1024, and grows
// with the square of their number from there.
//
// With more gateways than slots, those whose IDs hash lowest share the slots.
// The others own none, and come last on every walk.
func New(cfg Config, gateways ...GatewayID) (*Ring, error) {
	ids, fault := distinct(gateways)
	if err := errors.Join(cfg.Validate(), fault); err != nil {
		return nil, err
	}
	return build(cfg.withDefaults(), ids, xxhash.Sum64), nil
}

// Without returns the ring of the remaining gateways, equal to the one that
// [New] makes of them under the same Config. Unknown IDs are ignored; the ring
// itself is returned if nothing is taken away.
func (r *Ring) Without(ids ...GatewayID) *Ring {
	rest := make([]GatewayID, 0, r.Len())
	for _, id := range r.Gateways() {
		if !slices.Contains(ids, id) {
			rest = append(rest, id)
		}
	}
	if len(rest) == r.Len() {
		return r
	}
	return build(r.cfg, rest, xxhash.Sum64)
}

// With returns the ring of these gateways too, equal to the one that [New]
// makes of all of them under the same Config; nil counts as the zero Config. Those that it has already are
// ignored, and the ring itself is returned if nothing is added. The error is that of [New].
func (r *Ring) With(ids ...GatewayID) (*Ring, error) {
	all := slices.Clone(ids)
	for _, id := range r.Gateways() {
		all = append(all, id)
	}
	all, fault := distinct(all)
	if fault != nil {
		return nil, fault
	}
	if len(all) == r.Len() {
		return r, nil
	}
	var cfg Config
	if r != nil {
		cfg = r.cfg
	}
	return build(cfg.withDefaults(), all, xxhash.Sum64), nil
}

// Owner returns the owner of m's slot, and false if the ring is empty. It
// takes one hash and one read of the table, and does not allocate.
func (r *Ring) Owner(m MemberID) (GatewayID, bool) {
	if r == nil || len(r.table) == 0 {
		return "", false
	}
	return r.ids[r.table[m.Hash()%uint64(len(r.table))]], true
}

// Slot returns m's slot, at least 0 and below [Ring.Slots]. It does not depend
// on the gateways.
func (r *Ring) Slot(m MemberID) int {
	return int(m.Hash() % uint64(r.Slots()))
}

// Locate returns m's slot and the position of the gateway that owns it, or -1
// if the ring is empty.
func (r *Ring) Locate(m MemberID) (slot, owner int) { return r.LocateHash(m.Hash()) }

// LocateHash is [Ring.Locate] of the member with this [MemberID.Hash].
func (r *Ring) LocateHash(hash uint64) (slot, owner int) {
	if r == nil || len(r.table) == 0 {
		return int(hash % uint64(r.Slots())), -1
	}
	slot = int(hash % uint64(len(r.table)))
	return slot, int(r.table[slot])
}

// At returns the position of the gateway that owns the slot, for callers that
// keep what they know of slots in an array; -1 if there is no such slot or no
// gateway.
func (r *Ring) At(slot int) int {
	if r == nil || uint(slot) >= uint(len(r.table)) {
		return -1
	}
	return int(r.table[slot])
}

// Slots returns the number of slots, also of an empty ring.
func (r *Ring) Slots() int {
	if r == nil || r.cfg.Slots == 0 {
		return DefaultSlots
	}
	return r.cfg.Slots
}
