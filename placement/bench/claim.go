// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

const (
	// margin is how many times what ours takes the rings and the libraries used as they are take, where
	// the fleet is large and nearly full. Who keeps a list of gateways with room has not to look for one.
	margin = 20

	// level is that of one that ours keeps up with, and is not ahead of everywhere: ours takes at most a ninth longer.
	level = 0.9
)

// claim returns how many times what ours takes this must take more than. Nothing is
// claimed of what does not do the same job.
func claim(c cell) (times float64, claimed bool) {
	a := find(c.impl)
	switch {
	case c.impl == floor:
		return 1 / floors(c), c.job == jobCapped
	case a.list && c.job == jobReserve:
		return level, true
	case !a.list && c.job == jobCapped && c.gateways >= 128 && c.full >= 90:
		return margin, a.rival(c.job)
	default:
		return 1, a.rival(c.job)
	}
}

// floors is how many times what the floor takes ours must take less than: it looks at a
// load, too, and from a full owner it goes on to somebody with room.
func floors(c cell) float64 {
	if c.full == 0 {
		return 2.5
	}
	return 3.5
}

// faults names every cell in which what is claimed is not so.
func (f figures) faults() []string {
	var faults []string
	for _, c := range cells() {
		times, claimed := claim(c)
		if !claimed {
			continue
		}
		switch g, ok := f[c]; {
		case !ok:
			faults = append(faults, fmt.Sprintf("%v was not measured", c))
		case g.ratio() > times:
		case c.impl == floor:
			faults = append(faults, fmt.Sprintf("%v: %s takes %.2f times what the floor takes (%s and %s ns), where less than %v is claimed",
				c, ours, 1/g.ratio(), short(g.ours), short(g.ns), floors(c)))
		default:
			faults = append(faults, fmt.Sprintf("%v takes %.2f times what %s takes (%s and %s ns), where more than %v is claimed",
				c, g.ratio(), ours, short(g.ns), short(g.ours), times))
		}
	}
	return faults
}
