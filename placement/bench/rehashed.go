// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/cespare/xxhash/v2"
	"github.com/dgryski/go-rendezvous"
	"github.com/golang/groupcache/consistenthash"
	"github.com/kkdai/maglev"
)

// The libraries here know one gateway for a key, and no second one.

// groupcacheOf has the points and the hash that groupcache itself uses.
var groupcacheOf = perSize(func(ids []string) (*consistenthash.Map, error) {
	m := consistenthash.New(50, nil)
	m.Add(ids...)
	return m, nil
})

func groupcacheOwner(f *fleet) (place, error) {
	m, err := groupcacheOf(f.ids)
	return m.Get, err
}

var rendezvousOf = perSize(func(ids []string) (*rendezvous.Rendezvous, error) {
	return rendezvous.New(ids, xxhash.Sum64String), nil
})

func rendezvousOwner(f *fleet) (place, error) {
	r, err := rendezvousOf(f.ids)
	return r.Lookup, err
}

// maglevOf has a table of as many slots as ours. The usual 65537 would cost half
// a gigabyte for 1024 gateways.
var maglevOf = perSize(func(ids []string) (*maglev.Maglev, error) { return maglev.NewMaglev(ids, 4099) })

func maglevOwner(f *fleet) (place, error) {
	m, err := maglevOf(f.ids)
	return func(member string) string {
		id, err := m.Get(member)
		if err != nil {
			return ""
		}
		return id
	}, err
}
