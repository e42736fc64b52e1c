// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"

	"github.com/evenring/evenring/ring"
)

// Incarnation tells two starts of a gateway under one ID apart. It grows with
// every start; the usual source is the clock, in nanoseconds since 1970. Zero is no
// incarnation: it stands for "never seen".
type Incarnation uint64

// Generation is raised by a supervisor with every attempt to connect, across
// restarts of its process too (start it from the clock). Of two claims on one
// member, the higher generation is right. Zero is no generation.
type Generation uint64

// State is what a gateway says of itself.
type State uint8

// The states of a gateway. The zero value is Starting: a gateway of which
// nothing is known takes nobody.
const (
	Starting State = iota // not serving yet
	Ready                 // serves, and may be given supervisors
	Draining              // serves what it has, hands it over, takes nobody new
)

var stateText = [...]string{"starting", "ready", "draining"}

// String returns the state's stable text.
func (s State) String() string {
	if int(s) < len(stateText) {
		return stateText[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// ParseState is the inverse of [State.String]. A word that it does not know is
// Starting: such a gateway takes nobody.
func ParseState(text string) State {
	for _, s := range []State{Ready, Draining} {
		if s.String() == text {
			return s
		}
	}
	return Starting
}

// MarshalText implements [encoding.TextMarshaler].
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler], as [ParseState] has it: it never fails.
func (s *State) UnmarshalText(text []byte) error {
	*s = ParseState(string(text))
	return nil
}

// Counts are one gateway's own figures at one moment. Only the gateway they
// speak of makes them; others pass them on. Of two Counts of one gateway the
// Newer is right, whatever way it came.
type Counts struct {
	Incarnation Incarnation `json:"incarnation,string"` // of the gateway that counted
	Sequence    uint64      `json:"sequence,string"`    // grows with every change of the figures below, within one incarnation

	Attached int `json:"attached"` // supervisors with a stream here
	Held     int `json:"held"`     // supervisors whose stream broke uncleanly and who are still expected back
	Reserved int `json:"reserved"` // places kept for supervisors that are neither attached nor held here
}

// Load is what counts against the cap: everybody who has a place. Figures that
// come to less than nothing are nobody.
func (c Counts) Load() int { return max(0, c.Attached+c.Held+c.Reserved) }

// Newer reports whether c was counted after d.
func (c Counts) Newer(d Counts) bool {
	if c.Incarnation != d.Incarnation {
		return c.Incarnation > d.Incarnation
	}
	return c.Sequence > d.Sequence
}

// Gateway is one gateway as the placing one sees it. The zero value is not
// placeable.
type Gateway struct {
	ID       ring.GatewayID `json:"id"`
	Endpoint string         `json:"endpoint"` // the peer endpoint; empty: cannot be dialled, so never a target
	State    State          `json:"state"`
	Suspect  bool           `json:"suspect"` // believed lost before its time-to-live has run out
	Known    bool           `json:"known"`   // Counts are known; unknown is not zero
	Counts                  // what the gateway itself said, less those who are known to be served elsewhere by now

	Promised int `json:"promised"` // places that the one who looks has promised here without asking, and whose members have not shown up (see [Ledger])
}

// Placeable reports whether the gateway may be given a supervisor: ready, not
// draining, not suspect, its load known. (Whether it can be reached is a
// question of its endpoint, and does not matter for the gateway itself.)
func (g Gateway) Placeable() bool { return g.State == Ready && !g.Suspect && g.Known }

// unfit says why it is not placeable.
func (g Gateway) unfit() Why {
	silent := g.State == Starting && g.Incarnation == 0 // nothing was ever heard of it
	switch {
	case g.Suspect:
		return WhySuspect
	case g.State == Draining:
		return WhyDraining
	case g.State == Ready, silent && !g.Known:
		return WhyUnheard
	default:
		return WhyStarting
	}
}

// condition is a word on whether it is placeable, or why it is not.
func (g Gateway) condition() string {
	if g.Placeable() {
		return g.State.String()
	}
	switch g.unfit() {
	case WhySuspect:
		return "suspect"
	case WhyUnheard:
		return "unknown"
	default:
		return g.State.String()
	}
}
