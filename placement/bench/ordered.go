// SPDX-License-Identifier: Apache-2.0

package main

import (
	"iter"
	"math"

	"github.com/authzed/consistent/hashring"
	"github.com/cespare/xxhash/v2"
	serialx "github.com/serialx/hashring"
)

// The libraries here know an order of gateways after the owner, and give its first n.

// growing yields how many to ask for: four times as many each time, for few
// are cheap and the first often has room.
func growing(most int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for n := min(4, most); yield(n) && n < most; n = min(4*n, most) {
		}
	}
}

// serialxOf has one point for each gateway, the library's default, and the quickest.
var serialxOf = perSize(func(ids []string) (*serialx.HashRing, error) { return serialx.New(ids), nil })

func serialxOwner(f *fleet) (place, error) {
	r, err := serialxOf(f.ids)
	return func(member string) string {
		id, _ := r.GetNode(member)
		return id
	}, err
}

func serialxCapped(f *fleet) (place, error) {
	r, err := serialxOf(f.ids)
	return func(member string) string {
		owner, _ := r.GetNode(member)
		if f.room(owner) {
			return owner
		}
		seen := 1
		for n := range growing(len(f.ids)) {
			ids, ok := r.GetNodes(member, n)
			if !ok {
				break
			}
			for _, id := range ids[seen:] {
				if f.room(id) {
					return id
				}
			}
			seen = n
		}
		return f.last(owner)
	}, err
}

// authzedOf has twenty points for each gateway, and ten in the largest fleet. The
// default of 100 would take half a minute to build there: it sorts them anew with every gateway.
var authzedOf = perSize(func(ids []string) (*hashring.Ring, error) {
	points := uint16(20)
	if len(ids) > 1000 {
		points = 10
	}
	r, err := hashring.New(xxhash.Sum64, points)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if err := r.Add(text(id)); err != nil {
			return nil, err
		}
	}
	return r, nil
})

func authzedOwner(f *fleet) (place, error) {
	r, err := authzedOf(f.ids)
	return func(member string) string { return first(r, []byte(member)) }, err
}

func first(r *hashring.Ring, key []byte) string {
	found, err := r.FindN(key, 1)
	if err != nil {
		return ""
	}
	return found[0].Key()
}

// authzedCapped ends after 255 gateways: the library counts them in eight bits.
func authzedCapped(f *fleet) (place, error) {
	r, err := authzedOf(f.ids)
	most := min(len(f.ids), math.MaxUint8)
	return func(member string) string {
		key := []byte(member)
		owner := first(r, key)
		if f.room(owner) {
			return owner
		}
		seen := 1
		for n := range growing(most) {
			found, err := r.FindN(key, uint8(n))
			if err != nil {
				break
			}
			for _, g := range found[seen:] {
				if id := g.Key(); f.room(id) {
					return id
				}
			}
			seen = n
		}
		return f.last(owner)
	}, err
}
