// SPDX-License-Identifier: Apache-2.0

package roster

import (
	"errors"
	"fmt"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// Config says who this gateway is and how patient it is. The zero value of
// every field but Gateway and Incarnation stands for its default.
type Config struct {
	Gateway     ring.GatewayID        // required
	Incarnation placement.Incarnation // required: above that of every earlier start; take it from the clock
	Endpoint    string                // where peers and clients can dial this gateway directly; empty: nowhere

	// TimeToLive is how long a gateway may be silent before it is purged: 30 s
	// by default, and at least twice Heartbeat, so that one lost heartbeat is
	// no silence.
	TimeToLive time.Duration
	// Heartbeat is the time between two heartbeats: 10 s by default.
	Heartbeat time.Duration
	// Grace is how long callers wait for discovery and for the peers'
	// snapshots, from New on: 20 s by default.
	Grace time.Duration
	// Batch is how long own changes gather before they are told, and how long
	// a gap may take to close before a snapshot is asked for: 20 ms by default. It
	// bounds messages: while only members come and go, peers are told at most once in a Batch.
	Batch time.Duration

	// PageBytes bounds an encoded delta or snapshot page: 1 MiB by default,
	// at least 512. A page has one member even if that alone is longer.
	PageBytes int
	// Outbox bounds the changes that may wait to be told, and those that a copy
	// keeps while a gap is open: 8192 by default. Beyond it a snapshot takes
	// their place.
	Outbox int

	Ring ring.Config // of the ring over all known gateways
}

// The defaults of [Config].
const (
	defaultTimeToLive = 30 * time.Second
	defaultHeartbeat  = 10 * time.Second
	defaultGrace      = 20 * time.Second
	defaultBatch      = 20 * time.Millisecond
	defaultPageBytes  = 1 << 20
	defaultOutbox     = 8192
	minPageBytes      = 512
)

// Validate reports every fault, each naming its field.
func (c Config) Validate() error {
	d := c.withDefaults()
	var errs []error
	fault := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("roster: Config."+format, args...))
	}
	if c.Gateway == "" {
		fault("Gateway is empty")
	}
	if c.Incarnation == 0 {
		fault("Incarnation is 0; take it from the clock")
	}
	for _, f := range [...]struct {
		name  string
		value time.Duration
	}{
		{"TimeToLive", d.TimeToLive},
		{"Heartbeat", d.Heartbeat},
		{"Grace", d.Grace},
		{"Batch", d.Batch},
	} {
		if f.value < 0 {
			fault("%s is %v; it cannot be below 0", f.name, f.value)
		}
	}
	if d.TimeToLive < 2*d.Heartbeat {
		fault("TimeToLive is %v; it must be at least twice Heartbeat, which is %v", d.TimeToLive, d.Heartbeat)
	}
	if d.PageBytes < minPageBytes {
		fault("PageBytes is %d; it must be at least %d", d.PageBytes, minPageBytes)
	}
	if d.Outbox < 0 {
		fault("Outbox is %d; it cannot be below 0", d.Outbox)
	}
	if err := c.Ring.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("roster: Config.Ring: %w", err))
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	c.TimeToLive = orDefault(c.TimeToLive, defaultTimeToLive)
	c.Heartbeat = orDefault(c.Heartbeat, defaultHeartbeat)
	c.Grace = orDefault(c.Grace, defaultGrace)
	c.Batch = orDefault(c.Batch, defaultBatch)
	c.PageBytes = orDefault(c.PageBytes, defaultPageBytes)
	c.Outbox = orDefault(c.Outbox, defaultOutbox)
	return c
}

func orDefault[T comparable](v, d T) T {
	var zero T
	if v == zero {
		return d
	}
	return v
}
