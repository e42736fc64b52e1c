// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"fmt"
	"time"

	"github.com/evenring/evenring/handoff"
	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// Report says what a settle came to. The lists are sorted by ID and belong to
// the receiver.
type Report struct {
	Ending Ending
	Moved  []handoff.Move // attached elsewhere
	Failed []Failure      // told to move, and not attached elsewhere in time

	Refused int // questions that were answered with a no, or not at all
	Left    int // how many this gateway would have to give still, by the last look

	Before, After placement.Balance // of the fleet, by the first look and the last
	Took          time.Duration     // from the start to the end, or to now if it is not over
	Unrest        string            // what kept the fleet from being stable, last; empty: nothing
}

// String returns the report in one line, without names.
func (r Report) String() string {
	return fmt.Sprintf("settled: %s, moved=%d failed=%d refused=%d left=%d spread=%d->%d took=%v",
		r.Ending, len(r.Moved), len(r.Failed), r.Refused, r.Left,
		r.Before.Most-r.Before.Fewest, r.After.Most-r.After.Fewest, r.Took)
}

// Failure is one supervisor that was told to move, and did not.
type Failure struct {
	Member ring.MemberID
	To     ring.GatewayID
	Cause  Cause
}

// Cause says how a move failed. The set is closed and the texts are stable.
type Cause uint8

// The causes.
const (
	UnderWay Cause = iota // its time was not over
	Silent                // it is still here
	Vanished              // its stream here ended, and it has not shown up elsewhere
)

var causeText = [...]string{"under-way", "silent", "vanished"}

// String returns the cause's stable text.
func (c Cause) String() string {
	if int(c) < len(causeText) {
		return causeText[c]
	}
	return "unknown"
}

// Ending says why a settle is over. The set is closed and the texts are stable.
type Ending uint8

// The endings.
const (
	Running  Ending = iota // it is not over
	Even                   // this gateway has nothing to give
	Spent                  // the budget is used up
	Stuck                  // somebody should move, but nobody can, or no target keeps a place
	Unstable               // the fleet did not become stable
	Draining               // this gateway drains
	Aborted                // it was told to stop
)

var endingText = [...]string{"running", "even", "spent", "stuck", "unstable", "draining", "aborted"}

// String returns the ending's stable text.
func (e Ending) String() string {
	if int(e) < len(endingText) {
		return endingText[e]
	}
	return "unknown"
}
