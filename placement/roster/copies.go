// SPDX-License-Identifier: Apache-2.0

package roster

import (
	"encoding/binary"
	"iter"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// Copy is how far one gateway's record has got in this roster.
type Copy struct {
	Gateway     ring.GatewayID
	Incarnation placement.Incarnation
	Sequence    uint64    // the number that the members have got to
	Told        uint64    // the highest number that the gateway has named: above Sequence if the copy is behind
	Attached    int       // members listed with a stream
	Held        int       // members listed without one
	Digest      uint64    // of the members, as [Heartbeat] has it
	ChangedAt   time.Time // when a member was last entered or removed here; zero: never
}

// Copies yields this roster's copy of every gateway's record in ID order, its
// own record included. It may be ranged over more than once, but not across a
// Step.
func (r *Roster) Copies() iter.Seq[Copy] {
	return func(yield func(Copy) bool) {
		for _, rec := range r.sorted {
			c := Copy{
				Gateway:     rec.id,
				Incarnation: rec.incarnation,
				Sequence:    rec.have,
				Told:        max(rec.told, rec.have),
				Attached:    rec.attached,
				Held:        rec.held,
				Digest:      rec.digest,
				ChangedAt:   rec.changedAt,
			}
			if !yield(c) {
				return
			}
		}
	}
}

// Digest returns the digest of all records together, and when a member was last
// entered or removed in any of them; the zero time: never. Rosters with equal digests list the
// same members, with the same generations, at the same starts of the same
// gateways. A gateway that lists nobody counts for nothing, nor does what
// else is known of one. It costs one hash for each gateway.
func (r *Roster) Digest() (digest uint64, since time.Time) {
	for _, rec := range r.sorted {
		if rec.attached+rec.held == 0 {
			continue
		}
		var b [24]byte
		binary.LittleEndian.PutUint64(b[:8], xxhash.Sum64String(string(rec.id)))
		binary.LittleEndian.PutUint64(b[8:16], uint64(rec.incarnation))
		binary.LittleEndian.PutUint64(b[16:], rec.digest)
		digest += xxhash.Sum64(b[:])
	}
	return digest, r.claims.changedAt
}
