// SPDX-License-Identifier: Apache-2.0

package rostertest

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/ring"
)

// memory is a network within the process. What it does to messages may be spoilt.
type memory struct {
	spoil func(from, to ring.GatewayID, message []byte) (ring.GatewayID, []byte) // "": lost
	fault fault

	mu    sync.Mutex
	ports []*port
}

// fault is what a memory network does wrong besides.
type fault int

const (
	none        fault = iota
	echo              // what is sent to all comes back
	onlyFirst         // what is sent to all goes to one
	misnames          // messages bear another sender
	afterlife         // who is stopped is stepped
	notFromStep       // nothing can be sent while the replica is stepped
	farewell          // a gateway that lives is said to have left
)

// port is one node's.
type port struct {
	Node
	network *memory
	busy    bool // under the network's lock: the replica is being stepped
	wake    chan struct{}
	done    chan struct{}
	running sync.WaitGroup

	mu    sync.Mutex
	queue []roster.Event
}

func (m *memory) join(_ testing.TB, n Node) (roster.Transport, func()) {
	p := &port{Node: n, network: m, wake: make(chan struct{}, 1), done: make(chan struct{})}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, other := range m.ports {
		other.put(roster.LinkUp{Gateway: p.Gateway})
		p.put(roster.LinkUp{Gateway: other.Gateway})
		if m.fault == farewell {
			other.put(roster.Departed{Gateway: p.Gateway, Incarnation: p.Incarnation})
		}
	}
	m.ports = append(m.ports, p)
	p.running.Go(p.run)
	return p, p.close
}

func (p *port) close() {
	m := p.network
	m.mu.Lock()
	m.ports = slices.DeleteFunc(m.ports, func(other *port) bool { return other == p })
	for _, other := range m.ports {
		other.put(roster.LinkLost{Gateway: p.Gateway})
	}
	m.mu.Unlock()
	close(p.done)
	p.running.Wait()
	if m.fault == afterlife {
		time.AfterFunc(time.Millisecond, func() { p.Replica.Step(roster.LinkLost{Gateway: p.Gateway}) })
	}
}

func (p *port) put(ev roster.Event) {
	p.mu.Lock()
	p.queue = append(p.queue, ev)
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *port) run() {
	for {
		p.mu.Lock()
		events := p.queue
		p.queue = nil
		p.mu.Unlock()
		for _, ev := range events {
			p.setBusy(true)
			p.Replica.Step(ev)
			p.setBusy(false)
		}
		select {
		case <-p.wake:
		case <-p.done:
			return
		}
	}
}

func (p *port) setBusy(busy bool) {
	p.network.mu.Lock()
	p.busy = busy
	p.network.mu.Unlock()
}

var errNobody = errors.New("nobody is there")

// Send implements [roster.Transport].
func (p *port) Send(to ring.GatewayID, message []byte) error {
	m := p.network
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.busy && m.fault == notFromStep {
		return errors.New("busy")
	}
	found := false
	for _, other := range m.ports {
		switch {
		case to != "" && other.Gateway != to, other == p && m.fault != echo, other == p && to != "":
			continue
		case to == "" && m.fault == onlyFirst && found:
			return nil
		}
		found = true
		m.carry(p, other, message)
	}
	if to != "" && !found {
		return errNobody
	}
	return nil
}

// carry is called under the lock.
func (m *memory) carry(from, to *port, message []byte) {
	message = slices.Clone(message)
	if m.spoil != nil {
		var whom ring.GatewayID
		if whom, message = m.spoil(from.Gateway, to.Gateway, message); whom != to.Gateway {
			i := slices.IndexFunc(m.ports, func(p *port) bool { return p.Gateway == whom })
			if i < 0 {
				return
			}
			to = m.ports[i]
		}
	}
	decoded, err := roster.Decode(message)
	if err != nil {
		return
	}
	r := roster.Received{From: from.Gateway, Message: decoded}
	if m.fault == misnames {
		r.From = to.Gateway
	}
	to.put(r)
}
