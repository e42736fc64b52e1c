// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// The defaults of [Config].
const (
	DefaultStable      = 10 * time.Second
	DefaultPatience    = 60 * time.Second
	DefaultInFlight    = 8
	DefaultInterval    = 20 * time.Millisecond
	DefaultMoveTimeout = 10 * time.Second
	DefaultRetryPause  = time.Second
	DefaultLinger      = time.Second
)

// Config says how a gateway settles. The zero value of every field is its
// default; to have as good as none of a duration, give it a nanosecond.
type Config struct {
	// Stable is for how long no gateway must have come, gone, started anew,
	// drained or been suspect before anybody moves; nor must anybody be on hold when it begins. 0: 10 s.
	Stable time.Duration
	// Patience is for how long nothing may get on: the fleet does not become
	// stable, or nobody can be moved although somebody should be. 0: 60 s.
	Patience time.Duration

	Budget      int           // the most that this gateway tells to move, whatever others do; 0: as many as it takes
	InFlight    int           // moves under way at once; 0: 8
	Interval    time.Duration // between one move and the next, so that nobody is flooded; 0: 20 ms
	MoveTimeout time.Duration // one that has not moved so long after it was told has failed; 0: 10 s, the time of one dial
	RetryPause  time.Duration // a gateway that keeps no place is not asked again sooner, other than with a higher limit; 0: 1 s
	Linger      time.Duration // there must be nothing to give for so long, for counts to arrive; and so long to wait for each whose turn comes first; 0: 1 s
}

// Validate reports every fault of the configuration, each naming its field.
func (c Config) Validate() error {
	var errs []error
	for _, d := range []struct {
		field string
		value time.Duration
	}{
		{"Stable", c.Stable},
		{"Patience", c.Patience},
		{"Interval", c.Interval},
		{"MoveTimeout", c.MoveTimeout},
		{"RetryPause", c.RetryPause},
		{"Linger", c.Linger},
	} {
		if d.value < 0 {
			errs = append(errs, fmt.Errorf("settle: Config.%s is %v; it cannot be below 0 (0 is the default; for none, say 1ns)", d.field, d.value))
		}
	}
	for _, n := range []struct {
		field string
		value int
	}{{"Budget", c.Budget}, {"InFlight", c.InFlight}} {
		if n.value < 0 {
			errs = append(errs, fmt.Errorf("settle: Config.%s is %d; it cannot be below 0", n.field, n.value))
		}
	}
	if r := c.resolved(); len(errs) == 0 && r.Patience < r.Stable {
		errs = append(errs, fmt.Errorf("settle: Config.Patience is %v; it cannot be below Stable, which is %v", r.Patience, r.Stable))
	}
	return errors.Join(errs...)
}

// resolved returns a copy with every default in its place.
func (c Config) resolved() Config {
	c.Stable = cmp.Or(c.Stable, DefaultStable)
	c.Patience = cmp.Or(c.Patience, DefaultPatience)
	c.InFlight = cmp.Or(c.InFlight, DefaultInFlight)
	c.Interval = cmp.Or(c.Interval, DefaultInterval)
	c.MoveTimeout = cmp.Or(c.MoveTimeout, DefaultMoveTimeout)
	c.RetryPause = cmp.Or(c.RetryPause, DefaultRetryPause)
	c.Linger = cmp.Or(c.Linger, DefaultLinger)
	return c
}
