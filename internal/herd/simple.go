// SPDX-License-Identifier: Apache-2.0

package herd

import (
	"fmt"
	"math/rand/v2"

	"github.com/buraksezer/consistent"
	"github.com/cespare/xxhash/v2"

	"github.com/evenring/evenring/ring"
)

// Choice is a simple rule over one load array that all gateways share and that
// is as stale as a wave says. It keeps no reservations, and is told the cap
// that the wave will end with, which a real gateway could only guess. Nothing
// takes time: who is placed is served before the next one comes. On a view that is
// never refreshed nobody is full, so that Closest and Clockwise pass over nobody.
type Choice uint8

// The simple rules.
const (
	Owner       Choice = iota // the ring's owner, whatever its load
	Closest                   // the first below the cap, in the order of buraksezer's GetClosestN
	Clockwise                 // the first below the cap on the ring's walk
	TwoChoices                // the less loaded of two different ones at random
	LeastLoaded               // the least loaded; of several, one at random
)

// Run places a wave, one supervisor after the other. The Service's pick is
// one dial, and a redirect another.
func (c Choice) Run(wave Wave) (Outcome, error) {
	if err := wave.Validate(); err != nil {
		return Outcome{}, err
	}
	ids := wave.gateways()
	rnd := rand.New(rand.NewPCG(wave.Seed, 2))
	choose, err := c.rule(ids, wave.limit(), rnd)
	if err != nil {
		return Outcome{}, err
	}
	out := Outcome{Served: make([]int, len(ids))}
	view := make([]int, len(ids))
	for i := range wave.Supervisors {
		to := choose(wave.member(i), view)
		out.Served[to]++
		dials := 1
		if rnd.IntN(len(ids)) != to {
			dials = 2
		}
		out.Dials.add(dials)
		out.Asks.add(0)
		if wave.due(i + 1) {
			copy(view, out.Served)
			out.Refreshes++
		}
	}
	return out, nil
}

// rule returns the rule as a function from a member and the loads that are seen to a gateway.
func (c Choice) rule(ids []ring.GatewayID, limit int, rnd *rand.Rand) (func(ring.MemberID, []int) int, error) {
	switch c {
	case Owner, Clockwise:
		circle, err := ring.New(ring.Config{}, ids...)
		if err != nil {
			return nil, err
		}
		at := make([]int, len(ids)) // the ring's positions are in ID order
		for i, id := range ids {
			p, _ := circle.Index(id)
			at[p] = i
		}
		return func(m ring.MemberID, load []int) int {
			first := -1
			for p := range circle.Walk(m) {
				if first < 0 {
					first = at[p]
				}
				if c == Owner || load[at[p]] < limit {
					return at[p]
				}
			}
			return first
		}, nil
	case Closest:
		return closest(ids, limit), nil
	case TwoChoices:
		return func(_ ring.MemberID, load []int) int {
			a, b := twoOf(len(ids), rnd)
			if load[b] < load[a] {
				return b
			}
			return a
		}, nil
	case LeastLoaded:
		return func(_ ring.MemberID, load []int) int {
			best, equal := 0, 0
			for i, n := range load {
				switch {
				case n < load[best]:
					best, equal = i, 1
				case n == load[best]:
					if equal++; rnd.IntN(equal) == 0 {
						best = i
					}
				}
			}
			return best
		}, nil
	default:
		return nil, fmt.Errorf("herd: there is no rule %d", c)
	}
}

// twoOf draws two different numbers below n; the same one twice if there is no other.
func twoOf(n int, rnd *rand.Rand) (a, b int) {
	a = rnd.IntN(n)
	if b = a; n > 1 {
		b = (a + 1 + rnd.IntN(n-1)) % n
	}
	return a, b
}

// node is a gateway, for the hashing library.
type node ring.GatewayID

func (n node) String() string { return string(n) }

type sum64 struct{}

func (sum64) Sum64(b []byte) uint64 { return xxhash.Sum64(b) }

// closest is the order of GetClosestN, with as many partitions as the ring has slots, as
// even a table as the ring's, and virtual nodes as that library's documentation has them.
func closest(ids []ring.GatewayID, limit int) func(ring.MemberID, []int) int {
	at := make(map[string]int, len(ids))
	members := make([]consistent.Member, len(ids))
	for i, id := range ids {
		members[i] = node(id)
		at[string(id)] = i
	}
	c := consistent.New(members, consistent.Config{
		Hasher: sum64{}, PartitionCount: ring.DefaultSlots, ReplicationFactor: 20, Load: ring.DefaultLoad,
	})
	return func(m ring.MemberID, load []int) int {
		owner := at[c.LocateKey([]byte(m)).String()]
		if load[owner] < limit {
			return owner
		}
		near, err := c.GetClosestN([]byte(m), len(ids))
		if err != nil {
			return owner
		}
		for _, n := range near {
			if i := at[n.String()]; load[i] < limit {
				return i
			}
		}
		return owner
	}
}
