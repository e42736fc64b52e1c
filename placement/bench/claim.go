// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// margin is how many times what ours takes the rings take that honour the cap,
// where the fleet is large and nearly full.
const margin = 20

// claim is the least ratio to ours that this must have; it must be above 1 in any case.
func claim(c cell) float64 {
	if c.job == jobCapped && c.gateways >= 128 && c.full >= 90 {
		return margin
	}
	return 1
}

// faults names every cell of a rival that ours is not ahead of as claimed.
func (f figures) faults() []string {
	var faults []string
	for _, c := range cells() {
		if !find(c.impl).rival(c.job) {
			continue
		}
		want := claim(c)
		switch ratio, ok := f.ratio(c); {
		case !ok:
			faults = append(faults, fmt.Sprintf("%v was not measured", c))
		case ratio <= 1 || ratio < want:
			faults = append(faults, fmt.Sprintf("%v takes %.2f times what %s takes, where more than 1 and at least %v are claimed", c, ratio, ours, want))
		}
	}
	return faults
}
