// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"errors"
	"fmt"
	"math"
)

// Defaults and limits of a ring.
const (
	// DefaultSlots is the default of [Config].Slots.
	DefaultSlots = 4099
	// DefaultLoad is the default of [Config].Load.
	DefaultLoad = 1.02
	// MaxSlots is the largest prime below 1<<16: shares are kept in 16 bits.
	MaxSlots = 65521
	// MaxGateways is as many as the table, with owners of 16 bits, can tell
	// apart.
	MaxGateways = 1 << 16
)

// Config shapes a ring. Gateways agree on owners only if they agree on it. The
// zero value is the default.
type Config struct {
	// Slots is the number of slots, a prime of at most [MaxSlots]. 0 means
	// [DefaultSlots], enough that each of some 200 gateways owns several. More
	// slots make finer shares and a slower New; each takes two bytes.
	Slots int

	// Load bounds a gateway's slots to this multiple of the even share (rounded
	// down to whole slots, the bound up). It must be finite and above 1. 0 means
	// [DefaultLoad].
	Load float64
}

// Validate reports every fault of the Config, each naming its field.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	if c.Slots > MaxSlots || !prime(c.Slots) {
		errs = append(errs, fmt.Errorf("ring: Config.Slots is %d; it must be a prime of at most %d", c.Slots, MaxSlots))
	}
	if !(c.Load > 1) || math.IsInf(c.Load, 1) {
		errs = append(errs, fmt.Errorf("ring: Config.Load is %v; it must be finite and above 1", c.Load))
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	if c.Slots == 0 {
		c.Slots = DefaultSlots
	}
	if c.Load == 0 {
		c.Load = DefaultLoad
	}
	return c
}

func prime(n int) bool {
	for d := 2; d*d <= n; d++ {
		if n%d == 0 {
			return false
		}
	}
	return n >= 2
}
