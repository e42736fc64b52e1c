// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"sync"

	"github.com/cespare/xxhash/v2"
)

// The alternative here knows one gateway for a key, as the rehashed ones do, and keeps
// a list of the gateways with room beside it, so that nobody has to be looked for.

// freeList is that list, with the counts that it follows from. It is kept in the order of the
// gateways: a change costs moving what comes after, and in return the list is the same
// however the fleet came to be so. Who is picked still moves with nearly every change of
// the list, since its length and the positions in it do.
type freeList struct {
	index  map[string]int // position of a gateway in counts
	counts []int
	free   []int // ascending positions of gateways below the cap
}

func newFreeList(f *fleet) *freeList {
	l := &freeList{index: make(map[string]int, len(f.ids)), counts: slices.Clone(f.counts)}
	for i, id := range f.ids {
		l.index[id] = i
		if l.counts[i] < limit {
			l.free = append(l.free, i)
		}
	}
	return l
}

// pick returns the owner's position if it has room or nobody has; otherwise
// that of a gateway with room, by the member.
func (l *freeList) pick(owner, member string) int {
	i := l.index[owner]
	if l.counts[i] < limit || len(l.free) == 0 {
		return i
	}
	return l.free[xxhash.Sum64String(member)%uint64(len(l.free))]
}

// inc counts one more at i.
func (l *freeList) inc(i int) {
	if l.counts[i]++; l.counts[i] == limit {
		at, _ := slices.BinarySearch(l.free, i)
		l.free = slices.Delete(l.free, at, at+1)
	}
}

// done counts one fewer at i.
func (l *freeList) done(i int) {
	if l.counts[i]--; l.counts[i] == limit-1 {
		at, _ := slices.BinarySearch(l.free, i)
		l.free = slices.Insert(l.free, at, i)
	}
}

func freeListCapped(f *fleet) (place, error) {
	lookup, err := maglevOwner(f)
	l := newFreeList(f)
	return func(member string) string { return f.ids[l.pick(lookup(member), member)] }, err
}

func freeListKeep(f *fleet) (place, func(string), error) {
	lookup, err := maglevOwner(f)
	var mu sync.Mutex
	l := newFreeList(f)
	where := make(map[string]int)
	end := func(member string) {
		if i, ok := where[member]; ok {
			l.done(i)
			delete(where, member)
		}
	}
	return func(member string) string {
		owner := lookup(member) // it has a lock of its own

		mu.Lock()
		end(member)
		i := l.pick(owner, member)
		l.inc(i)
		where[member] = i
		mu.Unlock()
		return f.ids[i]
	}, func(member string) { mu.Lock(); end(member); mu.Unlock() }, err
}
