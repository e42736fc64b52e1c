// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// blame is what an act has done to whom: who may change gateway for it. The zero value
// excuses nobody.
type blame struct {
	gateways map[string]bool // those whom they served
	members  map[string]bool
	all      bool
}

func (b *blame) gateway(ids ...string) {
	for _, id := range ids {
		if b.gateways == nil {
			b.gateways = make(map[string]bool)
		}
		b.gateways[id] = true
	}
}

func (b *blame) member(names ...string) {
	for _, name := range names {
		if b.members == nil {
			b.members = make(map[string]bool)
		}
		b.members[name] = true
	}
}

// judge says who moved although nothing had happened to them.
func (b blame) judge(movers []mover) []string {
	var why []string
	for _, m := range movers {
		if b.all || b.gateways[m.from] || b.members[m.member] {
			continue
		}
		if why = append(why, fmt.Sprintf("%s moved from %s to %s, and nothing had happened to it", m.member, m.from, m.to)); len(why) == shown {
			return append(why, fmt.Sprintf("and perhaps more of the %d that moved", len(movers)))
		}
	}
	return why
}

// shown is how many of many faults are told.
const shown = 3
