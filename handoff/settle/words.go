// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// Event is what happens to a [Machine]: one of [Begin], [Seen], [Listed],
// [Ordered], [Abort] and [Tick].
type Event interface{ event() }

// Begin starts the settle, and is the first look at the fleet. A machine begins
// once; see [AlreadyBegun].
type Begin struct{ redirect.Sight }

// Seen is the fleet as it is now, with the whereabouts of [Machine.Watched].
// One is due whenever anything in it has changed, and before every other event.
type Seen struct{ redirect.Sight }

// Listed answers [List]. The slice is copied, its order does not matter.
type Listed struct{ Members []redirect.Supervisor }

// Ordered is the result of an [Order].
type Ordered struct {
	Member ring.MemberID
	Result Result
}

// Result is what became of an [Order].
type Result uint8

// The results. The set is closed and the texts are stable.
const (
	Refused Result = iota // the target keeps no place, or did not answer; nobody was told anything
	Absent                // the member is not here any more, or cannot move; nobody was told anything
	Told                  // the member was told to move
)

var resultText = [...]string{"refused", "absent", "told"}

// String returns the result's stable text.
func (r Result) String() string {
	if int(r) < len(resultText) {
		return resultText[r]
	}
	return "unknown"
}

// Abort ends the settle where it stands. Who has moved stays moved.
type Abort struct{}

// Tick says that time has passed; see [Machine.Deadline].
type Tick struct{}

func (Begin) event()   {}
func (Seen) event()    {}
func (Listed) event()  {}
func (Ordered) event() {}
func (Abort) event()   {}
func (Tick) event()    {}

// Action is what a [Machine] wants done: one of [List], [Order], [Finished]
// and [AlreadyBegun].
type Action interface{ action() }

// List wants a [Listed]: who is attached now. It comes once.
type List struct{}

// Order wants the target asked to keep a place for the member below the limit,
// and the member told to move if it does. Answer with an [Ordered].
type Order struct {
	Member ring.MemberID
	To     ring.GatewayID
	Limit  int
}

// Finished says that the settle is over.
type Finished struct{ Report Report }

// AlreadyBegun answers a [Begin] that is not the first.
type AlreadyBegun struct{}

func (List) action()         {}
func (Order) action()        {}
func (Finished) action()     {}
func (AlreadyBegun) action() {}

// State is where a [Machine] is.
type State uint8

// The states of a settle.
const (
	Idle    State = iota // not begun
	Waiting              // for the fleet to be stable
	Moving               // supervisors are told to move
	Done                 // over: it moved whom it could
	Ended                // over: it was cut short
)

var stateText = [...]string{"idle", "waiting", "moving", "done", "ended"}

// String returns the state's stable text.
func (s State) String() string {
	if int(s) < len(stateText) {
		return stateText[s]
	}
	return "unknown"
}
