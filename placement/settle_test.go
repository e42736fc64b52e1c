// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// carry carries a plan out on these gateways, one move at a time and in an order of
// rnd's, and returns the number of moves. Each must leave the receiver strictly below the giver.
func carry(t *testing.T, all []placement.Gateway, plan []placement.Transfer, rnd *rand.Rand) int {
	t.Helper()
	at := map[ring.GatewayID]*placement.Gateway{}
	for i := range all {
		at[all[i].ID] = &all[i]
	}
	var single []placement.Transfer
	for _, tr := range plan {
		require.Positive(t, tr.Count)
		for range tr.Count {
			single = append(single, tr)
		}
	}
	rnd.Shuffle(len(single), func(i, j int) { single[i], single[j] = single[j], single[i] })
	for _, tr := range single {
		from, to := at[tr.From], at[tr.To]
		require.Less(t, to.Load()+1, from.Load(), "%s -> %s", tr.From, tr.To)
		from.Attached--
		to.Attached++
	}
	return len(single)
}

func TestSettle(t *testing.T) {
	type plan = []placement.Transfer
	for _, c := range []struct {
		name   string
		loads  []int
		budget int
		change func([]placement.Gateway)
		want   plan
	}{
		{name: "S16: one move", loads: []int{2, 0}, budget: 1, want: plan{{"A", "B", 1}}},
		{name: "S16: then nothing", loads: []int{1, 1}, budget: 1},
		{name: "S17: one apart", loads: []int{3, 2}, budget: 100},
		{name: "S17: two apart", loads: []int{4, 2}, budget: 100, want: plan{{"A", "B", 1}}},
		{name: "S17: and then none", loads: []int{3, 3}, budget: 100},
		{name: "W2", loads: []int{0, 15, 15}, budget: math.MaxInt, want: plan{{"B", "A", 5}, {"C", "A", 5}}},
		{name: "the budget goes where it helps most", loads: []int{9, 6, 0, 5}, budget: 3, want: plan{{"A", "C", 3}}},
		{name: "no budget", loads: []int{9, 0}},
		{name: "a budget below none", loads: []int{9, 0}, budget: -1},
		{name: "the fullest keeps the odd one", loads: []int{0, 0, 4}, budget: 9, want: plan{{"C", "B", 1}, {"C", "A", 1}}},
		{name: "nobody", budget: 9},
		{name: "only one", loads: []int{9}, budget: 9},
		{name: "only placeable ones take part", loads: []int{9, 0, 0, 0, 5}, budget: 9, change: func(all []placement.Gateway) {
			all[0].State, all[1].Suspect, all[2].Known = placement.Draining, true, false
		}, want: plan{{"E", "D", 2}}},
		{name: "S33: nobody is sent to one without an endpoint", loads: []int{4, 0, 0}, budget: 9, change: func(all []placement.Gateway) {
			all[1].Endpoint = ""
		}, want: plan{{"A", "C", 2}}},
		{name: "S33: but it may give", loads: []int{0, 4, 2}, budget: 9, change: func(all []placement.Gateway) {
			all[1].Endpoint = ""
		}, want: plan{{"B", "A", 2}}},
		{name: "the one who looks needs no endpoint", loads: []int{0, 4}, budget: 9, change: func(all []placement.Gateway) {
			all[0].Endpoint = ""
		}, want: plan{{"B", "A", 2}}},
		{name: "held and reserved count", loads: []int{0, 0}, budget: 9, change: func(all []placement.Gateway) {
			all[0].Held, all[0].Reserved = 2, 2
		}, want: plan{{"A", "B", 2}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := gateways(c.loads...)
			if c.change != nil {
				c.change(all)
			}
			require.Equal(t, c.want, view(t, all).Settle(c.budget))
		})
	}
}

// A budget is kept to, as many moves as the balance says suffice, every single
// one leaves the receiver below the giver, and the plan that follows is empty.
func TestSettleProperties(t *testing.T) {
	for seed := range uint64(400) {
		rnd := rand.New(rand.NewPCG(seed, 17))
		loads := make([]int, 1+rnd.IntN(8))
		total := 0
		for i := range loads {
			loads[i] = rnd.IntN(1 + rnd.IntN(40))
			total += loads[i]
		}
		share := (total + len(loads) - 1) / len(loads)
		all := gateways(loads...)
		before := view(t, all).Balance()
		budget := rnd.IntN(before.Moves + 3)

		v := view(t, all)
		plan := v.Settle(budget)
		require.Equal(t, plan, v.Settle(budget), "seed %d: the same again", seed)
		require.Less(t, len(plan), len(loads), "seed %d: no more transfers than it takes", seed)
		moved := carry(t, all, plan, rnd)
		require.Equal(t, min(budget, before.Moves), moved, "seed %d: %v", seed, loads)
		after := view(t, all).Balance()
		require.Equal(t, total, after.Total, "seed %d", seed)
		require.Equal(t, before.Moves-moved, after.Moves, "seed %d: no move is wasted", seed)

		moved += carry(t, all, view(t, all).Settle(math.MaxInt), rnd)
		require.Equal(t, before.Moves, moved, "seed %d", seed)
		require.True(t, view(t, all).Balance().Even(), "seed %d", seed)
		require.Empty(t, view(t, all).Settle(math.MaxInt), "seed %d: then nothing", seed)
		above, below := 0, 0
		for _, n := range loads {
			above, below = above+max(0, n-total/len(loads)), below+max(0, n-share)
		}
		require.LessOrEqual(t, moved, above, "seed %d: never more than is above the even share, rounded down", seed)
		require.GreaterOrEqual(t, moved, below, "seed %d: or less than is above it, rounded up", seed)
	}
}
