// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net"
	"sync"
	"time"
)

// weather is what becomes of a new connection through a relay.
type weather uint8

const (
	fair       weather = iota
	refusing           // it is reset
	swallowing         // it is taken and nothing comes of it, until the weather changes
)

// relay listens on an address of its own and passes each connection on. It
// knows nothing of what the connections carry, and breaks them if told to.
type relay struct {
	listener net.Listener
	to       func() string // where the next connection goes; empty: nowhere

	mu     sync.Mutex
	now    weather
	change chan struct{} // closed when the weather changes
	conns  map[net.Conn]struct{}
	pairs  map[*pair]struct{}
	closed bool
	work   sync.WaitGroup
}

// pair is both ends of a connection that is passed on.
type pair struct{ client, server net.Conn }

func newRelay(to func() string) (*relay, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return relayOn(l, to), nil
}

// relayOn takes connections at once.
func relayOn(l net.Listener, to func() string) *relay {
	r := &relay{
		listener: l, to: to, change: make(chan struct{}),
		conns: make(map[net.Conn]struct{}), pairs: make(map[*pair]struct{}),
	}
	r.work.Go(r.accept)
	return r
}

// address is where to dial it.
func (r *relay) address() string { return r.listener.Addr().String() }

// set changes the weather. Connections that were swallowed until now are reset.
func (r *relay) set(w weather) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = w
	close(r.change)
	r.change = make(chan struct{})
}

// cut resets every connection for which chosen says so, at both ends, and returns how many.
func (r *relay) cut(chosen func() bool) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for p := range r.pairs {
		if chosen() {
			reset(p.client)
			reset(p.server)
			n++
		}
	}
	return n
}

// reset ends a connection without a word.
func reset(c net.Conn) {
	if c, ok := c.(interface{ SetLinger(sec int) error }); ok {
		_ = c.SetLinger(0)
	}
	_ = c.Close()
}

// close ends everything and waits for it.
func (r *relay) close() {
	_ = r.listener.Close()
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		close(r.change)
	}
	for c := range r.conns {
		_ = c.Close()
	}
	r.mu.Unlock()
	r.work.Wait()
}

func (r *relay) accept() {
	for {
		c, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.work.Go(func() { r.forward(c) })
	}
}

// forward copies both ways until both directions have ended.
func (r *relay) forward(client net.Conn) {
	if !r.track(client) {
		return
	}
	defer r.untrack(client)
	if now, change := r.outlook(); now != fair {
		if now == swallowing {
			<-change
		}
		reset(client)
		return
	}
	address := r.to()
	if address == "" {
		return
	}
	server, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil || !r.track(server) {
		return
	}
	defer r.untrack(server)
	defer r.join(&pair{client, server})()
	var both sync.WaitGroup
	both.Go(func() { pipe(server, client) })
	both.Go(func() { pipe(client, server) })
	both.Wait()
}

// outlook returns the weather, and what is closed when it changes.
func (r *relay) outlook() (weather, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now, r.change
}

// join makes a pair known to cut until the returned function is called.
func (r *relay) join(p *pair) (part func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pairs[p] = struct{}{}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.pairs, p)
	}
}

// pipe copies one direction and passes its end on. An end with an error, as a
// reset is, ends the other direction too.
func pipe(to, from net.Conn) {
	if _, err := io.Copy(to, from); err != nil {
		_ = from.Close()
		_ = to.Close()
		return
	}
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

// track notes a connection so that close ends it; false: the relay is closed
// already, and so is the connection now.
func (r *relay) track(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		_ = c.Close()
		return false
	}
	r.conns[c] = struct{}{}
	return true
}

func (r *relay) untrack(c net.Conn) {
	_ = c.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, c)
}
