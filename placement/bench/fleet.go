// SPDX-License-Identifier: Apache-2.0

package main

import "strconv"

// limit is the cap of every fleet: gateways with fewer have room.
const limit = 100

var (
	sizes    = []int{3, 16, 128, 1024} // of fleets, in gateways
	percents = []int{0, 90, 99, 100}   // of gateways that have no room
)

// members are who is placed, in turns.
var members = func() (all [1024]string) {
	for i := range all {
		all[i] = "member-" + strconv.Itoa(i)
	}
	return all
}()

// fleet is the picture that everybody decides from. Gateways without room hold
// limit supervisors, the others one fewer. It is not changed: who counts does so in a copy.
type fleet struct {
	ids    []string
	counts []int          // by position in ids
	loads  map[string]int // the same by ID
	live   int            // all but the one that is being placed, with whom the cap is limit
}

// newFleet makes n gateways, percent of them, rounded up, without room; but
// one has room unless percent is 100.
func newFleet(n, percent int) *fleet {
	full := n
	if percent < 100 {
		full = min((percent*n+99)/100, n-1)
	}
	f := &fleet{ids: make([]string, n), counts: make([]int, n), loads: make(map[string]int, n), live: limit*n - 1}
	for i := range f.ids {
		f.ids[i], f.counts[i] = "gw-"+strconv.Itoa(i), limit
		if i >= full {
			f.counts[i]--
		}
		f.loads[f.ids[i]] = f.counts[i]
	}
	return f
}

// room reports whether a gateway is below the cap.
func (f *fleet) room(id string) bool { return f.loads[id] < limit }

// last is where every search for room ends that a library leaves unfinished:
// anybody with room, and if there is nobody, the owner.
func (f *fleet) last(owner string) string {
	for i, n := range f.counts {
		if n < limit {
			return f.ids[i]
		}
	}
	return owner
}

// rehash honours the cap on top of a library that has an owner for every key,
// and no order after it: it asks for the member with a suffix, as many times as there are
// gateways.
func (f *fleet) rehash(lookup place) place {
	return func(member string) string {
		owner := lookup(member)
		if f.room(owner) {
			return owner
		}
		for try := range f.ids {
			if id := lookup(member + "#" + strconv.Itoa(try)); f.room(id) {
				return id
			}
		}
		return f.last(owner)
	}
}
