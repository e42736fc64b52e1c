// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/internal/pause"
	"github.com/evenring/evenring/ring"
)

// Config is what a session is told at its start. The zero value of a field is
// its documented default.
type Config struct {
	Session redirect.SessionID // who dials. Required.
	Member  ring.MemberID      // its supervisor. Required.
	Service string             // the address in front of all gateways. Required.

	// Generation is the first one to dial with. 0: [Run] takes the clock, in
	// nanoseconds since 1970; [New] takes 1.
	Generation placement.Generation

	HomeWait    time.Duration // how long to do without a stream before the Service is dialled; 0: 5 s
	Debounce    time.Duration // how long another home must last before a move; 0: 200 ms
	Pace        time.Duration // the window that moves are spread over; 0: 1 s
	BackoffMin  time.Duration // ceiling of the first pause after a failure; 0: 1 s
	BackoffMax  time.Duration // ceiling of every pause after a failure; 0: 30 s
	DialTimeout time.Duration // from a dial to its verdict; 0: 10 s
	MaxHops     int           // redirects followed in a row; 0: 2

	// Jitter returns a number in [0, 1). nil: Run takes math/rand/v2, New
	// always 0.5, which puts sessions in step.
	Jitter func() float64

	// Allow is the peer policy for redirects and notices to move, as in
	// [supervisor.Config]; home is where the supervisor is, whose own policy has
	// allowed it. It must not block. [supervisor.Policy.Allow] fits. nil: every
	// target is allowed.
	Allow func(gateway ring.GatewayID, endpoint string) error
}

// Validate reports every fault of the config, each naming its field.
func (c Config) Validate() error {
	var errs []error
	fault := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("session: Config."+format, args...))
	}
	if c.Session == "" {
		fault("Session is empty")
	}
	if c.Member == "" {
		fault("Member is empty")
	}
	if c.Service == "" {
		fault("Service is empty")
	}
	if c.Generation >= generationLimit {
		fault("Generation is %d; it must be below %d", c.Generation, uint64(generationLimit))
	}
	if c.MaxHops < 0 {
		fault("MaxHops is %d; it cannot be below 0", c.MaxHops)
	}
	for _, f := range []struct {
		name  string
		value time.Duration
	}{
		{"HomeWait", c.HomeWait},
		{"Debounce", c.Debounce},
		{"Pace", c.Pace},
		{"BackoffMin", c.BackoffMin},
		{"BackoffMax", c.BackoffMax},
		{"DialTimeout", c.DialTimeout},
	} {
		if f.value < 0 {
			fault("%s is %v; it cannot be below 0", f.name, f.value)
		}
	}
	if r := c.withDefaults(); r.BackoffMax < r.BackoffMin {
		fault("BackoffMax is %v; it cannot be below BackoffMin, which is %v", r.BackoffMax, r.BackoffMin)
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	c.Generation = cmp.Or(c.Generation, 1)
	c.HomeWait = cmp.Or(c.HomeWait, 5*time.Second)
	c.Debounce = cmp.Or(c.Debounce, 200*time.Millisecond)
	c.Pace = cmp.Or(c.Pace, time.Second)
	c.BackoffMin = cmp.Or(c.BackoffMin, time.Second)
	c.BackoffMax = cmp.Or(c.BackoffMax, 30*time.Second)
	c.DialTimeout = cmp.Or(c.DialTimeout, 10*time.Second)
	c.MaxHops = cmp.Or(c.MaxHops, 2)
	return c
}

func (c Config) backoff() pause.Backoff {
	return pause.Backoff{Min: c.BackoffMin, Max: c.BackoffMax}
}
