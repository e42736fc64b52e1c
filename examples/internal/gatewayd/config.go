// SPDX-License-Identifier: Apache-2.0

package gatewayd

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/evenring/evenring/examples/internal/report"
	"github.com/evenring/evenring/examples/internal/tlsflags"
	"github.com/evenring/evenring/examples/internal/wire"
	"github.com/evenring/evenring/handoff"
	"github.com/evenring/evenring/placement/roster/gossip"
	"github.com/evenring/evenring/ring"
)

// The defaults of [Config].
const (
	DefaultListen   = "127.0.0.1:7000"
	DefaultGossip   = "127.0.0.1:7946"
	DefaultOps      = "127.0.0.1:7080"
	DefaultPeerWait = 20 * time.Second

	DefaultDelistGrace = 10 * time.Second
)

// farewell bounds each of the two things that come after a drain: the
// goodbye to the peers, and the end of the streams that are left.
const farewell = time.Second

// Config says who a gateway is and where it listens. The zero value of every
// field is its default; a port may be 0 where not said otherwise, and is then a free one.
type Config struct {
	ID       ring.GatewayID // empty: the host's name
	Listen   string         // host and port for supervisors, sessions and peers; empty: 127.0.0.1:7000
	Endpoint string         // host and port at which this very gateway can be dialled, not 0; empty: that of Listen, which must name a host then
	Ops      string         // host and port of the operator's HTTP; empty: 127.0.0.1:7080

	Transport wire.Kind // what Listen takes, and what the other gateways are reached by; zero: gRPC

	Gossip       string        // host and port for gossip; empty: 127.0.0.1:7946
	Advertise    string        // host and port at which peers reach Gossip; empty: as gossip.Config has it
	Join         []string      // gossip addresses at which other gateways may be found
	GossipKey    []byte        // 16, 24 or 32 bytes; empty: gossip is open to whoever reaches it
	GossipAccept [][]byte      // further keys that others may have, while the fleet's is being changed
	PeerWait     time.Duration // how long to wait for the loads of the others before serving; 0: 20 s

	KubeService string // Service in Kubernetes whose slices list all gateways and where gossip finds them, as [namespace/]name; empty: Join alone says so
	Kubeconfig  string // file that says how to reach Kubernetes; empty: as a pod does

	DelistGrace time.Duration // how long discovery may fail to list this gateway, which it had, before it hands over; 0: 10 s

	ProofKeys     [][]byte // one or two, as redirect.Proofs has them; empty: stays are not proved
	ProofRequired bool     // a stay must be

	// Of the drain; 0 is the default of handoff.Config.
	Propagation time.Duration
	Window      time.Duration
	Confirm     time.Duration
	KillAfter   time.Duration

	TLS    tlsflags.Flags // zero: plaintext
	Report *report.Writer // what happens, for whoever started the process; nil: not told
	Log    *slog.Logger   // nil: silent
}

// Validate reports every fault, each naming the flag of its field. It does not
// read files.
func (c Config) Validate() error {
	return c.resolved().validate()
}

func (c Config) validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.ID == "" {
		fault("-id is empty, and the host has no name")
	}
	for _, a := range []struct{ flag, address string }{{"-listen", c.Listen}, {"-ops", c.Ops}} {
		if _, _, err := net.SplitHostPort(a.address); err != nil {
			fault("%s: %w", a.flag, err)
		}
	}
	if c.Endpoint == "" {
		if host, _, err := net.SplitHostPort(c.Listen); err == nil && everywhere(host) {
			fault("-endpoint is needed: -listen %s is no address that anybody could dial", c.Listen)
		}
	} else if host, port, err := net.SplitHostPort(c.Endpoint); err != nil {
		fault("-endpoint: %w", err)
	} else if everywhere(host) || port == "" || port == "0" {
		fault("-endpoint is %q; nobody could dial that", c.Endpoint)
	}
	if err := c.Transport.Validate(); err != nil {
		errs = append(errs, err)
	}
	if c.PeerWait < 0 {
		fault("-peer-wait is %v; it cannot be below 0", c.PeerWait)
	}
	if c.DelistGrace < 0 {
		fault("-delist-grace is %v; it cannot be below 0", c.DelistGrace)
	}
	for _, part := range []struct {
		flags string
		mesh  gossip.Config
	}{
		{"-id", gossip.Config{Gateway: c.ID}},
		{"-gossip, -gossip-advertise", gossip.Config{Bind: c.Gossip, Advertise: c.Advertise}},
		{"-join", gossip.Config{Seeds: c.Join}},
		{"-gossip-key", gossip.Config{Key: c.GossipKey, AcceptKeys: c.GossipAccept}},
	} {
		part.mesh.Gateway, part.mesh.Incarnation = cmp.Or(part.mesh.Gateway, "any"), 1
		if err := part.mesh.Validate(); err != nil {
			fault("%s: %w", part.flags, err)
		}
	}
	if err := c.proofs().Validate(); err != nil {
		fault("-proof-key, -proof-required: %w", err)
	}
	if err := c.validateKube(); err != nil {
		errs = append(errs, err)
	}
	if err := c.drain().Validate(); err != nil {
		fault("-propagation, -window, -confirm, -kill-after: %w", err)
	}
	return errors.Join(errs...)
}

// everywhere reports whether a host stands for every interface.
func everywhere(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

// resolved returns a copy with every default in its place.
func (c Config) resolved() Config {
	if c.ID == "" {
		host, _ := os.Hostname() // without a name, validate says so
		c.ID = ring.GatewayID(host)
	}
	c.Listen = cmp.Or(c.Listen, DefaultListen)
	c.Gossip = cmp.Or(c.Gossip, DefaultGossip)
	c.Ops = cmp.Or(c.Ops, DefaultOps)
	c.PeerWait = cmp.Or(c.PeerWait, DefaultPeerWait)
	c.DelistGrace = cmp.Or(c.DelistGrace, DefaultDelistGrace)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Join = slices.Clone(c.Join)
	c.GossipKey, c.GossipAccept = slices.Clone(c.GossipKey), slices.Clone(c.GossipAccept)
	return c
}

// drain is the drain's configuration. Its margin has room for what comes after it.
func (c Config) drain() handoff.Config {
	return handoff.Config{
		Propagation: c.Propagation, Window: c.Window, Confirm: c.Confirm, KillAfter: c.KillAfter, Margin: 4 * farewell,
	}
}
