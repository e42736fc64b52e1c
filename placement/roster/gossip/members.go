// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"errors"
	"slices"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/ring"
)

// members is what memberlist calls. It does so with its own lock held, so
// nothing here may block, or ask memberlist anything.
type members struct{ *Mesh }

var (
	_ memberlist.Delegate      = members{}
	_ memberlist.EventDelegate = members{}
	_ memberlist.AliveDelegate = members{}
)

// NodeMeta implements [memberlist.Delegate].
func (m members) NodeMeta(int) []byte { return m.self.append(nil) }

// NotifyAlive implements [memberlist.AliveDelegate]: only gateways are let in.
func (m members) NotifyAlive(node *memberlist.Node) error {
	id, err := parseIdentity(node.Meta)
	if err == nil && id.name() != node.Name {
		err = errors.New("gossip: the node is not what its name says")
	}
	return err
}

// NotifyJoin implements [memberlist.EventDelegate].
func (m members) NotifyJoin(node *memberlist.Node) {
	id, err := parseIdentity(node.Meta)
	if err != nil || id == m.self {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.peers[node.Name] != nil {
		return
	}
	p := newPeer(id, node, m.cfg.Backlog)
	m.peers[node.Name] = p
	for name, l := range m.lost {
		if l.gateway == id.gateway && l.incarnation <= id.incarnation {
			delete(m.lost, name)
		}
	}
	m.tasks.Go(func() { m.sender(p) })
	m.cfg.Logger.Info("gossip: peer joined", "gateway", id.gateway, "incarnation", id.incarnation, "address", node.Address())
	if id.gateway != m.self.gateway && m.newest(id.gateway) == p {
		m.inbox.put(roster.LinkUp{Gateway: id.gateway}, 0)
	}
	m.report()
	m.wakeWaiters()
	if !m.found {
		signal(m.search)
	}
}

// NotifyUpdate implements [memberlist.EventDelegate]. Nodes do not change.
func (m members) NotifyUpdate(*memberlist.Node) {}

// NotifyLeave implements [memberlist.EventDelegate]. memberlist does not say
// whether the node left or died, so whoever leaves says so itself, before that.
func (m members) NotifyLeave(node *memberlist.Node) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.peers[node.Name]
	if p == nil || m.closed {
		return
	}
	last := m.remove(p)
	m.cfg.Logger.Warn("gossip: peer lost", "gateway", p.gateway, "incarnation", p.incarnation)
	if last {
		m.lost[node.Name] = lost{identity: p.identity, addr: p.node.Address(), until: time.Now().Add(rememberLost)}
		m.inbox.put(roster.LinkLost{Gateway: p.gateway}, 0)
	}
	if len(m.peers) == 0 {
		m.inbox.put(roster.DiscoveryFailed{Err: ErrAlone}, 0)
		signal(m.search)
	} else {
		m.report()
	}
}

// NotifyMsg implements [memberlist.Delegate].
func (m members) NotifyMsg(frame []byte) {
	if len(frame) == 0 {
		return
	}
	switch frame[0] {
	case frameMessages:
		if err := eachMessage(frame[1:], m.receive); err != nil {
			m.cfg.Logger.Warn("gossip: frame ignored", "error", err)
		}
	case frameGoodbye:
		if id, err := parseIdentity(frame[1:]); err == nil {
			m.goodbye(id)
		}
	}
}

// GetBroadcasts implements [memberlist.Delegate]. Nothing is passed on through others.
func (m members) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState implements [memberlist.Delegate].
func (m members) LocalState(bool) []byte { return nil }

// MergeRemoteState implements [memberlist.Delegate].
func (m members) MergeRemoteState([]byte, bool) {}

func (m *Mesh) receive(message []byte) {
	decoded, err := roster.Decode(message)
	if err != nil {
		m.cfg.Logger.Debug("gossip: message ignored", "error", err)
		return
	}
	m.received.Add(1)
	if !m.inbox.put(roster.Received{Message: decoded}, len(message)) {
		m.cfg.Logger.Warn("gossip: message dropped", "error", "the replica is behind")
	}
}

