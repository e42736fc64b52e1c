// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"strings"

	"github.com/evenring/evenring/ring"
)

// Step is one step of a plan for [Predict]: one of [Stop], [Start], [Crash],
// [Join], [Arrive], [Leave] and [Settle]. Each is over, and everybody who it
// concerns attached again, before the next begins; what happens at once is one step.
// Its text is short, as in "stop gw-1".
type Step interface {
	fmt.Stringer
	step()
}

// Stop drains these gateways, all at once: each hands everybody over, and they leave the
// fleet. Whom nobody can take waits until a gateway starts.
type Stop []ring.GatewayID

// Start starts gateways again, under the IDs that they had when they stopped
// or crashed: new incarnations that serve nobody. A gateway that the view
// shows as starting is ready from here on. Those who wait arrive once all have started.
type Start []ring.GatewayID

// Crash ends these gateways without a word, all at once. They are suspect from the first
// moment, whom they served is placed anew among the others, and they leave the fleet.
type Crash []ring.GatewayID

// Join starts gateways under IDs that the fleet has not had yet. Nobody moves
// because of it; those who wait arrive once all have started.
type Join []ring.GatewayID

// Arrive brings newcomers, one after the other. Their made-up IDs are
// "arrival/0", "arrival/1" and so on over the whole plan, without those that are taken.
type Arrive struct{ Count int }

// Leave ends streams cleanly. Who goes is decided by hash, so that they come
// from everywhere: the first in the order of their slots, and then of their IDs.
type Leave struct {
	Count int
	From  ring.GatewayID // only from there; empty: from anywhere, those who wait included
}

// Settle carries out what [View.Settle] plans. Of those a gateway gives, the ones
// that a stop or a crash had displaced go first, and then it goes by ID.
type Settle struct {
	Budget int // moves at most; 0: as many as it takes
}

func (Stop) step()   {}
func (Start) step()  {}
func (Crash) step()  {}
func (Join) step()   {}
func (Arrive) step() {}
func (Leave) step()  {}
func (Settle) step() {}

func named(verb string, ids []ring.GatewayID) string {
	words := []string{verb}
	for _, id := range ids {
		words = append(words, string(id))
	}
	return strings.Join(words, " ")
}

// String returns the step's text, such as "stop gw-1 gw-2".
func (s Stop) String() string { return named("stop", s) }

// String returns the step's text, such as "start gw-1".
func (s Start) String() string { return named("start", s) }

// String returns the step's text, such as "crash gw-1".
func (s Crash) String() string { return named("crash", s) }

// String returns the step's text, such as "join gw-4".
func (s Join) String() string { return named("join", s) }

// String returns the step's text, such as "arrive 10".
func (s Arrive) String() string { return fmt.Sprint("arrive ", s.Count) }

// String returns the step's text, such as "leave 10" or "leave 10 from gw-1".
func (s Leave) String() string {
	if s.From == "" {
		return fmt.Sprint("leave ", s.Count)
	}
	return fmt.Sprintf("leave %d from %s", s.Count, s.From)
}

// String returns the step's text, "settle" or, with a budget, such as "settle 5".
func (s Settle) String() string {
	if s.Budget == 0 {
		return "settle"
	}
	return fmt.Sprint("settle ", s.Budget)
}
