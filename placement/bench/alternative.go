// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"sync"
)

// place chooses a gateway for a member.
type place func(member string) (gateway string)

// maker prepares a place for a fleet.
type maker func(*fleet) (place, error)

// keeper prepares a place that keeps what it chose for the member, who counts there until
// end gives it up. A member has one place: if it is placed again, the one before is given
// up. Both are for many goroutines.
type keeper func(*fleet) (reserve place, end func(member string), err error)

// The jobs.
const (
	jobOwner   = "owner"   // whose is the member, loads left out
	jobCapped  = "capped"  // a gateway below the cap
	jobReserve = "reserve" // that, and keep the member's place there, and give it up again by the member's ID
)

// alternative is something that somebody could place members with. A job that
// it cannot do is nil.
type alternative struct {
	name  string
	keyed bool // it goes by the member: asked again the answer is the same, and others get others
	soft  bool // it may choose a gateway at the cap although another has room
	list  bool // it keeps a list of the gateways with room, and never looks for one

	owner, capped maker
	keep          keeper
}

const (
	ours  = "evenring" // the others are measured against it
	floor = "floor"    // no alternative: what none can go below
)

var alternatives = []alternative{
	{name: floor, keyed: true, soft: true, owner: floorOwner, capped: floorOwner, keep: floorKeep},
	{name: ours, keyed: true, owner: evenringOwner, capped: evenringPlace, keep: evenringKeep},
	{name: "buraksezer", keyed: true, owner: buraksezerOwner, capped: buraksezerCapped, keep: buraksezerKeep},
	{name: "lafikl-shape", keyed: true, owner: circleOwner, capped: circleCapped, keep: circleKeep},
	{name: "groupcache", keyed: true, owner: groupcacheOwner, capped: rehashed(groupcacheOwner)},
	{name: "serialx", keyed: true, owner: serialxOwner, capped: serialxCapped},
	{name: "authzed", keyed: true, owner: authzedOwner, capped: authzedCapped},
	{name: "rendezvous", keyed: true, owner: rendezvousOwner, capped: rehashed(rendezvousOwner)},
	{name: "maglev", keyed: true, owner: maglevOwner, capped: rehashed(maglevOwner)},
	{name: "maglev-free-list", keyed: true, list: true, owner: maglevOwner, capped: freeListCapped, keep: freeListKeep},
	{name: "least-loaded", capped: leastLoaded},
	{name: "two-choices", soft: true, capped: twoChoices},
}

// find returns the alternative of that name.
func find(name string) alternative {
	return alternatives[slices.IndexFunc(alternatives, func(a alternative) bool { return a.name == name })]
}

// make returns how it does a job, or nil.
func (a alternative) make(job string) maker {
	switch job {
	case jobOwner:
		return a.owner
	case jobCapped:
		return a.capped
	default:
		return a.keep.reserve()
	}
}

// reserve makes a job=reserve of it, or nil of nil.
func (k keeper) reserve() maker {
	if k == nil {
		return nil
	}
	return func(f *fleet) (place, error) {
		reserve, end, err := k(f)
		return func(member string) string {
			id := reserve(member)
			end(member)
			return id
		}, err
	}
}

// rival reports whether it does the whole of a job, as ours does: a member that
// comes again is sent where it was sent before, and to a gateway with room if there is one.
func (a alternative) rival(job string) bool {
	return a.name != ours && a.make(job) != nil && a.keyed && (job == jobOwner || !a.soft)
}

// rehashed makes a job=capped of a job=owner.
func rehashed(owner maker) maker {
	return func(f *fleet) (place, error) {
		lookup, err := owner(f)
		return f.rehash(lookup), err
	}
}

// perSize builds a library's table once for each number of gateways: some take long.
func perSize[T any](build func(ids []string) (T, error)) func(ids []string) (T, error) {
	var mu sync.Mutex
	built := map[int]func() (T, error){}
	return func(ids []string) (T, error) {
		mu.Lock()
		once := built[len(ids)]
		if once == nil {
			once = sync.OnceValues(func() (T, error) { return build(ids) })
			built[len(ids)] = once
		}
		mu.Unlock()
		return once()
	}
}
