// SPDX-License-Identifier: Apache-2.0

package handoff

import (
	"fmt"
	"math/bits"
	"time"
)

// Plan is how a drain divides its time, in this order, before KillAfter.
type Plan struct {
	Propagation time.Duration // announced, nobody is told to move yet
	Window      time.Duration // the first orders go out
	Confirm     time.Duration // the last ones arrive; at its end what is left is closed
	Margin      time.Duration // half for streams to end, half kept free
	KillAfter   time.Duration // the process is killed
}

// Deadline is the time from the start of the drain to when what is left is
// told to end. Every order goes out before it.
func (p Plan) Deadline() time.Duration { return p.Propagation + p.Window + p.Confirm }

// Total is the time that the plan takes, its margin included.
func (p Plan) Total() time.Duration { return p.Deadline() + p.Margin }

// check reports a plan that does not end before the kill timer does. The parts
// are not negative, so that a total that wraps around is caught part by part.
func (p Plan) check() error {
	free := p.KillAfter
	for _, part := range []time.Duration{p.Propagation, p.Window, p.Confirm, p.Margin} {
		if free -= part; free < 0 {
			return fmt.Errorf("handoff: the plan does not fit: Propagation %v + Window %v + Confirm %v + Margin %v is more than KillAfter %v",
				p.Propagation, p.Window, p.Confirm, p.Margin, p.KillAfter)
		}
	}
	return nil
}

// shrunk returns the plan if it fits, and a smaller one if it does not. How
// long an announcement takes is a fact, and the margin is there for a reason:
// they keep up to a quarter of the time each, and the rest is shared.
func (p Plan) shrunk() Plan {
	if p.check() == nil {
		return p
	}
	p.Propagation = min(p.Propagation, p.KillAfter/4)
	p.Margin = min(p.Margin, p.KillAfter/4)
	rest := uint64(p.KillAfter - p.Propagation - p.Margin)
	if want := uint64(p.Window) + uint64(p.Confirm); want > rest {
		p.Window = share(p.Window, rest, want)
		p.Confirm = share(p.Confirm, rest, want)
	}
	return p
}

// share returns d * rest / want, rounded down, for rest < want.
func share(d time.Duration, rest, want uint64) time.Duration {
	hi, lo := bits.Mul64(uint64(d), rest)
	quotient, _ := bits.Div64(hi, lo, want)
	return time.Duration(quotient)
}
