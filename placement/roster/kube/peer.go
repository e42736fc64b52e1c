// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"maps"
	"net"
	"slices"
	"strconv"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/evenring/evenring/ring"
)

// Peer is one gateway as the slices have it: one pod, however many address
// families and slices it is in.
type Peer struct {
	// Gateway is the name of the pod that the endpoint refers to, or else its
	// hostname.
	Gateway ring.GatewayID
	// Addresses are hosts with the port named [Config.Port], the IPv4 ones
	// first. Empty if no slice has that port for this pod.
	Addresses []string

	Ready       bool // to be sent clients, by the Service's rules; unknown counts as ready
	Serving     bool // passes its readiness probe, even if it is terminating
	Terminating bool // is being deleted, and may serve until it is gone
}

// reading is what a set of slices says.
type reading struct {
	peers    map[ring.GatewayID]Peer
	nameless int // endpoints that say neither pod nor hostname
}

// read puts slices together.
func read(all map[string]*discoveryv1.EndpointSlice, port string) reading {
	r := reading{peers: make(map[ring.GatewayID]Peer)}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		slice := all[name]
		number := portOf(slice, port)
		for _, e := range slice.Endpoints {
			id := gatewayOf(e)
			if id == "" {
				r.nameless++
				continue
			}
			p := Peer{Gateway: id, Ready: true}
			if c := e.Conditions; c.Ready != nil {
				p.Ready = *c.Ready
			}
			p.Serving = p.Ready
			if c := e.Conditions; c.Serving != nil {
				p.Serving = *c.Serving
			}
			if c := e.Conditions; c.Terminating != nil {
				p.Terminating = *c.Terminating
			}
			if number != "" {
				for _, host := range e.Addresses {
					p.Addresses = append(p.Addresses, net.JoinHostPort(host, number))
				}
			}
			if known, ok := r.peers[id]; ok {
				p = known.and(p)
			}
			r.peers[id] = p
		}
	}
	for _, p := range r.peers {
		slices.SortFunc(p.Addresses, byFamily)
	}
	return r
}

// gatewayOf names the gateway behind an endpoint; empty: it has no name.
func gatewayOf(e discoveryv1.Endpoint) ring.GatewayID {
	if ref := e.TargetRef; ref != nil && ref.Kind == "Pod" && ref.Name != "" {
		return ring.GatewayID(ref.Name)
	}
	if e.Hostname != nil {
		return ring.GatewayID(*e.Hostname)
	}
	return ""
}

// portOf returns the number of the port with that name; empty: there is none.
func portOf(slice *discoveryv1.EndpointSlice, name string) string {
	for _, p := range slice.Ports {
		if p.Name != nil && *p.Name == name && p.Port != nil {
			return strconv.Itoa(int(*p.Port))
		}
	}
	return ""
}

// and returns what two endpoints of one name say together. Usually they are one
// pod's addresses; for a moment they may be an old pod that is still terminating and
// the new one of its name.
func (p Peer) and(q Peer) Peer {
	for _, address := range q.Addresses {
		if !slices.Contains(p.Addresses, address) {
			p.Addresses = append(p.Addresses, address)
		}
	}
	p.Ready = p.Ready || q.Ready
	p.Serving = p.Serving || q.Serving
	p.Terminating = p.Terminating && q.Terminating
	return p
}

// byFamily puts IPv4 first, where gossip listens by default.
func byFamily(a, b string) int {
	return cmp.Or(cmp.Compare(family(a), family(b)), cmp.Compare(a, b))
}

func family(address string) int {
	host, _, _ := net.SplitHostPort(address)
	if ip := net.ParseIP(host); ip != nil && ip.To4() == nil {
		return 6
	}
	return 4
}
