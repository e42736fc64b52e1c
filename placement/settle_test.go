// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"math/rand/v2"
	"slices"
	"strings"
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
		change func([]placement.Gateway)
		want   plan
	}{
		{name: "S16: one move, and then nothing", loads: []int{2, 0}, want: plan{{"A", "B", 1}}},
		{name: "S17: one apart", loads: []int{3, 2}},
		{name: "S17: two apart, and then none", loads: []int{4, 2}, want: plan{{"A", "B", 1}}},
		{name: "W2", loads: []int{0, 15, 15}, want: plan{{"B", "A", 5}, {"C", "A", 5}}},
		{name: "those who give take turns, and the emptiest is given first", loads: []int{9, 9, 3, 3}, want: plan{{"A", "D", 3}, {"B", "C", 3}}},
		{name: "the giver keeps the odd one", loads: []int{0, 0, 4}, want: plan{{"C", "A", 1}, {"C", "B", 1}}},
		{name: "the last get the odd ones", loads: []int{3, 3, 3, 9}, want: plan{{"D", "A", 1}, {"D", "B", 1}, {"D", "C", 2}}},
		{name: "the first give one more", loads: []int{4, 4, 4, 1}, want: plan{{"A", "D", 2}}, change: func(all []placement.Gateway) { all[0].Attached = 5 }},
		{name: "those with more go first", loads: []int{4, 6, 4, 0}, want: plan{{"A", "D", 1}, {"B", "D", 2}}},
		{name: "nobody"},
		{name: "only one", loads: []int{9}},
		{name: "only placeable ones take part", loads: []int{9, 0, 0, 0, 5}, change: func(all []placement.Gateway) {
			all[0].State, all[1].Suspect, all[2].Known = placement.Draining, true, false
		}, want: plan{{"E", "D", 2}}},
		{name: "S33: nobody is sent to one without an endpoint", loads: []int{4, 0, 0}, change: func(all []placement.Gateway) {
			all[1].Endpoint = ""
		}, want: plan{{"A", "C", 2}}},
		{name: "S33: but it may give", loads: []int{0, 4, 2}, change: func(all []placement.Gateway) {
			all[1].Endpoint = ""
		}, want: plan{{"B", "A", 2}}},
		{name: "S33: not even to the one who looks", loads: []int{0, 4}, change: func(all []placement.Gateway) {
			all[0].Endpoint = ""
		}},
		{name: "S33: those without have the share, and the others have more to share", loads: []int{8, 4, 4, 4, 4}, change: func(all []placement.Gateway) {
			all[2].Endpoint, all[3].Endpoint, all[4].Endpoint = "", "", ""
		}, want: plan{{"A", "B", 2}}},
		{name: "S33: nobody has one", loads: []int{4, 1}, change: func(all []placement.Gateway) { all[0].Endpoint, all[1].Endpoint = "", "" }},
		{name: "held and reserved count", loads: []int{0, 0}, change: func(all []placement.Gateway) {
			all[0].Held, all[0].Reserved = 2, 2
		}, want: plan{{"A", "B", 2}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := gateways(c.loads...)
			if c.change != nil {
				c.change(all)
			}
			got := view(t, all).Settle()
			require.Equal(t, c.want, got)
			carry(t, all, got, rand.New(rand.NewPCG(1, 2)))
			require.Empty(t, view(t, all).Settle(), "and then nothing")
		})
	}
}

// As many moves as the balance says suffice, every single one leaves the receiver below the giver, in
// whatever order they are made, and the plan that follows is empty.
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

		v := view(t, all)
		plan := v.Settle()
		require.Equal(t, plan, v.Settle(), "seed %d: the same again", seed)
		moved := carry(t, all, plan, rnd)
		require.Equal(t, before.Moves, moved, "seed %d", seed)
		after := view(t, all).Balance()
		require.Equal(t, total, after.Total, "seed %d", seed)
		require.True(t, after.Even(), "seed %d: %v", seed, loads)
		require.Empty(t, view(t, all).Settle(), "seed %d: then nothing", seed)
		above, below := 0, 0
		for _, n := range loads {
			above, below = above+max(0, n-total/len(loads)), below+max(0, n-share)
		}
		require.LessOrEqual(t, moved, above, "seed %d: never more than is above the even share, rounded down", seed)
		require.GreaterOrEqual(t, moved, below, "seed %d: or less than is above it, rounded up", seed)
	}
}

