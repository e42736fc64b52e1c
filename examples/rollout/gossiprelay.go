// SPDX-License-Identifier: Apache-2.0

package main

import "net"

// behindRelay is where gateways gossip that are reached through a relay: another address of
// this machine's own, as Linux has many, so that the port can be the relay's.
const behindRelay = "127.0.0.2"

// gossipRelay is a relay that passes packets on, too. It drops them unless the weather is fair.
type gossipRelay struct {
	*relay
	packets net.PacketConn
	behind  *net.UDPAddr
}

// newGossipRelay listens for TCP and UDP on one port, and passes all on to the same port behind.
func newGossipRelay() (*gossipRelay, error) {
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		packets, err := net.ListenPacket("udp", l.Addr().String())
		if err != nil {
			_ = l.Close() // somebody has that port for UDP; there are others
			continue
		}
		behind := &net.UDPAddr{IP: net.ParseIP(behindRelay), Port: l.Addr().(*net.TCPAddr).Port}
		g := &gossipRelay{relay: relayOn(l, behind.String), packets: packets, behind: behind}
		g.work.Go(g.pass)
		return g, nil
	}
}

// pass passes packets on until the relay is closed.
func (g *gossipRelay) pass() {
	packet := make([]byte, 64<<10)
	for {
		n, _, err := g.packets.ReadFrom(packet)
		if err != nil {
			return
		}
		if now, _ := g.outlook(); now == fair {
			_, _ = g.packets.WriteTo(packet[:n], g.behind) // as a network: who does not get it will not know
		}
	}
}

// close ends everything and waits for it.
func (g *gossipRelay) close() {
	_ = g.packets.Close()
	g.relay.close()
}
