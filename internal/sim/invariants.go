// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"time"

	"github.com/evenring/evenring/ring"
)

// Invariant is one of the promises that a [Watch] holds a world against.
type Invariant int

// The invariants. The first twelve have the numbers of the design.
const (
	OnePlace        Invariant = iota + 1 // at rest everybody is attached to exactly one live gateway, his sessions too, and every view agrees
	NobodyLost                           // whoever can reach a live gateway is attached again within a bound
	Deterministic                        // same state and input, same output
	FourDials                            // at most four dials per placement
	FitTargets                           // nobody is sent to a gateway that is suspect, draining, unready, unknown, without endpoint, or avoided
	NoIdleMoves                          // without an operator's word no healthy stream is asked to move, and who asks to stay may
	WithinCap                            // who is placed is placed within the cap, unless the reason says why not; who is on hold counts
	DrainAccounts                        // a drain accounts for everybody, and gives its last order before its deadline
	NoWayBack                            // what is older changes nothing, and what was lost is repaired
	SumsAgree                            // those served add up to those attached, and nothing is below 0
	FixedPoint                           // timers alone come to rest
	MakeBeforeBreak                      // who is told to move has a working stream all the while
	RunsOnce                             // a request ends, and one that is not idempotent is executed once at most
)

var invariantText = map[Invariant]string{
	OnePlace: "one place", NobodyLost: "nobody lost", Deterministic: "deterministic", FourDials: "four dials",
	FitTargets: "fit targets", NoIdleMoves: "no idle moves", WithinCap: "within the cap", DrainAccounts: "drain accounts",
	NoWayBack: "no way back", SumsAgree: "sums agree", FixedPoint: "fixed point", MakeBeforeBreak: "make before break",
	RunsOnce: "runs once",
}

// String returns its number and name.
func (i Invariant) String() string { return fmt.Sprintf("%d (%s)", int(i), invariantText[i]) }

// Fault is a broken promise.
type Fault struct {
	Invariant Invariant
	At        time.Duration // since the start of the world
	Step      uint64        // of the world
	Who       []string      // gateways and members that have to do with it
	What      string
}

// String returns it in one line.
func (f *Fault) String() string {
	return fmt.Sprintf("step %d, %v: invariant %v: %s", f.Step, f.At, f.Invariant, f.What)
}

// blame notes the first fault.
func (w *Watch) blame(i Invariant, who []string, format string, args ...any) {
	if w.Fault == nil {
		w.Fault = &Fault{Invariant: i, At: w.w.Elapsed(), Step: w.w.steps, Who: who, What: fmt.Sprintf(format, args...)}
	}
}

func names[T ~string](ids ...T) []string {
	all := make([]string, len(ids))
	for i, id := range ids {
		all[i] = string(id)
	}
	return all
}

func both(g *Gateway, m ring.MemberID) []string { return []string{string(g.ID), string(m)} }
