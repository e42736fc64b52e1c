// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
)

// serviceAddress is where supervisors dial. Nobody listens there: the network
// leads to one of the gateways, as kube-proxy does on every node.
const serviceAddress = "gateways:1"

// network is what lies between the supervisors of one host and the gateways.
type network struct {
	backends []string

	mu    sync.Mutex
	conns map[*conn]struct{}
}

// conn is a connection that its network can cut.
type conn struct {
	net.Conn
	network *network
}

func newNetwork(backends []string) *network {
	return &network{backends: backends, conns: make(map[*conn]struct{})}
}

// dial connects what is dialled at the Service to one of the backends, at
// random, and everything else where it was dialled.
func (n *network) dial(ctx context.Context, address string) (net.Conn, error) {
	if address == serviceAddress {
		address = n.backends[rand.IntN(len(n.backends))]
	}
	var tcp net.Dialer
	inner, err := tcp.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	c := &conn{inner, n}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conns[c] = struct{}{}
	return c, nil
}

// cut breaks every connection, without a goodbye from either side.
func (n *network) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.conns {
		_ = c.Conn.Close()
	}
}

// Close implements [net.Conn].
func (c *conn) Close() error {
	c.network.mu.Lock()
	delete(c.network.conns, c)
	c.network.mu.Unlock()
	return c.Conn.Close()
}
