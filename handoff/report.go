// SPDX-License-Identifier: Apache-2.0

package handoff

import (
	"fmt"
	"time"

	"github.com/evenring/evenring/ring"
)

// Report says what became of every supervisor that was served when the drain
// began: each is in exactly one of the lists, which are sorted by ID. The lists
// belong to the receiver.
type Report struct {
	Moved  []Move          // attached elsewhere
	Closed []ring.MemberID // their streams ended, and where they went is not known
	Left   []LeftBehind    // still here at the end, so told to end; after an abort, or with Config.Keep, served on

	Orders  int           // how many orders were given, repeated ones included
	Took    time.Duration // from the start to the end, or to now if it is not over
	Aborted bool
}

// Move is one supervisor that has moved.
type Move struct {
	Member ring.MemberID
	To     ring.GatewayID
}

// LeftBehind is one supervisor that has not moved.
type LeftBehind struct {
	Member ring.MemberID
	Cause  Cause
}

// Served is how many supervisors the gateway served when the drain began.
func (r Report) Served() int { return len(r.Moved) + len(r.Closed) + len(r.Left) }

// String returns the report in one line, without names.
func (r Report) String() string {
	verb := "drained"
	if r.Aborted {
		verb = "aborted"
	}
	return fmt.Sprintf("%s: served=%d moved=%d closed=%d left=%d orders=%d took=%v",
		verb, r.Served(), len(r.Moved), len(r.Closed), len(r.Left), r.Orders, r.Took)
}

// Cause says why a supervisor was left behind. The set is closed and the
// texts are stable.
type Cause uint8

// The causes.
const (
	NotAsked  Cause = iota // its turn had not come
	Immovable              // it cannot follow an order to move
	Nowhere                // no gateway that could take it was found
	Silent                 // it was told to move, and did not
)

var causeText = [...]string{"not-asked", "immovable", "nowhere", "silent"}

// String returns the cause's stable text.
func (c Cause) String() string {
	if int(c) < len(causeText) {
		return causeText[c]
	}
	return "unknown"
}
