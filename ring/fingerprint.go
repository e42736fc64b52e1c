// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"encoding/binary"
	"math"

	"github.com/cespare/xxhash/v2"
)

// Fingerprint returns a number that is the same for two rings exactly if, short
// of a collision of 64 bits, they have the same Config and gateways and give
// every slot the same owner. It covers the table and not only what the table
// was made from: a build with another version of the hashing library may
// disagree on owners while it agrees on everything else.
func (r *Ring) Fingerprint() uint64 {
	if r == nil || r.cfg.Slots == 0 {
		return (&Ring{cfg: Config{}.withDefaults()}).sum()
	}
	return r.fingerprint
}

func (r *Ring) sum() uint64 {
	le := binary.LittleEndian
	b := make([]byte, 0, 32+24*len(r.ids)+2*len(r.table))
	b = le.AppendUint64(b, Format)
	b = le.AppendUint64(b, uint64(r.cfg.Slots))
	b = le.AppendUint64(b, math.Float64bits(r.cfg.Load))
	b = le.AppendUint64(b, uint64(len(r.ids)))
	for _, id := range r.ids {
		b = le.AppendUint64(b, uint64(len(id)))
		b = append(b, id...)
	}
	for _, i := range r.table {
		b = le.AppendUint16(b, i)
	}
	return xxhash.Sum64(b)
}
