// SPDX-License-Identifier: Apache-2.0

// Package herd lets a whole fleet of supervisors arrive at once, as newcomers
// and through a Service that picks a gateway at random, while the gateways'
// views are stale, and measures how evenly they end. The same wave can be
// placed by this library's own machines, with and without a peer link, and by
// the simple rules that somebody would write otherwise.
package herd

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/evenring/evenring/ring"
)

// Stale is the Refresh of a wave throughout which every view is that of its
// start, when nobody was served.
const Stale = 100

// DefaultLatency is the longest that a message takes from one end to the other,
// if a wave does not say.
const DefaultLatency = 20 * time.Millisecond

// Wave is a fleet that arrives, and how fresh the views are meanwhile.
type Wave struct {
	Gateways    int           // at least 1
	Supervisors int           // at least 1
	Refresh     int           // every view is brought up to date whenever gateways serve so many percent more; 0: Stale
	Over        time.Duration // arrivals are spread over so much time; 0: all at once
	Latency     time.Duration // the longest way of a message; the shortest takes 1 ms, or this if it is less. 0: DefaultLatency. Simple rules take no time
	Seed        uint64        // decides everything that is left to chance
}

// Validate reports every fault, each naming its field.
func (w Wave) Validate() error {
	var errs []error
	if w.Gateways < 1 {
		errs = append(errs, fmt.Errorf("herd: Wave.Gateways is %d; at least 1 is needed", w.Gateways))
	}
	if w.Supervisors < 1 {
		errs = append(errs, fmt.Errorf("herd: Wave.Supervisors is %d; at least 1 is needed", w.Supervisors))
	}
	if w.Refresh < 0 || w.Refresh > Stale {
		errs = append(errs, fmt.Errorf("herd: Wave.Refresh is %d; it must be from 0 to %d", w.Refresh, Stale))
	}
	if w.Over < 0 {
		errs = append(errs, fmt.Errorf("herd: Wave.Over is %v; it cannot be below 0", w.Over))
	}
	if w.Latency < 0 {
		errs = append(errs, fmt.Errorf("herd: Wave.Latency is %v; it cannot be below 0", w.Latency))
	}
	return errors.Join(errs...)
}

// limit is the even share, rounded up.
func (w Wave) limit() int { return (w.Supervisors + w.Gateways - 1) / w.Gateways }

// gateways returns the IDs.
func (w Wave) gateways() []ring.GatewayID {
	ids := make([]ring.GatewayID, w.Gateways)
	for i := range ids {
		ids[i] = ring.GatewayID(fmt.Sprint("gw-", i))
	}
	return ids
}

// member names a supervisor. Every seed has others, and so other owners.
func (w Wave) member(i int) ring.MemberID {
	return ring.MemberID(fmt.Sprintf("s%d-%d", w.Seed, i))
}

func (w Wave) stale() bool { return w.Refresh == 0 || w.Refresh == Stale }

func (w Wave) latency() time.Duration { return cmp.Or(w.Latency, DefaultLatency) }

// due reports whether views are brought up to date once so many are served.
func (w Wave) due(served int) bool {
	return !w.stale() && served%max(1, w.Supervisors*w.Refresh/100) == 0
}

// Outcome is how one wave has ended.
type Outcome struct {
	Served    []int         // by gateway, in no order
	Dials     Tally         // up to the verdict that accepts
	Asks      Tally         // questions put to gateways
	Questions Questions     // what became of them
	Refreshes int           // how often every view was brought up to date
	Took      time.Duration // virtual, until everybody was served; 0 of a simple rule
	Order     uint64        // a hash of what happened in which order: waves of as many on as many with the same one went the same way. 0 of a simple rule
}

// Overshoot returns by how many percent the fullest gateway is above the cap; 0 if it is not.
func (o Outcome) Overshoot() float64 {
	total := 0
	for _, n := range o.Served {
		total += n
	}
	limit := Wave{Gateways: len(o.Served), Supervisors: total}.limit()
	return 100 * float64(max(0, slices.Max(o.Served)-limit)) / float64(limit)
}

// Spread returns most minus fewest served.
func (o Outcome) Spread() int { return slices.Max(o.Served) - slices.Min(o.Served) }

// Tally is a figure over supervisors.
type Tally struct {
	Supervisors int
	Total       int
	Worst       int
}

// Mean returns the figure per supervisor; 0 if there is none.
func (t Tally) Mean() float64 { return float64(t.Total) / float64(max(1, t.Supervisors)) }

func (t *Tally) add(n int) {
	t.Supervisors++
	t.Total += n
	t.Worst = max(t.Worst, n)
}

func (t *Tally) merge(other Tally) {
	t.Supervisors += other.Supervisors
	t.Total += other.Total
	t.Worst = max(t.Worst, other.Worst)
}
