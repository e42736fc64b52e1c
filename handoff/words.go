// SPDX-License-Identifier: Apache-2.0

package handoff

import (
	"time"

	"github.com/evenring/evenring/ring"
)

// Event is what happens to a [Machine]: one of [Begin], [Ordered], [Moved],
// [Closed], [Abort] and [Tick].
type Event interface{ event() }

// Begin starts the drain. The gateway has announced that it drains, and these
// are the supervisors that were attached at that moment; nobody joins them any
// more. The slice is copied, its order does not matter, and of several with
// one ID the first counts. A machine begins once; see [AlreadyBegun].
type Begin struct{ Members []Member }

// Member is one supervisor that the gateway serves.
type Member struct {
	ID      ring.MemberID
	Movable bool // can follow an order to move; one that cannot stays until the end
}

// Ordered is the result of an [Order].
type Ordered struct {
	Member ring.MemberID
	Told   bool           // it was told to move; false: it was not, and is offered again
	Target ring.GatewayID // where to; empty: wherever the Service sends it
}

// Moved says that a member is attached to another gateway.
type Moved struct {
	Member ring.MemberID
	To     ring.GatewayID
}

// Closed says that a member's stream here has ended. Where it went may become
// known later, by a Moved.
type Closed struct{ Member ring.MemberID }

// Abort ends the drain where it stands. Who has moved stays moved.
type Abort struct{}

// Tick says that time has passed; see [Machine.Deadline].
type Tick struct{}

func (Begin) event()   {}
func (Ordered) event() {}
func (Moved) event()   {}
func (Closed) event()  {}
func (Abort) event()   {}
func (Tick) event()    {}

// Action is what a [Machine] wants done: one of [Order], [Close], [Resume],
// [Finished] and [AlreadyBegun].
type Action interface{ action() }

// Order wants the member told to move. Choose the target now, not sooner, and
// answer with an [Ordered]. It is of no use after Until.
type Order struct {
	Member ring.MemberID
	Until  time.Time
}

// Close wants the member's stream ended, because it is still here. A [Closed]
// is to follow.
type Close struct{ Member ring.MemberID }

// Resume wants the gateway to be ready again: the drain was aborted.
type Resume struct{}

// Finished says that the drain is over. It comes again if a member that counts
// as left behind, or as closed, arrives where it was told to go after all.
type Finished struct{ Report Report }

// AlreadyBegun answers a [Begin] that is not the first.
type AlreadyBegun struct{}

func (Order) action()        {}
func (Close) action()        {}
func (Resume) action()       {}
func (Finished) action()     {}
func (AlreadyBegun) action() {}

// State is where a [Machine] is.
type State uint8

// The states of a drain.
const (
	Idle      State = iota // not begun
	Announced              // the announcement spreads; nobody is told to move yet
	Handing                // supervisors are told to move
	Closing                // the streams that were left are told to end
	Done                   // over
	Aborted                // over: the gateway is to be ready again
)

var stateText = [...]string{"idle", "announced", "handing", "closing", "done", "aborted"}

// String returns the state's stable text.
func (s State) String() string {
	if int(s) < len(stateText) {
		return stateText[s]
	}
	return "unknown"
}
