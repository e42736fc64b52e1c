// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"
)

// How a look goes about it. One that does not answer holds up neither the
// others nor the next look, which leaves it out until it has answered or failed.
const (
	contacts  = 4                // how many are contacted at once,
	slowAfter = 4                // not counting those that have taken a probe interval divided by this
	lookTime  = 2 * time.Second  // for what one look has to say
	nameTime  = 10 * time.Second // for a name, and for Discover
)

// look is one look for other gateways: at the seeds, at those that Discover
// gives, and at everybody lost.
type look struct {
	*Mesh
	ctx   context.Context // of looking up
	own   map[string]struct{}
	slots chan struct{}
	tasks sync.WaitGroup
	done  chan struct{} // closed when every answer is there

	mu     sync.Mutex
	known  map[string]struct{} // the addresses of others that have been named
	awaits map[string]struct{} // what has not answered
	errs   []error
}

// look looks for others. It ends when everything has answered or its time is
// up, which is an interval after somebody has been found or everybody has been
// lost; the rest then goes on by itself.
func (m *Mesh) look() {
	ctx, cancel := context.WithTimeout(m.ctx, nameTime)
	l := &look{
		Mesh:   m,
		ctx:    ctx,
		own:    m.ownAddrs(),
		slots:  make(chan struct{}, contacts),
		done:   make(chan struct{}),
		known:  make(map[string]struct{}),
		awaits: make(map[string]struct{}),
	}
	for _, i := range rand.Perm(len(m.cfg.Seeds)) {
		l.lookUp(m.cfg.Seeds[i])
	}
	if m.cfg.Discover != nil {
		l.start("Config.Discover", l.discover)
	}
	for _, addr := range m.lostAddrs() {
		l.contact(addr)
	}
	m.tasks.Go(func() {
		l.tasks.Wait()
		cancel()
		close(l.done)
	})

	timer := time.NewTimer(lookTime)
	defer timer.Stop()
	search := m.search
	for waiting := true; waiting; {
		select {
		case <-search:
			search = nil
			timer.Reset(min(m.cfg.Probe, lookTime))
		case <-l.done:
			waiting = false
		case <-timer.C:
			waiting = false
		case <-m.ctx.Done():
			return
		}
	}
	if m.seeks() {
		m.settle(l.outcome())
	}
}

// start does what is to be done, unless it is being done already.
func (l *look) start(what string, do func() error) {
	l.Mesh.mu.Lock()
	_, busy := l.busy[what]
	l.busy[what] = struct{}{}
	l.Mesh.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if busy {
		l.errs = append(l.errs, noAnswer(what))
		return
	}
	l.awaits[what] = struct{}{}
	l.tasks.Go(func() {
		err := do()
		l.Mesh.mu.Lock()
		delete(l.busy, what)
		l.Mesh.mu.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.awaits, what)
		if err != nil {
			l.errs = append(l.errs, err)
		}
	})
}

func noAnswer(what string) error { return fmt.Errorf("%s: no answer yet", what) }

// outcome is nil if nobody but this gateway has been named, and otherwise what
// went wrong.
func (l *look) outcome() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	errs := l.errs
	for what := range l.awaits {
		errs = append(errs, noAnswer(what))
	}
	if len(errs) == 0 && len(l.known) > 0 {
		return errors.New("no seed is another gateway")
	}
	return errors.Join(errs...)
}

func (l *look) discover() error {
	seeds, err := l.cfg.Discover(l.ctx)
	if err != nil {
		return fmt.Errorf("Config.Discover: %w", err)
	}
	for _, i := range rand.Perm(len(seeds)) {
		l.lookUp(seeds[i])
	}
	return nil
}

// lookUp contacts every address of a seed.
func (l *look) lookUp(seed string) {
	host, port, err := splitSeed(seed)
	if err != nil {
		l.fail(fmt.Errorf("seed: %w", err))
		return
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		l.contact(netip.AddrPortFrom(ip.Unmap(), uint16(port)).String())
		return
	}
	l.start("looking up "+seed, func() error {
		ips, err := l.cfg.Resolver.LookupNetIP(l.ctx, "ip", host)
		if err != nil {
			return err
		}
		for _, i := range rand.Perm(len(ips)) {
			l.contact(netip.AddrPortFrom(ips[i].Unmap(), uint16(port)).String())
		}
		return nil
	})
}

// contact exchanges lists of nodes with whoever listens there, unless that is
// this gateway, or a peer by then.
func (l *look) contact(addr string) {
	if _, self := l.own[addr]; self {
		return
	}
	l.mu.Lock()
	_, again := l.known[addr]
	l.known[addr] = struct{}{}
	l.mu.Unlock()
	if again {
		return
	}
	l.start("contacting "+addr, func() error {
		select {
		case l.slots <- struct{}{}:
		case <-l.Mesh.ctx.Done():
			return l.Mesh.ctx.Err()
		}
		leave := sync.OnceFunc(func() { <-l.slots })
		defer leave()
		defer time.AfterFunc(l.cfg.Probe/slowAfter, leave).Stop()
		if l.isPeer(addr) {
			return nil
		}
		if _, err := l.list.Join([]string{addr}); err != nil {
			return explain(err)
		}
		return nil
	})
}

func (l *look) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errs = append(l.errs, err)
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
