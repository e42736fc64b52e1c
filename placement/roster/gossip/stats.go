// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
)

// Stats counts what this gateway's mesh has carried since Join. Bytes are those
// given to the sockets and taken from them, encryption included.
type Stats struct {
	MessagesSent     uint64 // roster messages queued, once for each peer
	MessagesReceived uint64 // roster messages understood

	Dials               uint64 // streams that this gateway has opened; each carries one frame
	StreamBytesSent     uint64
	StreamBytesReceived uint64
	PacketsSent         uint64 // probes, and word of who is alive; what arrives of them the others have counted
	PacketBytesSent     uint64
}

// Stats returns the counts so far.
func (m *Mesh) Stats() Stats {
	t := &m.link.traffic
	return Stats{
		MessagesSent:        m.sent.Load(),
		MessagesReceived:    m.received.Load(),
		Dials:               t.dials.Load(),
		StreamBytesSent:     t.streamSent.Load(),
		StreamBytesReceived: t.streamReceived.Load(),
		PacketsSent:         t.packets.Load(),
		PacketBytesSent:     t.packetBytes.Load(),
	}
}

// traffic is what has gone over a link.
type traffic struct {
	dials                      atomic.Uint64
	streamSent, streamReceived atomic.Uint64
	packets, packetBytes       atomic.Uint64
}

// queue gives the peer a message to send.
func (m *Mesh) queue(p *peer, message []byte) error {
	err := p.send(message)
	if err == nil {
		m.sent.Add(1)
	}
	return err
}

// Write implements [net.Conn].
func (s *stream) Write(b []byte) (int, error) {
	n, err := s.Conn.Write(b)
	s.link.traffic.streamSent.Add(uint64(n))
	return n, err
}

// Read implements [net.Conn].
func (s *stream) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	s.link.traffic.streamReceived.Add(uint64(n))
	return n, err
}

// WriteTo implements [memberlist.Transport].
func (l *link) WriteTo(b []byte, addr string) (time.Time, error) {
	return l.WriteToAddress(b, memberlist.Address{Addr: addr})
}

// WriteToAddress implements [memberlist.NodeAwareTransport].
func (l *link) WriteToAddress(b []byte, to memberlist.Address) (time.Time, error) {
	l.traffic.packets.Add(1)
	l.traffic.packetBytes.Add(uint64(len(b)))
	return l.NetTransport.WriteToAddress(b, to)
}
