// SPDX-License-Identifier: Apache-2.0

package handoff

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// The defaults of [Config].
const (
	DefaultPropagation  = 3 * time.Second
	DefaultWindow       = 10 * time.Second
	DefaultConfirm      = 10 * time.Second
	DefaultMargin       = time.Second
	DefaultKillAfter    = 30 * time.Second
	DefaultOrderTimeout = 10 * time.Second
	DefaultRetryPause   = time.Second
	DefaultLinger       = 2 * time.Second
	DefaultInFlight     = 1024
)

// Config says how a gateway is drained. The zero value of every field is its
// default; to have as good as none of a duration, give it a nanosecond.
type Config struct {
	Propagation time.Duration // for the announcement to reach every peer, before anybody is told to move; 0: 3 s
	Window      time.Duration // over which the first orders are spread; 0: 10 s
	Confirm     time.Duration // after the window, for the last ones to arrive and for failures to be offered again; 0: 10 s, the time of one dial
	Margin      time.Duration // before the kill timer: half to close what is left, half kept free to leave; 0: 1 s

	// KillAfter is when the process will be killed, counted from the start of
	// the drain: in Kubernetes, terminationGracePeriodSeconds less what has
	// passed of it. 0: 30 s.
	KillAfter time.Duration
	// Shrink makes a plan that does not fit KillAfter smaller, instead of an
	// error: Propagation and Margin to a quarter of it each, if they are longer,
	// then Window and Confirm in proportion to what is left.
	Shrink bool

	// Keep serves whoever is left at the end on, instead of closing: for a gateway
	// that should be empty, and that nobody is about to kill. It stays draining, and
	// takes nobody new, until redirect.Gateway.StopDrain.
	Keep bool

	OrderTimeout time.Duration // one that was told to move is not asked again sooner; 0: 10 s, the time of one dial
	RetryPause   time.Duration // one for whom there was no target is not offered again sooner; 0: 1 s
	Linger       time.Duration // after the last one has gone, for its sessions to follow and for word of where it went; 0: 2 s
	InFlight     int           // orders under way at once, for choosing a target asks peers and takes time: the more wait, the more are looked for at a time; 0: 1024

	// Jitter returns numbers in [0, 1), for the place of an order within its
	// share of the window. nil: always 0.5 in a [Machine]; math/rand/v2 in [Drain].
	Jitter func() float64
}

// Validate reports every fault of the configuration, each naming its field,
// and a plan that does not fit with its numbers.
func (c Config) Validate() error {
	var errs []error
	for _, d := range []struct {
		field string
		value time.Duration
	}{
		{"Propagation", c.Propagation},
		{"Window", c.Window},
		{"Confirm", c.Confirm},
		{"Margin", c.Margin},
		{"KillAfter", c.KillAfter},
		{"OrderTimeout", c.OrderTimeout},
		{"RetryPause", c.RetryPause},
		{"Linger", c.Linger},
	} {
		if d.value < 0 {
			errs = append(errs, fmt.Errorf("handoff: Config.%s is %v; it cannot be below 0 (0 is the default; for none, say 1ns)", d.field, d.value))
		}
	}
	if c.InFlight < 0 {
		errs = append(errs, fmt.Errorf("handoff: Config.InFlight is %d; it cannot be below 0", c.InFlight))
	}
	if len(errs) == 0 && !c.Shrink {
		errs = append(errs, c.resolved().asked().check())
	}
	return errors.Join(errs...)
}

// Plan returns the times that a drain would keep to: the defaults filled in,
// and shrunk if need be and allowed.
func (c Config) Plan() (Plan, error) {
	if err := c.Validate(); err != nil {
		return Plan{}, err
	}
	return c.resolved().plan(), nil
}

// resolved returns a copy with every default in its place.
func (c Config) resolved() Config {
	c.Propagation = cmp.Or(c.Propagation, DefaultPropagation)
	c.Window = cmp.Or(c.Window, DefaultWindow)
	c.Confirm = cmp.Or(c.Confirm, DefaultConfirm)
	c.Margin = cmp.Or(c.Margin, DefaultMargin)
	c.KillAfter = cmp.Or(c.KillAfter, DefaultKillAfter)
	c.OrderTimeout = cmp.Or(c.OrderTimeout, DefaultOrderTimeout)
	c.RetryPause = cmp.Or(c.RetryPause, DefaultRetryPause)
	c.Linger = cmp.Or(c.Linger, DefaultLinger)
	c.InFlight = cmp.Or(c.InFlight, DefaultInFlight)
	if c.Jitter == nil {
		c.Jitter = func() float64 { return 0.5 }
	}
	return c
}

// asked is the plan as configured, whether it fits or not.
func (c Config) asked() Plan {
	return Plan{
		Propagation: c.Propagation,
		Window:      c.Window,
		Confirm:     c.Confirm,
		Margin:      c.Margin,
		KillAfter:   c.KillAfter,
	}
}

// plan is the plan that is kept to. The configuration is valid and resolved.
func (c Config) plan() Plan {
	p := c.asked()
	if c.Shrink {
		return p.shrunk()
	}
	return p
}
