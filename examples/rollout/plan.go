// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/rand/v2"
	"slices"
	"time"
)

// act is one blow to the fleet, as the seed has it.
type act struct {
	kind
	number   int
	victims  []int         // places in the list of live gateways
	hosts    []int         // places in the list of processes with supervisors
	lasts    time.Duration // what does not happen at once
	share    float64       // of the connections
	sameName bool          // a gateway is replaced under its own name
}

// plan deals acts: each kind as often as it says, in an order of chance, and then again.
type plan struct {
	rnd      *rand.Rand
	kinds    []kind
	gateways int
	hosts    int
	dealt    int
	deck     []kind
}

func newPlan(seed uint64, kinds []kind, gateways, hosts int) *plan {
	return &plan{rnd: rand.New(rand.NewPCG(seed, 4)), kinds: kinds, gateways: gateways, hosts: hosts}
}

// next deals one act.
func (p *plan) next() act {
	if len(p.deck) == 0 {
		for _, k := range p.kinds {
			p.deck = append(p.deck, slices.Repeat([]kind{k}, max(1, k.often))...)
		}
		p.rnd.Shuffle(len(p.deck), func(i, j int) { p.deck[i], p.deck[j] = p.deck[j], p.deck[i] })
	}
	a := act{kind: p.deck[0]}
	p.deck = p.deck[1:]
	p.dealt++
	a.number = p.dealt
	a.victims = some(p.rnd.Perm(p.gateways), a.kind.gateways)
	a.hosts = some(p.rnd.Perm(p.hosts), a.kind.hosts)
	a.lasts = a.kind.least + time.Duration(p.rnd.Int64N(int64(a.kind.most-a.kind.least)+1)).Round(time.Millisecond)
	a.share = 0.25 + p.rnd.Float64()/2
	a.sameName = p.rnd.IntN(2) == 0
	return a
}

// some returns the first n, if there are so many.
func some(all []int, n int) []int {
	if n == every {
		return all
	}
	return all[:min(n, len(all))]
}
