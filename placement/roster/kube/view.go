// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"maps"
	"slices"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/ring"
)

// view is what the slices say, and what the replica has been told of it. It is
// pure: time is an argument.
type view struct {
	self      ring.GatewayID
	port      string
	settle    time.Duration
	tolerance time.Duration

	listed  bool // there has been a list
	known   bool // one has had this gateway
	slices  map[string]*discoveryv1.EndpointSlice
	now     reading
	missing map[ring.GatewayID]time.Time // listed until then, for settle longer

	failure  error // why the slices cannot be relied on; nil: they can
	failedAt time.Time

	told        *roster.Discovered // the last list; nil: none
	toldFailure bool               // and that has been told since
}

func newView(cfg Config) *view {
	return &view{
		self: cfg.Gateway, port: cfg.Port, settle: cfg.Settle, tolerance: cfg.Tolerance,
		slices:  make(map[string]*discoveryv1.EndpointSlice),
		missing: make(map[ring.GatewayID]time.Time),
	}
}

// replace takes a whole list.
func (v *view) replace(now time.Time, list []*discoveryv1.EndpointSlice) {
	clear(v.slices)
	for _, slice := range list {
		v.slices[slice.Name] = slice
	}
	v.listed = true
	v.restored(now)
	v.read(now)
}

// put takes one slice, new or changed.
func (v *view) put(now time.Time, slice *discoveryv1.EndpointSlice) {
	v.slices[slice.Name] = slice
	v.read(now)
}

// drop takes that a slice is no more.
func (v *view) drop(now time.Time, name string) {
	delete(v.slices, name)
	v.read(now)
}

func (v *view) read(now time.Time) {
	before := v.now.peers
	v.now = read(v.slices, v.port)
	for id := range before {
		if _, still := v.now.peers[id]; !still {
			v.missing[id] = now
		}
	}
	for id := range v.now.peers {
		delete(v.missing, id)
		v.known = v.known || id == v.self
	}
}

// failed takes that the API server has failed.
func (v *view) failed(now time.Time, err error) {
	if v.failure == nil {
		v.failedAt = now
	}
	v.failure = err
}

// restored takes that the slices can be relied on again. Whoever was missing
// may have come back meanwhile, and gets the whole time anew.
func (v *view) restored(now time.Time) {
	if v.failure == nil {
		return
	}
	v.failure = nil
	for id := range v.missing {
		v.missing[id] = now
	}
}

// next returns what the replica is to be told now; nil: nothing more.
func (v *view) next(now time.Time) roster.Event {
	if v.failure != nil {
		if v.toldFailure || v.listed && now.Before(v.failedAt.Add(v.tolerance)) {
			return nil
		}
		v.toldFailure = true
		return roster.DiscoveryFailed{Err: v.failure}
	}
	if !v.listed {
		return nil
	}
	maps.DeleteFunc(v.missing, func(_ ring.GatewayID, since time.Time) bool { return !now.Before(since.Add(v.settle)) })
	list := roster.Discovered{Partial: !v.known || v.now.nameless > 0}
	list.Gateways = slices.AppendSeq(slices.Collect(maps.Keys(v.now.peers)), maps.Keys(v.missing))
	slices.Sort(list.Gateways)
	if last := v.told; last != nil && !v.toldFailure && last.Partial == list.Partial && slices.Equal(last.Gateways, list.Gateways) {
		return nil
	}
	v.told, v.toldFailure = &list, false
	list.Gateways = slices.Clone(list.Gateways) // the event is the replica's
	return list
}

// due is when next may have something to say though nothing happens; zero: never.
func (v *view) due() time.Time {
	if v.failure != nil {
		if v.toldFailure {
			return time.Time{}
		}
		return v.failedAt.Add(v.tolerance)
	}
	var first time.Time
	for _, since := range v.missing {
		if at := since.Add(v.settle); first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// peers returns every peer, in the order of their IDs.
func (v *view) peers() []Peer {
	return slices.SortedFunc(maps.Values(v.now.peers), func(a, b Peer) int { return cmp.Compare(a.Gateway, b.Gateway) })
}
