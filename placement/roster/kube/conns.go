// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"net"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// conns are the connections of one discovery, to end with it. client-go shares
// its transports, and would keep them for a while.
type conns struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu     sync.Mutex
	open   map[*conn]struct{}
	closed bool
}

// track makes a client's connections known.
func track(client *rest.Config) *conns {
	c := &conns{dial: client.Dial, open: make(map[*conn]struct{})}
	if c.dial == nil {
		c.dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext // as client-go does
	}
	client.Dial = c.connect
	return c
}

func (c *conns) connect(ctx context.Context, network, address string) (net.Conn, error) {
	made, err := c.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_ = made.Close()
		return nil, ErrClosed
	}
	one := &conn{made, c}
	c.open[one] = struct{}{}
	return one, nil
}

// close ends all connections, also those that are still being made.
func (c *conns) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for one := range c.open {
		_ = one.Conn.Close()
	}
	clear(c.open)
}

// conn is one of them.
type conn struct {
	net.Conn
	all *conns
}

// Close implements [net.Conn].
func (c *conn) Close() error {
	c.all.mu.Lock()
	delete(c.all.open, c)
	c.all.mu.Unlock()
	return c.Conn.Close()
}
