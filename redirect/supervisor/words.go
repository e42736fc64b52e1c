// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
)

// State is what a supervisor is doing.
type State uint8

// The states. The package comment draws how they follow each other.
const (
	Idle     State = iota // not started
	Dialing               // no stream; a dial is in flight
	Attached              // a stream, and nothing else to do
	Moving                // a stream, and another dial in flight or planned
	Waiting               // no stream; a dial is planned
	Stopped               // for good
)

var stateText = [...]string{"idle", "dialing", "attached", "moving", "waiting", "stopped"}

// String returns the state's stable text.
func (s State) String() string {
	if int(s) < len(stateText) {
		return stateText[s]
	}
	return "unknown"
}

// Connected reports whether there is an accepted stream in this state.
func (s State) Connected() bool { return s == Attached || s == Moving }

// Event is something that happened. Every event is legal in every state; one
// that speaks of another attempt than it should changes nothing.
type Event interface{ event() }

// Start begins. Only the first one does anything.
type Start struct{}

// Answered says that the verdict on an attempt has come.
type Answered struct {
	Generation placement.Generation
	Verdict    redirect.Verdict
}

// Failed says that an attempt has ended without a verdict.
type Failed struct {
	Generation placement.Generation
	Err        error // for observers; the machine does not look at it
}

// Lost says that an accepted stream has ended.
type Lost struct{ Generation placement.Generation }

// Noticed says that the gateway has said something on an accepted stream.
type Noticed struct {
	Generation placement.Generation
	Notice     redirect.Notice
}

// Tick says that the machine's deadline has come. One that comes early or late does no harm.
type Tick struct{}

// Stop ends everything, for good.
type Stop struct{}

func (Start) event()    {}
func (Answered) event() {}
func (Failed) event()   {}
func (Lost) event()     {}
func (Noticed) event()  {}
func (Tick) event()     {}
func (Stop) event()     {}

// Action is something to do, in the order given.
type Action interface{ action() }

// Dial opens a stream to Addr with Hello, whose generation names the attempt in
// every later event and action. The slices of Hello are the receiver's.
type Dial struct {
	Addr    string
	Hello   redirect.Hello
	Timeout time.Duration // up to the verdict; the machine gives up by itself then
	Passed  error         // why a target was passed over for this dial; nil if none was
}

// Abandon ends the wait for a dial's verdict. If it is accepted all the same, a Close follows.
type Abandon struct{ Generation placement.Generation }

// Close ends an accepted stream.
type Close struct{ Generation placement.Generation }

// Adopt says that the stream of Generation is now the supervisor's, and Home
// its home: publish it. If it replaces an older stream, that one's Close follows.
type Adopt struct {
	Generation placement.Generation
	Home       Home
}

// Forget says that the home has been given up before another was found:
// publish that it is not known.
type Forget struct{}

func (Dial) action()    {}
func (Abandon) action() {}
func (Close) action()   {}
func (Adopt) action()   {}
func (Forget) action()  {}
