// SPDX-License-Identifier: Apache-2.0

package main

import "math/rand/v2"

// Who is here does not look at the member: asked again, it is somebody else's answer.

// leastLoaded looks at all gateways and takes the least loaded.
func leastLoaded(f *fleet) (place, error) {
	return func(string) string {
		best := 0
		for i, n := range f.counts {
			if n < f.counts[best] {
				best = i
			}
		}
		return f.ids[best]
	}, nil
}

// twoChoices draws two different gateways and takes the less loaded.
func twoChoices(f *fleet) (place, error) {
	n := uint64(len(f.ids))
	return func(string) string {
		draw := rand.Uint64() // one draw, two numbers
		a, b := draw>>32*n>>32, draw&0xffffffff*(n-1)>>32
		if b >= a {
			b++ // of the others
		}
		if f.counts[b] < f.counts[a] {
			a = b
		}
		return f.ids[a]
	}, nil
}
