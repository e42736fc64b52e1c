// SPDX-License-Identifier: Apache-2.0

package placement

import "math"

// Reason says why a decision fell on its gateway. The set is closed and the
// texts are stable: metric label and log word in one.
type Reason uint8

// The reasons. Full, Insisted, Unreachable and Nowhere are the exceptions
// under which a gateway may end above the cap.
const (
	Nowhere     Reason = iota // no gateway may be a target: serve locally
	Owner                     // the ring's owner has room
	Overflow                  // the first after it on the walk that has room
	Preferred                 // the gateway that the walk began with has room: its home, or the newest one in a hand-over
	Full                      // nobody has room: the owner, or the first after it that may be a target
	Insisted                  // enough have said no: the least loaded, or the one who looks if it is no fuller
	Unreachable               // those with room did not answer: serve locally
	reasonCount
)

// Unknown is what a text that this version does not know becomes. No decision
// of this version has it, and [Reasons] leaves it out.
const Unknown Reason = math.MaxUint8

var reasonText = [reasonCount]string{
	Nowhere:     "nowhere",
	Owner:       "owner",
	Overflow:    "overflow",
	Preferred:   "preferred",
	Full:        "full",
	Insisted:    "insisted",
	Unreachable: "unreachable",
}

// String returns the reason's stable text.
func (r Reason) String() string {
	if r < reasonCount {
		return reasonText[r]
	}
	return "unknown"
}

// ParseReason is the inverse of [Reason.String]. It never fails: a text that
// it does not know is [Unknown].
func ParseReason(text string) Reason {
	for r, t := range reasonText {
		if t == text {
			return Reason(r)
		}
	}
	return Unknown
}

// MarshalText implements [encoding.TextMarshaler].
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler], as [ParseReason] has it: it never fails.
func (r *Reason) UnmarshalText(text []byte) error {
	*r = ParseReason(string(text))
	return nil
}

// Reasons returns every reason, in order.
func Reasons() []Reason {
	all := make([]Reason, reasonCount)
	for i := range all {
		all[i] = Reason(i)
	}
	return all
}
