// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

func gateways(loads ...int) []placement.Gateway {
	all := make([]placement.Gateway, len(loads))
	for i, n := range loads {
		id := ring.GatewayID(rune('A' + i))
		all[i] = placement.Gateway{
			ID: id, Endpoint: string(id), State: placement.Ready, Known: true,
			Counts: placement.Counts{Incarnation: 1, Attached: n},
		}
	}
	return all
}

func awake(ring.GatewayID) bool { return false }

func TestNext(t *testing.T) {
	for _, c := range []struct {
		name   string
		self   ring.GatewayID
		loads  []int
		out    outgoing
		change func([]placement.Gateway)
		want   offer
		owes   bool
	}{
		{name: "the emptiest first", self: "A", loads: []int{9, 3, 0}, want: offer{"C", 4}, owes: true},
		{name: "S16", self: "A", loads: []int{2, 0}, want: offer{"B", 1}, owes: true},
		{name: "S17: one apart", self: "A", loads: []int{3, 2}},
		{name: "S17: two apart", self: "A", loads: []int{4, 2}, want: offer{"B", 3}, owes: true},
		{name: "alone", self: "A", loads: []int{4}},
		{name: "nobody", self: "A", loads: []int{0, 0}},
		{name: "who has too few gives nobody", self: "C", loads: []int{9, 3, 0}},
		{name: "the share is filled before the cap", self: "A", loads: []int{9, 3, 2, 0}, want: offer{"D", 3}, owes: true},
		{name: "then the cap", self: "A", loads: []int{5, 3, 3, 3}, want: offer{"D", 4}, owes: true},
		{name: "one at the cap waits for those above it", self: "B", loads: []int{9, 4, 4, 1, 0}, owes: true},
		{name: "then each may give one more", self: "A", loads: []int{4, 4, 4, 1}, want: offer{"D", 3}, owes: true},
		{name: "whatever its ID", self: "C", loads: []int{4, 4, 4, 1}, want: offer{"D", 3}, owes: true},
		{name: "who has the share has nothing to give", self: "C", loads: []int{4, 4, 3, 2}},
		{name: "not while others are under way", self: "A", loads: []int{4, 4, 4, 1}, change: func(all []placement.Gateway) {
			all[3].Reserved = 1
		}, owes: true},
		{name: "those that go count once", self: "A", loads: []int{4, 0}, out: outgoing{pending: 2, here: 2}, change: func(all []placement.Gateway) {
			all[1].Reserved = 2
		}},
		{name: "those that are asked for as well", self: "A", loads: []int{4, 0}, out: outgoing{asking: map[ring.GatewayID]int{"B": 2}}},
		{name: "and those that did not go", self: "A", loads: []int{6, 2}, out: outgoing{here: 2, failed: 2}},
		{name: "S33: one without an endpoint is given nobody", self: "A", loads: []int{6, 0, 0}, change: func(all []placement.Gateway) {
			all[1].Endpoint = ""
		}, want: offer{"C", 3}, owes: true},
		{name: "nobody to give to", self: "A", loads: []int{6, 0}, change: func(all []placement.Gateway) {
			all[1].Endpoint = ""
		}},
		{name: "only placeable ones take part", self: "A", loads: []int{6, 0, 2}, change: func(all []placement.Gateway) {
			all[1].Suspect = true
		}, want: offer{"C", 4}, owes: true},
		{name: "this one included", self: "A", loads: []int{6, 0}, change: func(all []placement.Gateway) {
			all[0].State = placement.Draining
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := gateways(c.loads...)
			if c.change != nil {
				c.change(all)
			}
			p := newPlan(c.self, all, c.out)
			next := p.next(awake)
			if next.to == "" {
				next = offer{}
			}
			require.Equal(t, c.want, next)
			require.Equal(t, c.owes, p.owes())
		})
	}
}

func TestRestingTargetsArePassedOver(t *testing.T) {
	p := newPlan("A", gateways(9, 3, 0, 1), outgoing{})
	require.Equal(t, ring.GatewayID("D"), p.next(func(id ring.GatewayID) bool { return id == "C" }).to)
	require.Empty(t, p.next(func(id ring.GatewayID) bool { return id != "B" }).to, "B has its share, and fills up only when nobody is below that")
}

// Gateways that make moves in any order, one at a time, end even with as few
// moves as placement.View.Settle plans, and each move leaves the receiver below the giver.
func TestAnyOrderOfMovesIsAsShort(t *testing.T) {
	for seed := range uint64(500) {
		rnd := rand.New(rand.NewPCG(seed, 18))
		loads := make([]int, 1+rnd.IntN(8))
		for i := range loads {
			loads[i] = rnd.IntN(1 + rnd.IntN(30))
		}
		all := gateways(loads...)
		for i := range all {
			if rnd.IntN(8) == 0 {
				all[i].Endpoint = ""
			}
		}
		planned := 0
		for _, tr := range placement.NewView(placement.Picture{Gateways: all}).Settle(1 << 20) {
			planned += tr.Count
		}
		made := 0
		for {
			var ready []int
			for i := range all {
				if p := newPlan(all[i].ID, all, outgoing{}); p.next(awake).to != "" {
					ready = append(ready, i)
				}
			}
			if len(ready) == 0 {
				break
			}
			from := &all[ready[rnd.IntN(len(ready))]]
			p := newPlan(from.ID, all, outgoing{})
			next := p.next(awake)
			to := &all[next.to[0]-'A']
			require.Less(t, to.Load(), next.limit, "seed %d", seed)
			require.Less(t, to.Load()+1, from.Load(), "seed %d", seed)
			from.Attached--
			to.Attached++
			made++
			require.LessOrEqual(t, made, planned, "seed %d: %v", seed, loads)
		}
		require.Equal(t, planned, made, "seed %d: %v became %v", seed, loads, all)
		require.Empty(t, placement.NewView(placement.Picture{Gateways: all}).Settle(1), "seed %d", seed)
	}
}
