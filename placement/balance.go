// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/evenring/evenring/ring"
)

// Balance tells how even a fleet is, in whole supervisors. Only placeable
// gateways count. The zero value is that of a fleet without any.
type Balance struct {
	Gateways int
	Total    int // supervisors on them
	Most     int // on the fullest
	Fewest   int // on the emptiest
	Emptiest ring.GatewayID
	Skew     float64 // Most over the mean; 1 is even, and what nobody to serve is called
	Moves    int     // the fewest that leave no two of them more than one apart
}

// Even reports whether no two gateways are more than one apart: as even as
// whole numbers allow. A tolerance in percent would call 10/0/10/10 even, and
// 1/1/1/0 not.
func (b Balance) Even() bool { return b.Most-b.Fewest <= 1 }

// String renders the report in one line.
func (b Balance) String() string {
	if b.Even() {
		return fmt.Sprintf("even: %d supervisors on %d gateways, %d to %d each", b.Total, b.Gateways, b.Fewest, b.Most)
	}
	return fmt.Sprintf("skewed: %d supervisors on %d gateways, %d to %d each, the fullest has %.2f times the mean; %s is the emptiest; %d moves would make it even",
		b.Total, b.Gateways, b.Fewest, b.Most, b.Skew, b.Emptiest, b.Moves)
}

// Balance measures how even the fleet is.
func (v *View) Balance() Balance {
	var on []Gateway
	for _, g := range v.gateways {
		if g.Placeable() {
			on = append(on, g)
		}
	}
	if len(on) == 0 {
		return Balance{}
	}
	slices.SortStableFunc(on, func(a, b Gateway) int { return cmp.Compare(b.Load(), a.Load()) })
	b := Balance{
		Gateways: len(on), Most: on[0].Load(), Fewest: on[len(on)-1].Load(), Emptiest: on[len(on)-1].ID, Skew: 1,
	}
	for _, g := range on {
		b.Total += g.Load()
	}
	if b.Total > 0 {
		b.Skew = float64(b.Most) * float64(b.Gateways) / float64(b.Total)
	}
	share, more := b.Total/b.Gateways, b.Total%b.Gateways
	for i, g := range on { // the fullest keep the odd ones
		keep := share
		if i < more {
			keep++
		}
		b.Moves += max(0, g.Load()-keep)
	}
	return b
}
