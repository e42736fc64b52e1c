// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/evenring/evenring/placement/roster"
)

// How often other gateways are looked for, in probe intervals, and how many
// are contacted at once.
const (
	firstRetry = 1
	lastRetry  = 10
	relook     = 30 // with peers: others may have started apart, or have been cut off
	contacts   = 4
)

// rememberLost is for how long a node that died or was cut off is looked for.
// memberlist forgets it sooner, and would never find it again.
const rememberLost = time.Hour

// lost is such a node.
type lost struct {
	identity
	addr  string
	until time.Time
}

// seek looks for other gateways until the mesh is closed.
func (m *Mesh) seek() {
	if len(m.cfg.Seeds) == 0 {
		m.settle(nil)
	}
	retry := firstRetry * m.cfg.Probe
	for {
		m.look()
		wait := relook * m.cfg.Probe
		if m.wanting() {
			wait, retry = retry, min(2*retry, lastRetry*m.cfg.Probe)
		} else {
			retry = firstRetry * m.cfg.Probe
		}
		timer := time.NewTimer(wait/2 + rand.N(wait/2))
		select {
		case <-timer.C:
		case <-m.search:
		case <-m.ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// wanting reports whether there is reason to look again soon.
func (m *Mesh) wanting() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.found || len(m.peers) == 0 && len(m.cfg.Seeds)+len(m.lost) > 0
}

// look contacts every seed that is no peer yet, and everybody lost.
func (m *Mesh) look() {
	var errs []error
	var mu sync.Mutex // of errs
	fail := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, err)
	}
	seeds := m.resolveSeeds(fail)
	targets := make(chan string)
	var workers sync.WaitGroup
	for range contacts {
		workers.Go(func() {
			for addr := range targets {
				if m.isPeer(addr) {
					continue // it is, or has become one meanwhile
				}
				if _, err := m.list.Join([]string{addr}); err != nil {
					fail(err)
				}
			}
		})
	}
	for _, addr := range append(seeds, m.lostAddrs()...) {
		if m.ctx.Err() == nil {
			targets <- addr
		}
	}
	close(targets)
	workers.Wait()
	if len(m.cfg.Seeds) == 0 || m.ctx.Err() != nil {
		return
	}
	if len(errs) == 0 && len(seeds) > 0 {
		errs = append(errs, errors.New("no seed is another gateway"))
	}
	m.settle(errors.Join(errs...))
}

// settle takes the outcome of a look at the seeds: nil if they name nobody but
// this gateway, and what went wrong otherwise, which does not matter if there
// are peers.
func (m *Mesh) settle(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch alone := len(m.peers) == 0; {
	case m.closed:
	case alone && err == nil && len(m.lost) == 0, !alone && !m.found:
		m.found = true
		m.report()
		m.wakeWaiters()
	case alone && err != nil:
		m.failure = fmt.Errorf("%w: %w", ErrAlone, err)
		m.cfg.Logger.Warn("gossip: no peer found", "error", err)
		m.inbox.put(roster.DiscoveryFailed{Err: m.failure}, 0)
		m.wakeWaiters()
	}
}

// resolveSeeds returns the addresses of the seeds, in random order, without
// this gateway's own.
func (m *Mesh) resolveSeeds(fail func(error)) []string {
	own := m.ownAddrs()
	found := make(map[string]struct{})
	for _, seed := range m.cfg.Seeds {
		host, port, err := splitAddress(seed)
		if err != nil {
			fail(err)
			continue
		}
		ips, err := net.DefaultResolver.LookupNetIP(m.ctx, "ip", host)
		if err != nil {
			fail(err)
			continue
		}
		for _, ip := range ips {
			addr := netip.AddrPortFrom(ip.Unmap(), uint16(port)).String()
			if _, self := own[addr]; !self {
				found[addr] = struct{}{}
			}
		}
	}
	addrs := make([]string, 0, len(found))
	for addr := range found {
		addrs = append(addrs, addr)
	}
	rand.Shuffle(len(addrs), func(i, j int) { addrs[i], addrs[j] = addrs[j], addrs[i] })
	return addrs
}

// ownAddrs returns the addresses under which this gateway would find itself.
func (m *Mesh) ownAddrs() map[string]struct{} {
	own := map[string]struct{}{m.addr: {}}
	bound := m.link.bound()
	own[bound.String()] = struct{}{}
	if !bound.Addr().IsUnspecified() {
		return own
	}
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		return own // it then finds itself, which takes a while longer
	}
	for _, a := range interfaces {
		if n, ok := a.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP); ok {
				own[netip.AddrPortFrom(ip.Unmap(), bound.Port()).String()] = struct{}{}
			}
		}
	}
	return own
}

func (m *Mesh) isPeer(addr string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.peers {
		if p.node.Address() == addr {
			return true
		}
	}
	return false
}

func (m *Mesh) lostAddrs() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var addrs []string
	for name, l := range m.lost {
		if time.Now().After(l.until) {
			delete(m.lost, name)
			continue
		}
		addrs = append(addrs, l.addr)
	}
	return addrs
}
