// SPDX-License-Identifier: Apache-2.0

package main

import (
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
)

// The floor looks at no loads, and so places nobody: nothing that goes by the
// member takes less than a hash of its ID, a remainder and an array read.

func floorOwner(f *fleet) (place, error) {
	n := uint64(len(f.ids))
	return func(member string) string { return f.ids[xxhash.Sum64String(member)%n] }, nil
}

// floorKeep counts in and out again at once, for later it would not know where.
func floorKeep(f *fleet) (place, func(string), error) {
	n := uint64(len(f.ids))
	counts := make([]atomic.Int64, len(f.ids))
	return func(member string) string {
		i := xxhash.Sum64String(member) % n
		counts[i].Add(1)
		counts[i].Add(-1)
		return f.ids[i]
	}, func(string) {}, nil
}
