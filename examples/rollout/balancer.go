// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// probePeriod is how often the balancer asks a backend whether it is ready.
const probePeriod = 100 * time.Millisecond

// balancer is the Service: it listens on one address and hands each
// connection to one backend that is ready, at random, as kube-proxy does. It
// knows nothing of what the connections carry.
type balancer struct {
	listener net.Listener
	client   http.Client

	mu       sync.Mutex
	rnd      *rand.Rand
	backends map[string]*backend // by ID
	conns    map[net.Conn]struct{}
	closed   bool
	work     sync.WaitGroup
}

type backend struct {
	address string
	probe   string // URL; 200 means ready
	ready   bool
	stop    context.CancelFunc
}

func newBalancer(seed uint64) (*balancer, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &balancer{
		listener: l, client: http.Client{Timeout: time.Second},
		rnd: rand.New(rand.NewPCG(seed, 1)), backends: make(map[string]*backend), conns: make(map[net.Conn]struct{}),
	}
	b.work.Go(b.accept)
	return b, nil
}

// address is where supervisors dial.
func (b *balancer) address() string { return b.listener.Addr().String() }

// add makes a backend known. It takes connections while its probe says that it is ready.
func (b *balancer) add(id, address, ops string) {
	ctx, cancel := context.WithCancel(context.Background())
	be := &backend{address: address, probe: "http://" + ops + "/readyz", stop: cancel}
	b.mu.Lock()
	b.backends[id] = be
	b.mu.Unlock()
	b.work.Go(func() { b.watch(ctx, be) })
}

// remove forgets a backend. Its connections live on.
func (b *balancer) remove(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if be := b.backends[id]; be != nil {
		be.stop()
		delete(b.backends, id)
	}
}

// ready returns how many backends take connections.
func (b *balancer) ready() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, be := range b.backends {
		if be.ready {
			n++
		}
	}
	return n
}

// close ends everything and waits for it.
func (b *balancer) close() {
	_ = b.listener.Close()
	b.mu.Lock()
	b.closed = true
	for _, be := range b.backends {
		be.stop()
	}
	for c := range b.conns {
		_ = c.Close()
	}
	b.mu.Unlock()
	b.work.Wait()
	b.client.CloseIdleConnections()
}

func (b *balancer) watch(ctx context.Context, be *backend) {
	tick := time.NewTicker(probePeriod)
	defer tick.Stop()
	for {
		ready := b.probe(ctx, be.probe)
		b.mu.Lock()
		be.ready = ready
		b.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (b *balancer) probe(ctx context.Context, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := b.client.Do(req)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// pick returns the address of a ready backend, at random; "" if there is none.
func (b *balancer) pick() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var ready []string
	for _, id := range slices.Sorted(maps.Keys(b.backends)) { // so that a seed says it all
		if be := b.backends[id]; be.ready {
			ready = append(ready, be.address)
		}
	}
	if len(ready) == 0 {
		return ""
	}
	return ready[b.rnd.IntN(len(ready))]
}

// dial connects to one backend that is ready, at random, without passing
// through here: a caller's many bytes need not be copied. The address is that of the Service.
func (b *balancer) dial(ctx context.Context, _ string) (net.Conn, error) {
	address := b.pick()
	if address == "" {
		return nil, errors.New("no gateway is ready")
	}
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}

func (b *balancer) accept() {
	for {
		c, err := b.listener.Accept()
		if err != nil {
			return
		}
		b.work.Go(func() { b.forward(c) })
	}
}

// forward copies both ways until both directions have ended.
func (b *balancer) forward(client net.Conn) {
	if !b.track(client) {
		return
	}
	defer b.untrack(client)
	address := b.pick()
	if address == "" {
		return
	}
	server, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil || !b.track(server) {
		return
	}
	defer b.untrack(server)
	var both sync.WaitGroup
	both.Go(func() { pipe(server, client) })
	both.Go(func() { pipe(client, server) })
	both.Wait()
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

// track notes a connection so that close ends it; false: the balancer is
// closed already, and so is the connection now.
func (b *balancer) track(c net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		_ = c.Close()
		return false
	}
	b.conns[c] = struct{}{}
	return true
}

func (b *balancer) untrack(c net.Conn) {
	_ = c.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.conns, c)
}
