// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"time"

	"github.com/hashicorp/memberlist"
)

// configure makes memberlist's configuration. memberlist takes addresses
// only: a name would be no error, and stand for every interface.
func (m *Mesh) configure(ctx context.Context) (*memberlist.Config, error) {
	c := memberlist.DefaultLANConfig()
	c.Name = m.self.name()
	var err error
	if c.BindAddr, c.BindPort, err = m.resolveOne(ctx, m.cfg.Bind); err != nil {
		return nil, fmt.Errorf("looking up Config.Bind: %w", err)
	}
	c.AdvertisePort = 0
	if m.cfg.Advertise != "" {
		if c.AdvertiseAddr, c.AdvertisePort, err = m.resolveOne(ctx, m.cfg.Advertise); err != nil {
			return nil, fmt.Errorf("looking up Config.Advertise: %w", err)
		}
	}
	if c.AdvertiseAddr == "" && c.BindAddr == net.IPv4zero.String() {
		// memberlist might choose an IPv6 address, where this does not listen.
		if c.AdvertiseAddr, err = hostAddress(); err != nil {
			return nil, err
		}
	}
	c.ProbeInterval = m.cfg.Probe
	c.ProbeTimeout = m.cfg.Probe / 2
	c.GossipInterval = m.cfg.Probe / 5
	c.PushPullInterval = relook * m.cfg.Probe
	c.GossipToTheDeadTime = relook * m.cfg.Probe
	c.DeadNodeReclaimTime = time.Nanosecond // a mesh may come back under another address
	c.TCPTimeout = streamTimeout
	c.EnableCompression = false // it costs more time than it saves on one network
	if len(m.cfg.Key) > 0 {
		if c.Keyring, err = memberlist.NewKeyring(m.cfg.AcceptKeys, m.cfg.Key); err != nil {
			return nil, err
		}
		m.keys.ring = c.Keyring
	}
	c.Label = m.cfg.Label
	c.Logger = log.New(logWriter{m.cfg.Logger}, "", 0)
	c.Delegate = members{m}
	c.Events = members{m}
	c.Alive = members{m}
	return c, nil
}

func (m *Mesh) resolveOne(ctx context.Context, address string) (ip string, port int, err error) {
	host, port, err := splitAddress(address)
	if err != nil {
		return "", 0, err
	}
	if host == "" {
		return net.IPv4zero.String(), port, nil
	}
	ips, err := m.cfg.Resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return "", 0, err
	}
	// A name often has an address of each family; the older one is the safer guess.
	best := ips[0].Unmap()
	for _, ip := range ips {
		if best.Is6() && ip.Unmap().Is4() {
			best = ip.Unmap()
		}
	}
	return best.String(), port, nil
}

// hostAddress returns an IPv4 address of this host, a private one if there is one.
func hostAddress() (string, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return "", err
	}
	other := ""
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		if !ok || n.IP.To4() == nil || !n.IP.IsGlobalUnicast() {
			continue
		}
		if n.IP.IsPrivate() {
			return n.IP.String(), nil
		}
		if other == "" {
			other = n.IP.String()
		}
	}
	if other == "" {
		return "", errors.New("no interface has an IPv4 address for others; set Config.Advertise")
	}
	return other, nil
}