// evenest is the dumb way: the fullest gives to the emptiest that can be sent to, as long as that helps.
func evenest(all []placement.Gateway) (loads []int, moves int) {
	for {
		most, fewest := -1, -1
		for i, g := range all {
			if most < 0 || g.Attached > all[most].Attached {
				most = i
			}
			if g.Endpoint != "" && (fewest < 0 || g.Attached < all[fewest].Attached) {
				fewest = i
			}
		}
		if fewest < 0 || all[fewest].Attached+1 >= all[most].Attached {
			break
		}
		all[most].Attached--
		all[fewest].Attached++
		moves++
	}
	for _, g := range all {
		loads = append(loads, g.Attached)
	}
	slices.Sort(loads)
	return loads, moves
}

// Gateways that make moves one at a time, in any order, in or out of turn, end as even as
// can be with the fewest moves, whatever can be sent to; each move leaves the receiver below the
// giver, and within the limit. In turn, each ends with as many as View.Settle plans.
func TestAnyOrderOfMovesIsAsShort(t *testing.T) {
	for seed := range uint64(2000) {
		rnd := rand.New(rand.NewPCG(seed, 18))
		loads := make([]int, 1+rnd.IntN(8))
		for i := range loads {
			loads[i] = rnd.IntN(1 + rnd.IntN(30))
		}
		all := gateways(loads...)
		for i := range all {
			if rnd.IntN(4) == 0 {
				all[i].Endpoint = ""
			}
		}
		planned := slices.Clone(all)
		moves := carry(t, planned, placement.NewView(placement.Picture{Gateways: all}).Settle(), rnd)
		even, fewest := evenest(slices.Clone(all))
		require.Equal(t, fewest, moves, "seed %d: %v", seed, loads)

		outOfTurn := seed%2 == 0
		made := 0
		for {
			var ready []int
			for i := range all {
				g := placement.NewGiver(all[i].ID, all, placement.Outgoing{})
				if g.Next(outOfTurn, nil) != (placement.Offer{}) {
					ready = append(ready, i)
					require.True(t, g.Owes(), "seed %d: who gives owes", seed)
				}
			}
			if len(ready) == 0 {
				break
			}
			from := &all[ready[rnd.IntN(len(ready))]]
			g := placement.NewGiver(from.ID, all, placement.Outgoing{})
			o := g.Next(outOfTurn, nil)
			to := &all[o.To[0]-'A']
			require.Less(t, to.Load(), o.Limit, "seed %d", seed)
			require.Less(t, to.Load()+1, from.Load(), "seed %d", seed)
			from.Attached--
			to.Attached++
			made++
			require.LessOrEqual(t, made, fewest, "seed %d: %v", seed, loads)
		}
		var got []int
		for _, g := range all {
			got = append(got, g.Attached)
		}
		slices.Sort(got)
		require.Equal(t, even, got, "seed %d: %v", seed, loads)
		require.Equal(t, fewest, made, "seed %d: %v became %v", seed, loads, got)
		if !outOfTurn {
			require.Equal(t, planned, all, "seed %d: %v", seed, loads)
		}
	}
}

