// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/ring"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// at returns the time n seconds on.
func at(n float64) time.Time { return epoch.Add(time.Duration(n * float64(time.Second))) }

func sliceWith(name string, pods ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, p := range pods {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: p}})
	}
	return s
}

// listed is a complete list.
func listed(ids ...ring.GatewayID) roster.Event { return roster.Discovered{Gateways: ids} }

// all returns everything that there is to be told at a time.
func (v *view) all(now time.Time) (told []roster.Event) {
	for ev := v.next(now); ev != nil; ev = v.next(now) {
		told = append(told, ev)
	}
	return told
}

func TestView(t *testing.T) {
	down := errors.New("down")
	failed := roster.DiscoveryFailed{Err: down}
	type step struct {
		at   float64
		do   func(v *view, now time.Time)
		want []roster.Event
		due  float64 // 0: never
	}
	whole := func(list ...*discoveryv1.EndpointSlice) func(*view, time.Time) {
		return func(v *view, now time.Time) { v.replace(now, list) }
	}
	put := func(s *discoveryv1.EndpointSlice) func(*view, time.Time) {
		return func(v *view, now time.Time) { v.put(now, s) }
	}
	drop := func(name string) func(*view, time.Time) {
		return func(v *view, now time.Time) { v.drop(now, name) }
	}
	fail := func(v *view, now time.Time) { v.failed(now, down) }
	restore := func(v *view, now time.Time) { v.restored(now) }
	wait := func(*view, time.Time) {}
	one := func(ev roster.Event) []roster.Event { return []roster.Event{ev} }

	for name, steps := range map[string][]step{
		"nothing is known": {
			{0, wait, nil, 0},
			{100, wait, nil, 0},
		},
		"who comes is told at once, who goes after Settle": {
			{0, whole(sliceWith("s", "a", "b")), one(listed("a", "b")), 0},
			{1, put(sliceWith("s", "a", "b", "c")), one(listed("a", "b", "c")), 0},
			{2, put(sliceWith("s", "a")), nil, 5},
			{4.9, wait, nil, 5},
			{5, wait, one(listed("a")), 0},
		},
		"a slice goes": {
			{0, whole(sliceWith("s", "a"), sliceWith("t", "b")), one(listed("a", "b")), 0},
			{1, drop("t"), nil, 4},
			{4, wait, one(listed("a")), 0},
		},
		"in two slices, and then in one": {
			{0, whole(sliceWith("s", "a", "b"), sliceWith("t", "b")), one(listed("a", "b")), 0},
			{1, drop("t"), nil, 0},
		},
		"from slice to slice": {
			{0, whole(sliceWith("s", "a", "b"), sliceWith("t")), one(listed("a", "b")), 0},
			{1, put(sliceWith("s", "a")), nil, 4},
			{2, put(sliceWith("t", "b")), nil, 0},
			{9, wait, nil, 0},
		},
		"a whole list that lacks some": {
			{0, whole(sliceWith("s", "a", "b", "c")), one(listed("a", "b", "c")), 0},
			{1, whole(sliceWith("s", "a", "d")), one(listed("a", "b", "c", "d")), 4},
			{4, wait, one(listed("a", "d")), 0},
		},
		"a short failure": {
			{0, whole(sliceWith("s", "a")), one(listed("a")), 0},
			{1, fail, nil, 11},
			{2, fail, nil, 11},
			{10, restore, nil, 0},
			{20, wait, nil, 0},
		},
		"a long failure": {
			{0, whole(sliceWith("s", "a")), one(listed("a")), 0},
			{1, fail, nil, 11},
			{11, wait, one(failed), 0},
			{12, fail, nil, 0},
			{13, restore, one(listed("a")), 0},
		},
		"a failure before there is a list": {
			{0, fail, one(failed), 0},
			{5, whole(sliceWith("s", "a")), one(listed("a")), 0},
		},
		"nobody goes during a failure, and Settle begins again after it": {
			{0, whole(sliceWith("s", "a", "b")), one(listed("a", "b")), 0},
			{1, put(sliceWith("s", "a")), nil, 4},
			{2, fail, nil, 12},
			{12, wait, one(failed), 0},
			{99, restore, one(listed("a", "b")), 102},
			{102, wait, one(listed("a")), 0},
		},
		"whoever comes during a short failure is told after it": {
			{0, whole(sliceWith("s", "a")), one(listed("a")), 0},
			{1, fail, nil, 11},
			{2, put(sliceWith("s", "a", "b")), nil, 11},
			{3, restore, one(listed("a", "b")), 0},
		},
		"a list that has not got this gateway yet": {
			{0, whole(), one(roster.Discovered{Partial: true}), 0},
			{1, put(sliceWith("s", "b")), one(roster.Discovered{Gateways: []ring.GatewayID{"b"}, Partial: true}), 0},
			{2, put(sliceWith("s", "a", "b")), one(listed("a", "b")), 0},
		},
		"a list that has it no more": {
			{0, whole(sliceWith("s", "a", "b")), one(listed("a", "b")), 0},
			{1, put(sliceWith("s", "b")), nil, 4},
			{4, wait, one(listed("b")), 0},
			{5, put(sliceWith("s", "a", "b")), one(listed("a", "b")), 0},
		},
		"a list of nobody": {
			{0, whole(sliceWith("s", "a", "b")), one(listed("a", "b")), 0},
			{1, drop("s"), nil, 4},
			{4, wait, one(listed()), 0}, // which takes nobody away, as the roster has it
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := newView(Config{Gateway: "a", Settle: 3 * time.Second, Tolerance: 10 * time.Second})
			for _, s := range steps {
				s.do(v, at(s.at))
				require.Equal(t, s.want, v.all(at(s.at)), "at %v", s.at)
				var due time.Time
				if s.due != 0 {
					due = at(s.due)
				}
				require.Equal(t, due, v.due(), "due, at %v", s.at)
			}
		})
	}
}

