// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"

	"github.com/evenring/evenring/ring"
)

// Transfer is supervisors to be moved from one gateway to another.
type Transfer struct {
	From, To ring.GatewayID
	Count    int // at least 1
}

// Settle returns the moves that package handoff/settle makes if it runs on every gateway at
// once and the view's counts are right: the fewest that leave no two placeable gateways more than
// one apart. It goes by the same [Giver]s, which take turns here in ID order, one move each. Once the fleet is even
// there is nothing to do, so whoever asks again moves nobody twice.
//
// Who gives how many, and who gets how many, follows from the counts alone: of several with
// the even share rounded up, the first in ID order give one more if they must, and odd ones go
// to the last in ID order. What chance decides in a fleet nevertheless, [Predict] says.
//
// A supervisor moves only if the receiver, with it, stays strictly below what the giver
// had before: receiver+1 < giver. That holds for every single move of a plan, in whatever order
// they are made, and nobody both gives and is given. So two gateways that are one apart are left alone.
//
// A gateway without an endpoint may give, but nobody is sent to it, and the others share what there
// is; so the moves may be other than [Balance] says. While there is [Unrest] a fleet does not move anybody, whatever is planned here. The
// transfers are in ID order. They take time in proportion to the moves times the gateways.
func (v *View) Settle() []Transfer {
	all := sides(v.gateways)
	given := make([]map[ring.GatewayID]int, len(all))
	settle(all, 0, func(from, to int) {
		if given[from] == nil {
			given[from] = make(map[ring.GatewayID]int)
		}
		given[from][all[to].id]++
	})
	var plan []Transfer
	for i, receivers := range given {
		for _, to := range all {
			if n := receivers[to.id]; n > 0 {
				plan = append(plan, Transfer{From: all[i].id, To: to.id, Count: n})
			}
		}
	}
	return plan
}

// settle lets these, who are in ID order, give to each other until nobody may any more, or
// each that could has given so many; 0: as many as it takes. Each move is told once it is made.
func settle(all []side, budget int, moved func(from, to int)) {
	number := make(map[ring.GatewayID]int, len(all))
	for i := range all {
		number[all[i].id] = i
	}
	g := Giver{all: all, high: level(all, 0)}
	g.low = g.high
	spent := make([]int, len(all))
	give := func(i int, outOfTurn bool) bool {
		if all[i].load < g.high.cap || budget > 0 && spent[i] == budget {
			return false
		}
		g.self = i
		o := g.Next(outOfTurn, nil)
		if o.To == "" {
			return false
		}
		to := number[o.To]
		all[i].load, all[to].load, spent[i] = all[i].load-1, all[to].load+1, spent[i]+1
		moved(i, to)
		return true
	}
	// A round is one move of each that has more than the cap; then, of each whose turn it is; and
	// then of the first that waits for others in vain.
	for gave := true; gave; {
		gave = false
		for i := range all {
			gave = all[i].load > g.high.cap && give(i, false) || gave
		}
		for i := 0; i < len(all) && !gave; i++ {
			gave = give(i, false)
		}
		for i := 0; i < len(all) && !gave; i++ {
			gave = give(i, true)
		}
	}
}

// Unrest says why a settle moves nobody among these gateways, as in `gateway "gw-1" is draining`; empty: nothing
// is in its way. Who comes and goes changes the shares, so each must be placeable.
func Unrest(gateways []Gateway) string {
	for i := range gateways {
		if g := &gateways[i]; !g.Placeable() {
			return fmt.Sprintf("gateway %q is %s", g.ID, g.condition())
		}
	}
	return ""
}
