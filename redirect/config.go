// SPDX-License-Identifier: Apache-2.0

package redirect

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/ring"
)

// The defaults of [Config].
const (
	DefaultReserve    = 10 * time.Second
	DefaultAskTimeout = 250 * time.Millisecond
	DefaultHold       = 30 * time.Second
	DefaultLinger     = 10 * time.Second
	DefaultMaxHops    = 2
	DefaultRetryAfter = time.Second
)

// Config says who a gateway is and how it admits. Gateway and Incarnation are
// required; the zero value of every other field is its default.
type Config struct {
	Gateway     ring.GatewayID
	Incarnation placement.Incarnation // must grow with every start; the clock in nanoseconds will do
	Endpoint    string                // where peers and supervisors dial this gateway directly; empty: nowhere, so it is never a target

	Peers      Peers         // how to ask other gateways; nil: place without asking
	Asks       int           // questions per placement; 0: 12
	AskTimeout time.Duration // for one question; 0: 250 ms

	Reserve    time.Duration // a place is kept for so long; 0: 10 s
	Hold       time.Duration // a supervisor whose stream broke is expected back for so long; 0: 30 s
	Linger     time.Duration // a stream whose supervisor is served elsewhere is left to it for so long; 0: 10 s
	MaxHops    int           // redirects up to which a full gateway may pass somebody on, without Peers, and a session is sent after its supervisor; 0: 2. 1 is strict
	RetryAfter time.Duration // least wait after a refusal, jittered up to twice that; 0: 1 s

	// Proofs say whether a supervisor that asks to stay must show that it was
	// sent here, or was here before. Zero: no proofs.
	Proofs Proofs

	Pace Pacing // how fast newcomers are taken; zero: at any rate

	// Roster is how the roster works. Its Gateway, Incarnation and Endpoint
	// are taken from above.
	Roster roster.Config

	// Jitter returns numbers in [0, 1), for RetryAfter. nil: always 0.5 in an
	// [Admission]; math/rand/v2 in a [Gateway].
	Jitter func() float64
}

// Validate reports every fault, each naming its field.
func (c Config) Validate() error {
	var errs []error
	if c.Gateway == "" {
		errs = append(errs, errors.New("redirect: Config.Gateway is empty"))
	}
	if c.Incarnation == 0 {
		errs = append(errs, errors.New("redirect: Config.Incarnation is 0; it must grow with every start"))
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{
		{"AskTimeout", c.AskTimeout}, {"Reserve", c.Reserve}, {"Hold", c.Hold}, {"Linger", c.Linger}, {"RetryAfter", c.RetryAfter},
	} {
		if d.value < 0 {
			errs = append(errs, fmt.Errorf("redirect: Config.%s is %v; it cannot be below 0", d.field, d.value))
		}
	}
	if c.Asks < 0 {
		errs = append(errs, fmt.Errorf("redirect: Config.Asks is %d; it cannot be below 0", c.Asks))
	}
	if c.MaxHops < 0 {
		errs = append(errs, fmt.Errorf("redirect: Config.MaxHops is %d; it cannot be below 0", c.MaxHops))
	}
	errs = append(errs, c.Proofs.Validate(), c.Pace.validate(), c.resolved().Roster.Validate())
	return errors.Join(errs...)
}

// resolved returns a copy with every default in its place.
func (c Config) resolved() Config {
	c.Asks = cmp.Or(c.Asks, placement.DefaultAsks)
	if c.Peers == nil {
		c.Asks = -1
	}
	c.AskTimeout = cmp.Or(c.AskTimeout, DefaultAskTimeout)
	c.Reserve = cmp.Or(c.Reserve, DefaultReserve)
	c.Hold = cmp.Or(c.Hold, DefaultHold)
	c.Linger = cmp.Or(c.Linger, DefaultLinger)
	c.MaxHops = cmp.Or(c.MaxHops, DefaultMaxHops)
	c.RetryAfter = cmp.Or(c.RetryAfter, DefaultRetryAfter)
	c.Proofs = c.Proofs.resolved(c.Reserve)
	if c.Jitter == nil {
		c.Jitter = func() float64 { return 0.5 }
	}
	c.Roster.Gateway, c.Roster.Incarnation, c.Roster.Endpoint = c.Gateway, c.Incarnation, c.Endpoint
	return c
}
