// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"slices"

	"github.com/evenring/evenring/ring"
)

// Transfer is supervisors to be moved from one gateway to another.
type Transfer struct {
	From, To ring.GatewayID
	Count    int // at least 1
}

// Settle plans the fewest moves that leave no two placeable gateways more than
// one apart (package handoff/settle makes them), and at most so many: with a smaller budget the fullest give and the
// emptiest are given first. Without a budget, or once it is even, there is nothing to do and the plan is
// empty; so whoever carries a plan out and asks again moves nobody twice.
//
// A supervisor moves only if the receiver, with it, stays strictly below what the giver
// had before: receiver+1 < giver. That holds for every single move of a plan, in whatever order
// they are made, and nobody both gives and is given. So two gateways that are one apart are left alone.
//
// A gateway without an endpoint may give, but nobody is sent to it; with one that is
// short the plan may be less than [Balance] says. The plan depends on the counts alone: fullest givers first,
// and among equals the first in ID order. It takes time in proportion to the moves times the gateways.
func (v *View) Settle(budget int) []Transfer {
	type side struct {
		id         ring.GatewayID
		load       int // after the moves so far
		open       bool
		give, take int
	}
	var all []*side
	for i := range v.gateways {
		if g := &v.gateways[i]; g.Placeable() {
			all = append(all, &side{id: g.ID, load: g.Load(), open: v.target(g)})
		}
	}
	slices.SortFunc(all, func(a, b *side) int { return cmp.Or(cmp.Compare(b.load, a.load), cmp.Compare(a.id, b.id)) })
	for range max(0, budget) {
		var most, fewest *side
		for _, s := range all {
			if most == nil || s.load > most.load {
				most = s
			}
			if s.open && (fewest == nil || s.load < fewest.load) {
				fewest = s
			}
		}
		if fewest == nil || fewest.load+1 >= most.load {
			break
		}
		most.load, most.give = most.load-1, most.give+1
		fewest.load, fewest.take = fewest.load+1, fewest.take+1
	}
	var plan []Transfer
	to := len(all) - 1 // the emptiest
	for _, from := range all {
		for from.give > 0 {
			for all[to].take == 0 {
				to--
			}
			n := min(from.give, all[to].take)
			from.give, all[to].take = from.give-n, all[to].take-n
			plan = append(plan, Transfer{From: from.id, To: all[to].id, Count: n})
		}
	}
	return plan
}
