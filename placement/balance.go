// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/evenring/evenring/ring"
)

// Balance tells how even a fleet is, in whole supervisors. Only placeable
// gateways count; with none of them there is nobody to serve.
type Balance struct {
	Gateways int            `json:"gateways"`
	Total    int            `json:"total"`    // supervisors on them
	Most     int            `json:"most"`     // on the fullest
	Fewest   int            `json:"fewest"`   // on the emptiest
	Emptiest ring.GatewayID `json:"emptiest"` // of several the last of the view; empty: there is no gateway
	Skew     float64        `json:"skew"`     // Most over the mean; 1 is even, and what nobody to serve is called
	Moves    int            `json:"moves"`    // the fewest that leave no two of them more than one apart; 0 exactly if it is even
}

// Even reports whether no two gateways are more than one apart: as even as
// whole numbers allow. A tolerance in percent would call 10/0/10/10 even, and
// 1/1/1/0 not.
func (b Balance) Even() bool { return b.Most-b.Fewest <= 1 }

// String renders the report in one line.
func (b Balance) String() string {
	fleet := plural(b.Total, "supervisor", "supervisors") + " on " + plural(b.Gateways, "gateway", "gateways")
	if b.Gateways == 0 {
		return "even: " + fleet
	}
	fleet += fmt.Sprintf(", %d to %d each, max/mean %.2f, emptiest %s", b.Fewest, b.Most, b.Skew, word(string(b.Emptiest)))
	if b.Even() {
		return "even: " + fleet
	}
	return "skewed: " + fleet + "; " + plural(b.Moves, "move", "moves") + " would make it even"
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
		return Balance{Skew: 1}
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
