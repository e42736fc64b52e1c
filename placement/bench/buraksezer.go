// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"sync"

	"github.com/buraksezer/consistent"
	"github.com/cespare/xxhash/v2"
)

// text is an ID for the libraries that want a method.
type text string

func (t text) String() string { return string(t) }
func (t text) Key() string    { return string(t) }

type hasher struct{}

func (hasher) Sum64(data []byte) uint64 { return xxhash.Sum64(data) }

// buraksezerOf uses the library as its README does, with the number of slots that ours has.
var buraksezerOf = perSize(func(ids []string) (*consistent.Consistent, error) {
	all := make([]consistent.Member, len(ids))
	for i, id := range ids {
		all[i] = text(id)
	}
	return consistent.New(all, consistent.Config{Hasher: hasher{}, PartitionCount: 4099, ReplicationFactor: 20, Load: 1.25}), nil
})

func buraksezerOwner(f *fleet) (place, error) {
	c, err := buraksezerOf(f.ids)
	return func(member string) string { return c.LocateKey([]byte(member)).String() }, err
}

// withRoom is what the library's bounded loads suggest, and do not do: they
// bound the partitions of a gateway, and it is for the caller to bound its members.
func withRoom(c *consistent.Consistent, loads map[string]int, member string) string {
	key := []byte(member)
	owner := c.LocateKey(key).String()
	if loads[owner] < limit {
		return owner
	}
	closest, err := c.GetClosestN(key, len(loads)) // in one go: it sorts all of them for any number
	if err != nil {
		return owner
	}
	for _, id := range closest {
		if id := id.String(); loads[id] < limit {
			return id
		}
	}
	return owner
}

func buraksezerCapped(f *fleet) (place, error) {
	c, err := buraksezerOf(f.ids)
	return func(member string) string { return withRoom(c, f.loads, member) }, err
}

func buraksezerKeep(f *fleet) (place, func(string), error) {
	c, err := buraksezerOf(f.ids)
	var mu sync.Mutex
	loads := maps.Clone(f.loads)
	where := make(map[string]string)
	end := func(member string) {
		if id, ok := where[member]; ok {
			loads[id]--
			delete(where, member)
		}
	}
	return func(member string) string {
		mu.Lock()
		end(member)
		id := withRoom(c, loads, member)
		loads[id]++
		where[member] = id
		mu.Unlock()
		return id
	}, func(member string) { mu.Lock(); end(member); mu.Unlock() }, err
}