func TestRead(t *testing.T) {
	no, yes := new(false), new(true)
	ports := []discoveryv1.EndpointPort{{Name: new("web"), Port: new(int32(80))}, {Name: new("gossip"), Port: new(int32(7946))}}
	ref := func(name string) *corev1.ObjectReference {
		return &corev1.ObjectReference{Kind: "Pod", Name: name}
	}
	for name, row := range map[string]struct {
		ports     []discoveryv1.EndpointPort
		endpoints []discoveryv1.Endpoint
		want      []Peer
		nameless  int
	}{
		"conditions that nobody knows": {
			ports, []discoveryv1.Endpoint{{TargetRef: ref("a"), Addresses: []string{"10.0.0.1"}}},
			[]Peer{{Gateway: "a", Addresses: []string{"10.0.0.1:7946"}, Ready: true, Serving: true}}, 0,
		},
		"serving is as ready is, unless it is said": {
			nil, []discoveryv1.Endpoint{
				{TargetRef: ref("a"), Conditions: discoveryv1.EndpointConditions{Ready: no}},
				{TargetRef: ref("b"), Conditions: discoveryv1.EndpointConditions{Ready: no, Serving: yes, Terminating: yes}},
			},
			[]Peer{{Gateway: "a"}, {Gateway: "b", Serving: true, Terminating: true}}, 0,
		},
		"the old pod of that name beside the new one": {
			ports, []discoveryv1.Endpoint{
				{TargetRef: ref("a"), Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: no, Serving: no, Terminating: yes}},
				{TargetRef: ref("a"), Addresses: []string{"10.0.0.2"}},
			},
			[]Peer{{Gateway: "a", Addresses: []string{"10.0.0.1:7946", "10.0.0.2:7946"}, Ready: true, Serving: true}}, 0,
		},
		"a port of another name": {
			ports[:1], []discoveryv1.Endpoint{{TargetRef: ref("a"), Addresses: []string{"10.0.0.1"}}},
			[]Peer{{Gateway: "a", Ready: true, Serving: true}}, 0,
		},
		"a port without a number": {
			[]discoveryv1.EndpointPort{{Name: new("gossip")}, {}}, []discoveryv1.Endpoint{{TargetRef: ref("a"), Addresses: []string{"10.0.0.1"}}},
			[]Peer{{Gateway: "a", Ready: true, Serving: true}}, 0,
		},
		"names": {
			nil, []discoveryv1.Endpoint{
				{TargetRef: ref("a"), Hostname: new("h")},
				{TargetRef: &corev1.ObjectReference{Kind: "Node", Name: "n"}, Hostname: new("b")},
				{TargetRef: &corev1.ObjectReference{Kind: "Node", Name: "n"}},
				{},
			},
			[]Peer{{Gateway: "a", Ready: true, Serving: true}, {Gateway: "b", Ready: true, Serving: true}}, 2,
		},
		"families, and the same address twice": {
			ports, []discoveryv1.Endpoint{
				{TargetRef: ref("a"), Addresses: []string{"fd00::1"}},
				{TargetRef: ref("a"), Addresses: []string{"10.0.0.1"}},
				{TargetRef: ref("a"), Addresses: []string{"10.0.0.1"}},
			},
			[]Peer{{Gateway: "a", Addresses: []string{"10.0.0.1:7946", "[fd00::1]:7946"}, Ready: true, Serving: true}}, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := newView(Config{Port: "gossip"})
			s := sliceWith("s")
			s.Ports, s.Endpoints = row.ports, row.endpoints
			v.replace(epoch, []*discoveryv1.EndpointSlice{s})
			require.Equal(t, row.want, v.peers())
			require.Equal(t, row.nameless, v.now.nameless)
		})
	}
}
