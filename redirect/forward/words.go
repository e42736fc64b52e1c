// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"github.com/evenring/evenring/placement/roster"
)

// Event is what happens to a [Machine]: one of [Begin], [Routed], [Answered],
// [Tick] and [Stop].
type Event interface{ event() }

// Begin starts the request. Route says who has the member now. Only the first one does anything.
type Begin struct{ Route roster.Route }

// Routed says who has the member now. It is good for the next decision: give
// the newest one before an [Answered], and, while the machine waits, whenever it
// may have changed.
type Routed struct{ Route roster.Route }

// Answered is what became of a [Send].
type Answered struct {
	Attempt int // of the Send; of any other it changes nothing
	Outcome Outcome
}

// Tick says that time has passed; see [Machine.Deadline].
type Tick struct{}

// Stop says that nobody waits for the answer any more.
type Stop struct{}

func (Begin) event()    {}
func (Routed) event()   {}
func (Answered) event() {}
func (Tick) event()     {}
func (Stop) event()     {}

// Outcome is what became of one attempt. The set is closed and the texts are
// stable: metric label and log word in one.
type Outcome uint8

// The outcomes. The zero value, and any that is not known, is the one to be careful with.
const (
	Uncertain Outcome = iota // it may have been executed, and there is no answer
	Replied                  // there is an answer, which may be an error of the member's own
	NotHere                  // it was not executed: the gateway does not have the member
	NotSent                  // it was not executed: it has not reached the gateway
	outcomeCount
)

var outcomeText = [outcomeCount]string{"uncertain", "replied", "not-here", "not-sent"}

// String returns the outcome's stable text.
func (o Outcome) String() string {
	if o < outcomeCount {
		return outcomeText[o]
	}
	return outcomeText[Uncertain]
}

// Outcomes returns every outcome, in order.
func Outcomes() []Outcome {
	all := make([]Outcome, outcomeCount)
	for i := range all {
		all[i] = Outcome(i)
	}
	return all
}

// Action is what a [Machine] wants done: [Send] or [Finish].
type Action interface{ action() }

// Send wants the request given to To: delivered to a stream here if To is this
// gateway, forwarded otherwise. Answer with an [Answered]; one at a time is asked for.
type Send struct {
	Attempt int // counted from 1
	To      roster.Holder
}

// Finish says that the request is over. It comes once.
type Finish struct{ Reason Reason }

func (Send) action()   {}
func (Finish) action() {}

// Reason says how a request ended. The set is closed and the texts are stable:
// metric label, log word and wire word in one.
type Reason uint8

// The reasons. But for Done and Lost the request was not executed; Stopped: not that it is known.
const (
	None        Reason = iota // it has not
	Done                      // the member has answered
	Nobody                    // no gateway has the member
	Incomplete                // no gateway is known to have it, and not all that they have is known here
	Away                      // its stream broke, or it has just left, and it has not come back in time
	Missed                    // the gateways that should have it do not
	Unreachable               // the gateways that have it could not be reached
	Lost                      // it may have been executed; the answer is lost
	Stopped                   // nobody waits for the answer any more
	reasonCount
)

var reasonText = [reasonCount]string{
	"none", "done", "nobody", "incomplete", "away", "missed", "unreachable", "lost", "stopped",
}

// String returns the reason's stable text.
func (r Reason) String() string {
	if r < reasonCount {
		return reasonText[r]
	}
	return reasonText[None]
}

// Reasons returns every reason, in order.
func Reasons() []Reason {
	all := make([]Reason, reasonCount)
	for i := range all {
		all[i] = Reason(i)
	}
	return all
}

// State is where a [Machine] is.
type State uint8

// The states of a request.
const (
	Idle    State = iota // not begun
	Sending              // an attempt is under way
	Waiting              // for news of the member
	Over                 // for good
)

var stateText = [...]string{"idle", "sending", "waiting", "over"}

// String returns the state's stable text.
func (s State) String() string {
	if int(s) < len(stateText) {
		return stateText[s]
	}
	return "unknown"
}
