// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

var evenringOf = perSize(func(ids []string) (*ring.Ring, error) {
	all := make([]ring.GatewayID, len(ids))
	for i, id := range ids {
		all[i] = ring.GatewayID(id)
	}
	return ring.New(ring.Config{}, all...)
})

// picture is the fleet as placement sees it.
func picture(f *fleet) (placement.Picture, error) {
	circle, err := evenringOf(f.ids)
	p := placement.Picture{Self: "gw-0", Ring: circle, Live: f.live, Gateways: make([]placement.Gateway, len(f.ids))}
	for i, id := range f.ids {
		p.Gateways[i] = placement.Gateway{
			ID: ring.GatewayID(id), Endpoint: id + ":1", State: placement.Ready, Known: true,
			Counts: placement.Counts{Attached: f.counts[i]},
		}
	}
	return p, err
}

func evenringOwner(f *fleet) (place, error) {
	circle, err := evenringOf(f.ids)
	return func(member string) string {
		id, _ := circle.Owner(ring.MemberID(member))
		return string(id)
	}, err
}

func evenringPlace(f *fleet) (place, error) {
	p, err := picture(f)
	view := placement.NewView(p)
	return func(member string) string {
		return string(view.Place(placement.Request{Member: ring.MemberID(member)}).Gateway)
	}, err
}

func evenringKeep(f *fleet) (place, func(string), error) {
	p, err := picture(f)
	book := placement.NewBook(p)
	expires := time.Unix(1, 0)
	return func(member string) string {
		return string(book.Reserve(placement.Request{Member: ring.MemberID(member)}, expires).Gateway)
	}, func(member string) { book.End(ring.MemberID(member)) }, err
}
