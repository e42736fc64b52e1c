// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"errors"
	"fmt"
	"iter"
	"slices"
)

// Len returns the number of gateways.
func (r *Ring) Len() int {
	if r == nil {
		return 0
	}
	return len(r.ids)
}

// Gateways yields every gateway with its position, in ID order. It may be
// ranged more than once.
func (r *Ring) Gateways() iter.Seq2[int, GatewayID] {
	if r == nil {
		return slices.All([]GatewayID(nil))
	}
	return slices.All(r.ids)
}

// Gateway returns the gateway at position i in ID order, and "" if there is
// none.
func (r *Ring) Gateway(i int) GatewayID {
	if i < 0 || i >= r.Len() {
		return ""
	}
	return r.ids[i]
}

// Index returns g's position in ID order, from 0 to Len()-1, and false if g is
// not of this ring. It searches in logarithmic time.
func (r *Ring) Index(g GatewayID) (int, bool) {
	if r == nil {
		return 0, false
	}
	i, ok := slices.BinarySearch(r.ids, g)
	if !ok {
		return 0, false
	}
	return i, true
}

// Share returns how many slots g owns; 0 if it is not of this ring.
func (r *Ring) Share(g GatewayID) int {
	i, ok := r.Index(g)
	if !ok {
		return 0
	}
	return int(r.shares[i])
}

// LargestShare returns the largest share of any gateway as a multiple of the
// even share Slots()/Len(): 1.02 means 2 % above it. It is 0 for an empty ring.
// With the default Config it is below 1.025 for up to 32 gateways, and below
// 1.035 for up to 128.
func (r *Ring) LargestShare() float64 {
	if r.Len() == 0 {
		return 0
	}
	return float64(slices.Max(r.shares)) * float64(r.Len()) / float64(r.Slots())
}

// distinct returns the IDs in order, each once, in a slice of its own.
func distinct(gateways []GatewayID) ([]GatewayID, error) {
	var errs []error
	for i, id := range gateways {
		if id == "" {
			errs = append(errs, fmt.Errorf("ring: gateways[%d] is empty", i))
		}
	}
	ids := slices.Clone(gateways)
	slices.Sort(ids)
	ids = slices.Clip(slices.Compact(ids))
	if len(ids) > MaxGateways {
		errs = append(errs, fmt.Errorf("ring: %d gateways; there may be at most %d", len(ids), MaxGateways))
	}
	return ids, errors.Join(errs...)
}
