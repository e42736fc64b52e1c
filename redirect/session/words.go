// SPDX-License-Identifier: Apache-2.0

package session

import (
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/supervisor"
	"github.com/evenring/evenring/ring"
)

// Event is something that happened. Every event is legal in every state; one
// that speaks of another attempt than it should changes nothing.
type Event interface{ event() }

// Start begins. Only the first one does anything.
type Start struct{}

// HomeChanged says where the supervisor is served now; the zero Home stands for
// "not known". It may come before Start.
type HomeChanged struct{ Home supervisor.Home }

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

func (Start) event()       {}
func (HomeChanged) event() {}
func (Answered) event()    {}
func (Failed) event()      {}
func (Lost) event()        {}
func (Noticed) event()     {}
func (Tick) event()        {}
func (Stop) event()        {}

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

// Adopt says that the stream of Generation is now the session's. If it replaces
// an older one, that one's Close follows.
type Adopt struct {
	Generation placement.Generation
	Gateway    ring.GatewayID
	AtHome     bool // Gateway is the supervisor's home, as far as that is known
}

func (Dial) action()    {}
func (Abandon) action() {}
func (Close) action()   {}
func (Adopt) action()   {}
