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
// connection to one backend that is ready, at random, as kube-proxy does.
type balancer struct {
	*relay
	client http.Client

	known    sync.Mutex // over what follows
	rnd      *rand.Rand
	backends map[string]*backend // by ID
	watching sync.WaitGroup
}

type backend struct {
	address string
	probe   string // URL; 200 means ready
	ready   bool
	stop    context.CancelFunc
}

func newBalancer(seed uint64) (*balancer, error) {
	b := &balancer{
		client: http.Client{Timeout: time.Second}, rnd: rand.New(rand.NewPCG(seed, 1)), backends: make(map[string]*backend),
	}
	var err error
	b.relay, err = newRelay(b.pick)
	return b, err
}

// add makes a backend known. It takes connections while its probe says that it is ready.
func (b *balancer) add(id, address, ops string) {
	ctx, cancel := context.WithCancel(context.Background())
	be := &backend{address: address, probe: "http://" + ops + "/readyz", stop: cancel}
	b.known.Lock()
	b.backends[id] = be
	b.known.Unlock()
	b.watching.Go(func() { b.watch(ctx, be) })
}

// remove forgets a backend. Its connections live on.
func (b *balancer) remove(id string) {
	b.known.Lock()
	defer b.known.Unlock()
	if be := b.backends[id]; be != nil {
		be.stop()
		delete(b.backends, id)
	}
}

// ready returns how many backends take connections.
func (b *balancer) ready() int {
	b.known.Lock()
	defer b.known.Unlock()
	n := 0
	for _, be := range b.backends {
		if be.ready {
			n++
		}
	}
	return n
}

// takes reports whether a backend takes connections.
func (b *balancer) takes(id string) bool {
	b.known.Lock()
	defer b.known.Unlock()
	be := b.backends[id]
	return be != nil && be.ready
}

// close ends everything and waits for it.
func (b *balancer) close() {
	b.known.Lock()
	for _, be := range b.backends {
		be.stop()
	}
	b.known.Unlock()
	b.relay.close()
	b.watching.Wait()
	b.client.CloseIdleConnections()
}

func (b *balancer) watch(ctx context.Context, be *backend) {
	tick := time.NewTicker(probePeriod)
	defer tick.Stop()
	for {
		ready := b.probe(ctx, be.probe)
		b.known.Lock()
		be.ready = ready
		b.known.Unlock()
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
	b.known.Lock()
	defer b.known.Unlock()
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