func TestGiver(t *testing.T) {
	for _, c := range []struct {
		name   string
		self   ring.GatewayID
		loads  []int
		out    placement.Outgoing
		change func([]placement.Gateway)
		want   placement.Offer
		behind int
		owes   bool
	}{
		{name: "the emptiest first", self: "A", loads: []int{9, 3, 0}, want: placement.Offer{To: "C", Limit: 4}, owes: true},
		{name: "S16", self: "A", loads: []int{2, 0}, want: placement.Offer{To: "B", Limit: 1}, owes: true},
		{name: "S17: one apart", self: "A", loads: []int{3, 2}},
		{name: "S17: two apart", self: "A", loads: []int{4, 2}, want: placement.Offer{To: "B", Limit: 3}, owes: true},
		{name: "alone", self: "A", loads: []int{4}},
		{name: "nobody", self: "A", loads: []int{0, 0}},
		{name: "somebody that is not there", self: "X", loads: []int{9, 0}},
		{name: "who has too few gives nobody", self: "C", loads: []int{9, 3, 0}},
		{name: "the share is filled before the cap", self: "A", loads: []int{9, 3, 2, 0}, want: placement.Offer{To: "D", Limit: 3}, owes: true},
		{name: "then the cap", self: "A", loads: []int{5, 3, 3, 3}, want: placement.Offer{To: "D", Limit: 4}, owes: true},
		{name: "one at the cap waits for those above it", self: "B", loads: []int{9, 4, 4, 1, 0}, owes: true},
		{name: "then the first gives one more", self: "A", loads: []int{4, 4, 4, 1}, want: placement.Offer{To: "D", Limit: 3}, owes: true},
		{name: "and the second, if it takes two", self: "B", loads: []int{4, 4, 4, 1}, want: placement.Offer{To: "D", Limit: 3}, owes: true},
		{name: "one too many before it", self: "C", loads: []int{4, 4, 4, 1}, behind: 1, owes: true},
		{name: "two too many", self: "C", loads: []int{4, 4, 4, 2}, behind: 2, owes: true},
		{name: "who has the share has nothing to give", self: "C", loads: []int{4, 4, 3, 2}},
		{name: "not while others are under way", self: "A", loads: []int{4, 4, 4, 1}, change: func(all []placement.Gateway) {
			all[3].Reserved = 1
		}, owes: true},
		{name: "those that go count once", self: "A", loads: []int{4, 0}, out: placement.Outgoing{Pending: 2, Here: 2}, change: func(all []placement.Gateway) {
			all[1].Reserved = 2
		}},
		{name: "those that are asked for as well", self: "A", loads: []int{4, 0}, out: placement.Outgoing{Asking: map[ring.GatewayID]int{"B": 2}}},
		{name: "and those that did not go", self: "A", loads: []int{6, 2}, out: placement.Outgoing{Here: 2, Failed: 2}},
		{name: "S33: one without an endpoint is given nobody", self: "A", loads: []int{6, 0, 0}, change: func(all []placement.Gateway) {
			all[1].Endpoint = ""
		}, want: placement.Offer{To: "C", Limit: 3}, owes: true},
		{name: "nobody to give to", self: "A", loads: []int{6, 0}, change: func(all []placement.Gateway) {
			all[1].Endpoint = ""
		}},
		{name: "only placeable ones take part", self: "A", loads: []int{6, 0, 2}, change: func(all []placement.Gateway) {
			all[1].Suspect = true
		}, want: placement.Offer{To: "C", Limit: 4}, owes: true},
		{name: "this one included", self: "A", loads: []int{6, 0}, change: func(all []placement.Gateway) {
			all[0].State = placement.Draining
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := gateways(c.loads...)
			if c.change != nil {
				c.change(all)
			}
			g := placement.NewGiver(c.self, all, c.out)
			require.Equal(t, c.want, g.Next(false, nil))
			require.Equal(t, c.behind, g.Behind())
			require.Equal(t, c.owes, g.Owes())
			if c.behind > 0 {
				require.NotZero(t, g.Next(true, nil))
			} else {
				require.Equal(t, c.want, g.Next(true, nil))
			}
		})
	}
	var zero placement.Giver
	require.Zero(t, zero.Next(true, nil))
}

func TestRestingTargetsArePassedOver(t *testing.T) {
	g := placement.NewGiver("A", gateways(9, 3, 0, 1), placement.Outgoing{})
	require.Equal(t, ring.GatewayID("D"), g.Next(false, func(o placement.Offer) bool { return o.To == "C" }).To)
	require.Zero(t, g.Next(false, func(o placement.Offer) bool { return o.To != "B" }), "B has its share, and fills up only when nobody is below that")
}

// Who came from the receiver goes first, then whoever else was displaced, then the rest in ID order.
func TestLeavers(t *testing.T) {
	var l placement.Leavers
	_, ok := l.Take("B")
	require.False(t, ok)
	for _, one := range []struct{ member, from string }{{"e", ""}, {"a", ""}, {"d", "Y"}, {"c", "X"}, {"f", "B"}, {"g", "B"}, {"b", "Y"}} {
		l.Add(ring.MemberID(one.member), ring.GatewayID(one.from))
	}
	require.Equal(t, 7, l.Len())
	take := func(to string) string {
		m, _ := l.Take(ring.GatewayID(to))
		return string(m)
	}
	require.Equal(t, "f", take("B"))
	require.Equal(t, "b", take("Z"))
	l.Add("b", "Y") // it stays, after all
	require.Equal(t, "g b c d a e", strings.Join([]string{take("B"), take("B"), take("B"), take("B"), take("B"), take("B")}, " "))
	require.Zero(t, l.Len())
}

func TestUnrest(t *testing.T) {
	all := gateways(1, 2)
	require.Empty(t, placement.Unrest(nil))
	require.Empty(t, placement.Unrest(all))
	all[1].Known = false
	require.Equal(t, `gateway "B" is unknown`, placement.Unrest(all))
	all[1].State = placement.Draining
	require.Contains(t, placement.Unrest(all), `gateway "B" is `)
	all[0].Suspect = true
	require.Equal(t, `gateway "A" is suspect`, placement.Unrest(all))
}