// goodbye takes a gateway's own word that it leaves.
func (m *Mesh) goodbye(id identity) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || id == m.self {
		return
	}
	delete(m.lost, id.name())
	last := true
	if p := m.peers[id.name()]; p != nil {
		last = m.remove(p)
	} else if n := m.newest(id.gateway); n != nil {
		last = n.incarnation < id.incarnation
	}
	m.cfg.Logger.Info("gossip: peer left", "gateway", id.gateway, "incarnation", id.incarnation)
	if last && id.gateway != m.self.gateway {
		m.inbox.put(roster.Departed{Gateway: id.gateway, Incarnation: id.incarnation}, 0)
	}
	m.report()
}

// remove takes the node out, and reports whether it was the gateway's newest.
// Called under the lock.
func (m *Mesh) remove(p *peer) bool {
	last := m.newest(p.gateway) == p && p.gateway != m.self.gateway
	delete(m.peers, p.name())
	close(p.gone)
	m.wakeWaiters()
	return last
}

// newest returns the gateway's newest start among the live nodes, or nil.
// Called under the lock.
func (m *Mesh) newest(id ring.GatewayID) *peer {
	var newest *peer
	for _, p := range m.peers {
		if p.gateway == id && (newest == nil || p.incarnation > newest.incarnation) {
			newest = p
		}
	}
	return newest
}

// report tells the replica who is there. Until a seed has been heard there may be
// others. Called under the lock.
func (m *Mesh) report() {
	ids := []ring.GatewayID{m.self.gateway}
	for _, p := range m.peers {
		ids = append(ids, p.gateway)
	}
	slices.Sort(ids)
	m.inbox.put(roster.Discovered{Gateways: slices.Compact(ids), Partial: !m.found}, 0)
}

// deliver steps the replica until the mesh is closed.
func (m *Mesh) deliver() {
	for {
		for _, d := range m.inbox.take() {
			if m.ctx.Err() != nil {
				return
			}
			m.replica.Step(d.event)
			if d.size > 0 {
				m.inbox.release(d.size)
				m.note(d.event.(roster.Received).Message)
			}
		}
		select {
		case <-m.inbox.wake:
		case <-m.ctx.Done():
			return
		}
	}
}

// note remembers that the replica has had word of a gateway.
func (m *Mesh) note(message roster.Message) {
	o, _ := roster.OriginOf(message)
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.peers[(identity{o.Gateway, o.Incarnation}).name()]; p != nil {
		m.settled(p)
	}
}

// settled notes that WaitPeers need not wait for the peer. Called under the lock.
func (m *Mesh) settled(p *peer) {
	if p.awaited {
		p.awaited = false
		m.wakeWaiters()
	}
}

// sender sends what waits for the peer until it has gone. What fails is dropped.
// A peer that has gone may live all the same: it is sent what is left, until
// that fails too.
func (m *Mesh) sender(p *peer) {
	select {
	case <-m.started:
	case <-m.ctx.Done():
		return
	}
	for {
		frame, bye := p.next()
		switch {
		case frame != nil:
			if err := m.list.SendReliable(&p.node, frame); err != nil {
				m.unreachable(p, err)
				if p.hasGone() {
					p.dismiss()
					return
				}
			}
		case bye != nil:
			if err := m.list.SendReliable(&p.node, m.self.append([]byte{frameGoodbye})); err != nil {
				m.unreachable(p, err)
			}
			bye <- struct{}{}
		default:
			select {
			case <-p.wake:
			case <-p.gone:
				p.dismiss()
				return
			case <-m.ctx.Done():
				return
			}
		}
	}
}

// unreachable notes that the peer could not be sent something.
func (m *Mesh) unreachable(p *peer, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.peers[p.name()] != p {
		return
	}
	m.cfg.Logger.Warn("gossip: sending failed", "gateway", p.gateway, "error", err)
	m.settled(p)
	if p.gateway != m.self.gateway && m.newest(p.gateway) == p {
		m.inbox.put(roster.LinkLost{Gateway: p.gateway}, 0)
	}
}
