// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// Config says who this gateway is and how it finds the others. The zero value
// of every field but Gateway and Incarnation stands for its default.
type Config struct {
	Gateway     ring.GatewayID        // required: the replica's; at most 255 bytes
	Incarnation placement.Incarnation // required: the replica's

	// Bind is the host and port to listen on, TCP and UDP: ":7946" by default.
	// Without a host it is every IPv4 interface; port 0 is a free one.
	Bind string
	// Advertise is the host and port under which the others reach Bind. By
	// default it is Bind, and if that is every interface, the first IPv4
	// address that this host has, private ones first. Its port may be 0: that of Bind.
	Advertise string
	// Seeds are hosts and ports at which other gateways may be found. A name
	// stands for all its addresses, and is looked up anew for every attempt;
	// this gateway itself among them does no harm. Without seeds, and without
	// Discover, it waits to be found.
	Seeds []string
	// Discover returns further seeds, for one attempt: kube.Discovery.Seeds is
	// one. Nobody and no error means that there is no other gateway; who does
	// not know returns an error, which changes nothing but what is said of a
	// gateway that finds nobody. It is called by one goroutine at a time, and
	// must return when ctx ends, which is after 10 s at the latest.
	Discover func(ctx context.Context) ([]string, error)
	// Resolver looks up names. nil: [net.DefaultResolver].
	Resolver *net.Resolver

	// Key encrypts and authenticates all traffic, if all gateways have the
	// same: 16, 24 or 32 bytes, for AES-128, AES-192 or AES-256. Without it,
	// whoever reaches the port may join.
	Key []byte
	// AcceptKeys are further keys with which others may encrypt, of the same
	// sizes. They are for the time in which a fleet changes its key: see
	// [Mesh.SetKeys].
	AcceptKeys [][]byte
	// Label keeps fleets apart: gateways with another one are not heard. At
	// most 255 bytes.
	Label string

	// Probe is how often this gateway probes one of its peers, and the scale of
	// all that goes with it: 1 s by default, and at least 10 ms. A probe may
	// take half of it, and a peer that answers none is lost after about four to
	// eight.
	Probe time.Duration
	// Backlog bounds the bytes of messages that wait for one peer, and of those
	// that wait for the replica: 64 MiB by default. It must have room for a
	// gateway's whole record.
	Backlog int

	Logger *slog.Logger // must not block; nil: nothing is logged
}

// The defaults and limits of [Config].
const (
	defaultBind    = ":7946"
	defaultProbe   = time.Second
	defaultBacklog = 64 << 20
	minProbe       = 10 * time.Millisecond
	maxGatewayID   = 255
)

// Validate reports every fault, each naming its field.
func (c Config) Validate() error {
	d := c.withDefaults()
	var errs []error
	fault := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("gossip: Config."+format, args...))
	}
	if c.Gateway == "" {
		fault("Gateway is empty")
	}
	if len(c.Gateway) > maxGatewayID {
		fault("Gateway has %d bytes; it can have %d", len(c.Gateway), maxGatewayID)
	}
	if c.Incarnation == 0 {
		fault("Incarnation is 0; take it from the clock")
	}
	host, _, err := splitAddress(d.Bind)
	if err != nil {
		fault("Bind: %w", err)
	} else if ip := net.ParseIP(host); c.Advertise == "" && ip != nil && ip.To4() == nil && ip.IsUnspecified() {
		fault("Advertise is empty; it is needed while Bind is every IPv6 interface")
	}
	if c.Advertise != "" {
		if host, _, err := splitAddress(c.Advertise); err != nil {
			fault("Advertise: %w", err)
		} else if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			fault("Advertise is %q; others cannot dial that", c.Advertise)
		}
	}
	for i, seed := range c.Seeds {
		if _, _, err := splitSeed(seed); err != nil {
			fault("Seeds[%d]: %w", i, err)
		}
	}
	if len(c.Key) != 0 || len(c.AcceptKeys) != 0 {
		for _, err := range keyFaults(c.Key, c.AcceptKeys) {
			fault("%w", err)
		}
	}
	if n := len(c.Label); n > memberlist.LabelMaxSize {
		fault("Label has %d bytes; it can have %d", n, memberlist.LabelMaxSize)
	}
	if d.Probe < minProbe {
		fault("Probe is %v; it must be at least %v", d.Probe, minProbe)
	}
	if d.Backlog < 0 {
		fault("Backlog is %d; it cannot be below 0", d.Backlog)
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	if c.Bind == "" {
		c.Bind = defaultBind
	}
	if c.Probe == 0 {
		c.Probe = defaultProbe
	}
	if c.Backlog == 0 {
		c.Backlog = defaultBacklog
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Resolver == nil {
		c.Resolver = net.DefaultResolver
	}
	c.Seeds = slices.Clone(c.Seeds)
	c.Key, c.AcceptKeys = slices.Clone(c.Key), slices.Clone(c.AcceptKeys)
	for i, key := range c.AcceptKeys {
		c.AcceptKeys[i] = slices.Clone(key)
	}
	return c
}

// splitSeed splits an address that is to be dialled.
func splitSeed(seed string) (host string, port int, err error) {
	host, port, err = splitAddress(seed)
	if err == nil && (host == "" || port == 0) {
		err = fmt.Errorf("%q needs a host and a port", seed)
	}
	return host, port, err
}

func splitAddress(address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("port %q of %q is no number from 0 to 65535", text, address)
	}
	return host, int(n), nil
}
