// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"maps"
	"slices"
	"sync"

	"github.com/evenring/evenring/redirect/forward"
)

// Calls counts calls from what is seen of them: give its Observe to
// [forward.Hooks]. The zero value has counted none. It is safe for concurrent use.
type Calls struct {
	mu    sync.Mutex
	stats CallStats
}

// CallStats is what was counted of the calls up to one moment. A missing entry is 0.
// The maps are the reader's own.
type CallStats struct {
	Made      map[forward.Reason]uint64  // calls made at this gateway, by how they ended
	Forwarded map[forward.Reason]uint64  // calls that another gateway forwarded here, by how they ended here
	Attempts  map[forward.Outcome]uint64 // times that one was given to its member's stream here, or to another gateway
	Waits     uint64                     // times that one began to wait for word of its member
}

// Observe counts one step of a call. One that the machine ignored counts nothing.
func (c *Calls) Observe(o forward.Observation) {
	outcome, attempted := attempt(o)
	waits := o.Before != forward.Waiting && o.After == forward.Waiting
	reason, ended := end(o)
	if !attempted && !waits && !ended {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if attempted {
		c.stats.Attempts = count(c.stats.Attempts, outcome)
	}
	if waits {
		c.stats.Waits++
	}
	switch {
	case ended && o.Forwarded:
		c.stats.Forwarded = count(c.stats.Forwarded, reason)
	case ended:
		c.stats.Made = count(c.stats.Made, reason)
	}
}

// Stats returns what has been counted so far.
func (c *Calls) Stats() CallStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return CallStats{
		Made: maps.Clone(c.stats.Made), Forwarded: maps.Clone(c.stats.Forwarded), Attempts: maps.Clone(c.stats.Attempts),
		Waits: c.stats.Waits,
	}
}

// attempt returns what became of the attempt that a step ends; false: it ends none.
func attempt(o forward.Observation) (forward.Outcome, bool) {
	if o.Before != forward.Sending || o.After == forward.Sending && len(o.Actions) == 0 {
		return 0, false
	}
	switch event := o.Event.(type) {
	case forward.Answered:
		return event.Outcome, true
	case forward.Stop:
		return forward.Uncertain, true
	default:
		return 0, false
	}
}

// end returns how the call ended, if it did so in this step.
func end(o forward.Observation) (forward.Reason, bool) {
	for _, action := range o.Actions {
		if finish, ok := action.(forward.Finish); ok {
			return finish.Reason, true
		}
	}
	return forward.None, false
}

// count adds one, to a map that is nil as long as it is empty.
func count[K comparable](counts map[K]uint64, key K) map[K]uint64 {
	if counts == nil {
		counts = make(map[K]uint64)
	}
	counts[key]++
	return counts
}

// callEnds are the ways in which a call can have ended.
var callEnds = slices.DeleteFunc(forward.Reasons(), func(r forward.Reason) bool { return r == forward.None })
