// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"cmp"
	"slices"
)

// extent returns how many placeable gateways a side has, or all sides for nil, how many they serve, and the fewest and the most of any.
func (f *fleet) extent(s *side) (gateways, served, fewest, most int) {
	for n := range f.gateways {
		g := &f.gateways[n]
		if g.side == nil || s != nil && g.side != s || !g.Placeable() {
			continue
		}
		if n := g.Load(); gateways == 0 {
			fewest, most = n, n
		} else {
			fewest, most = min(fewest, n), max(most, n)
		}
		gateways++
		served += g.Load()
	}
	return gateways, served, fewest, most
}

// audit counts everybody: each supervisor that has arrived is with one gateway, which serves as many
// as it says, and every view agrees.
func (f *fleet) audit() {
	counted := make([]int, len(f.gateways))
	without := 0
	for _, n := range f.where[:f.arrived] {
		if n == nowhere || f.gateways[n].side == nil {
			without++
		} else {
			counted[n]++
		}
	}
	if without > 0 {
		f.faults.add("%d of %d supervisors have no gateway", without, f.arrived)
	}
	for n := range f.gateways {
		g := &f.gateways[n]
		if g.side == nil {
			continue
		}
		if g.Load() != counted[n] {
			f.faults.add("%s says that it serves %d, and serves %d", g.ID, g.Load(), counted[n])
		}
		if seen, ok := g.side.view.Gateway(g.ID); !ok || seen != g.Gateway {
			f.faults.add("%s is %+v, and looks like %+v", g.ID, g.Gateway, seen)
		}
	}
	for i, s := range f.sides {
		if _, served, _, _ := f.extent(s); s.view.Live() != served {
			f.faults.add("side %d counts %d live, and serves %d", i, s.view.Live(), served)
		}
	}
}

// Lines is up to how many gateways a sample shows each of them.
const Lines = 12

// samples is about how many samples a run takes.
const samples = 256

// Sample is the fleet at one moment. Gateways that drain, or are lost, are not counted. While a gateway hands over no
// sample is taken, and of a large fleet none between a replacement's start and the end of the gateway that it replaces.
type Sample struct {
	Decisions int // so far
	Moves     int
	Fewest    int
	Mean      float64
	Most      int
	Served    []Served // each gateway, if they are few
}

// Served is one gateway of a sample.
type Served struct {
	Gateway string
	Count   int
}

// sample takes a sample; unless it must, only if the last is long enough ago.
func (r *run) sample(must bool) {
	f := r.fleet
	if n := len(r.out.Samples); !must && n > 0 && f.decisions < r.out.Samples[n-1].Decisions+r.every {
		return
	}
	gateways, served, fewest, most := f.extent(nil)
	s := Sample{Decisions: f.decisions, Moves: f.moved, Fewest: fewest, Mean: float64(served) / float64(max(1, gateways)), Most: most}
	if len(f.numbers) <= Lines {
		for n := range f.gateways {
			if g := &f.gateways[n]; g.side != nil {
				s.Served = append(s.Served, Served{string(g.ID), g.Load()})
			}
		}
		slices.SortFunc(s.Served, func(a, b Served) int { return cmp.Compare(a.Gateway, b.Gateway) })
	}
	r.out.Samples = append(r.out.Samples, s)
}
