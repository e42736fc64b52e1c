// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/crypto/blake2b"
)

// circle is a stand-in for lafikl/consistent, which cannot be had from the
// module proxy. It has that library's shape: points sorted on a circle, ten for each
// host, a map from point to host and one from host to load, a lock for
// reading and writing, and a walk from the key to the first host below the bound.
//
// It hashes as the library does, with BLAKE2b, and is stricter than that in one way: it bounds at
// the even share, which is what is asked for here, where the library allows a quarter more.
type circle struct {
	mu     sync.RWMutex
	points []uint64 // ascending
	hosts  map[uint64]string
	loads  map[string]*int
	total  int
}

func newCircle(f *fleet) *circle {
	c := &circle{hosts: map[uint64]string{}, loads: map[string]*int{}, total: f.live}
	for i, id := range f.ids {
		load := f.counts[i]
		c.loads[id] = &load
		for n := range 10 {
			c.hosts[hash(id+strconv.Itoa(n))] = id
		}
	}
	for point := range c.hosts {
		c.points = append(c.points, point)
	}
	slices.Sort(c.points)
	return c
}

// hash is a key's point.
func hash(key string) uint64 {
	sum := blake2b.Sum512([]byte(key))
	return binary.LittleEndian.Uint64(sum[:])
}

func (c *circle) start(key string) int {
	i, _ := slices.BinarySearch(c.points, hash(key))
	if i == len(c.points) {
		return 0
	}
	return i
}

// Get returns the key's owner.
func (c *circle) Get(key string) string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.hosts[c.points[c.start(key)]]
}

// GetLeast returns the first host from the key on that may take one more, or the key's owner.
func (c *circle) GetLeast(key string) string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	start := c.start(key)
	for i := start; ; {
		host := c.hosts[c.points[i]]
		if c.fits(host) {
			return host
		}
		if i++; i == len(c.points) {
			i = 0
		}
		if i == start {
			return c.hosts[c.points[start]]
		}
	}
}

// fits reports whether the host stays within the even share, rounded up, with one more. The library, too,
// works the bound out for each host that it comes to.
func (c *circle) fits(host string) bool {
	bound := math.Ceil(float64(c.total+1) / float64(len(c.loads)))
	return float64(*c.loads[host]+1) <= bound
}

// Inc counts one more for the host.
func (c *circle) Inc(host string) { c.add(host, 1) }

// Done counts one fewer for the host.
func (c *circle) Done(host string) { c.add(host, -1) }

func (c *circle) add(host string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if load := c.loads[host]; load != nil {
		*load += n
		c.total += n
	}
}

func circleOwner(f *fleet) (place, error) { return newCircle(f).Get, nil }

func circleCapped(f *fleet) (place, error) { return newCircle(f).GetLeast, nil }

func circleKeep(f *fleet) (place, func(string), error) {
	c := newCircle(f)
	var kept records
	end := func(member string) {
		if id, ok := kept.end(member); ok {
			c.Done(id)
		}
	}
	return func(member string) string {
		end(member)
		id := c.GetLeast(member)
		c.Inc(id)
		kept.keep(member, id)
		return id
	}, end, nil
}

// records say who was placed where, as one must know in order to count them
// out again; ours does so itself. The zero value is empty.
type records struct {
	mu    sync.Mutex
	where map[string]string
}

func (r *records) keep(member, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.where == nil {
		r.where = make(map[string]string)
	}
	r.where[member] = id
}

func (r *records) end(member string) (id string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id, ok = r.where[member]
	delete(r.where, member)
	return id, ok
}
