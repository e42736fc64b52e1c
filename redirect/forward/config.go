// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/evenring/evenring/ring"
)

// The defaults of [Config].
const (
	DefaultPatience = 2 * time.Second
	DefaultSettle   = 250 * time.Millisecond
)

// Config says how one request is treated. The zero value of a duration is its
// default; to have as good as none, give it a nanosecond.
type Config struct {
	Self ring.GatewayID // this gateway; required, and set by [Call]

	// Patience is how long a request waits for a member that is known of and
	// cannot be reached now: its stream broke, or it has just moved. 0: 2 s.
	Patience time.Duration
	// Settle is how long it waits for word of a member that nobody is known to
	// have: word that it has left one gateway may overtake word that it has
	// reached another. 0: 250 ms.
	Settle time.Duration

	// Forwarded: another gateway has sent the request here, and it goes no
	// further. One that is not expected here is not waited for.
	Forwarded bool
	// Idempotent: executing the request twice does no harm. Set by [Call].
	Idempotent bool
}

// Validate reports every fault, each naming its field.
func (c Config) Validate() error {
	var errs []error
	if c.Self == "" {
		errs = append(errs, errors.New("forward: Config.Self is empty"))
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{
		{"Patience", c.Patience},
		{"Settle", c.Settle},
	} {
		if d.value < 0 {
			errs = append(errs, fmt.Errorf("forward: Config.%s is %v; it cannot be below 0 (0 is the default; for none, say 1ns)", d.field, d.value))
		}
	}
	return errors.Join(errs...)
}

// resolved returns a copy with every default in its place.
func (c Config) resolved() Config {
	c.Patience = cmp.Or(c.Patience, DefaultPatience)
	c.Settle = cmp.Or(c.Settle, DefaultSettle)
	return c
}
