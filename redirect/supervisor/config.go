// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect/internal/pause"
	"github.com/evenring/evenring/ring"
)

// Config is what a supervisor is told at its start. The zero value of a field
// is its documented default.
type Config struct {
	Member  ring.MemberID // who dials. Required.
	Service string        // the address in front of all gateways. Required.

	// Generation is the first one to dial with; it must be above all that
	// earlier processes of this member have used. 0: [Run] takes the clock, in
	// nanoseconds since 1970; [New] takes 1.
	Generation placement.Generation

	HomeTries    int           // dials of a lost home before the Service is dialled; 0: 2
	HomePatience time.Duration // time for those; 0: 5 s
	BackoffMin   time.Duration // ceiling of the first pause after a failure; 0: 1 s
	BackoffMax   time.Duration // ceiling of every pause after a failure; 0: 30 s
	DialTimeout  time.Duration // from a dial to its verdict; 0: 10 s
	MaxHops      int           // redirects followed in a row; 0: 2
	MoveDelay    time.Duration // the longest pause before a move without a target; 0: 1 s
	AvoidFor     time.Duration // how long a gateway is avoided, see [redirect.Hello]; 0: 30 s, a gateway's time-to-live

	// Jitter returns a number in [0, 1). nil: Run takes math/rand/v2, New
	// always 0.5, which puts a fleet in step.
	Jitter func() float64

	// Allow is the peer policy: an error keeps a target from being dialled (it
	// is no peer, or would take credentials in the clear), be it of a redirect, of
	// a notice to move, or where home says that it can be dialled again. It
	// reaches the observer in [Dial].Passed. It must not block. [Policy.Allow]
	// fits. nil: every target is allowed; that the transport's credentials hold for
	// every address alike is then what keeps a redirect from doing harm.
	Allow func(gateway ring.GatewayID, endpoint string) error
}

// Validate reports every fault of the config, each naming its field.
func (c Config) Validate() error {
	var errs []error
	fault := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("supervisor: Config."+format, args...))
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
	for _, f := range []struct {
		name  string
		value int
	}{
		{"HomeTries", c.HomeTries},
		{"MaxHops", c.MaxHops},
	} {
		if f.value < 0 {
			fault("%s is %d; it cannot be below 0", f.name, f.value)
		}
	}
	for _, f := range []struct {
		name  string
		value time.Duration
	}{
		{"HomePatience", c.HomePatience},
		{"BackoffMin", c.BackoffMin},
		{"BackoffMax", c.BackoffMax},
		{"DialTimeout", c.DialTimeout},
		{"MoveDelay", c.MoveDelay},
		{"AvoidFor", c.AvoidFor},
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
	c.HomeTries = cmp.Or(c.HomeTries, 2)
	c.HomePatience = cmp.Or(c.HomePatience, 5*time.Second)
	c.BackoffMin = cmp.Or(c.BackoffMin, time.Second)
	c.BackoffMax = cmp.Or(c.BackoffMax, 30*time.Second)
	c.DialTimeout = cmp.Or(c.DialTimeout, 10*time.Second)
	c.MaxHops = cmp.Or(c.MaxHops, 2)
	c.MoveDelay = cmp.Or(c.MoveDelay, time.Second)
	c.AvoidFor = cmp.Or(c.AvoidFor, 30*time.Second)
	return c
}

func (c Config) backoff() pause.Backoff {
	return pause.Backoff{Min: c.BackoffMin, Max: c.BackoffMax}
}
