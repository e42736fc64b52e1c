// SPDX-License-Identifier: Apache-2.0

package redirect

// Reason says why a verdict or a notice is what it is. The set is closed and
// the texts are stable: metric label, log word and wire word in one.
type Reason uint8

// The reasons. A text that this version does not know becomes ReasonUnknown; it never fails.
const (
	ReasonUnknown Reason = iota

	// Where it belongs.
	ReasonPlaced      // the placement chose the gateway, within the cap
	ReasonFull        // everybody is at the cap: the ring's owner takes it all the same
	ReasonUnreachable // those with room did not answer, or too many said no: served where it came
	ReasonLocal       // no gateway is placeable: served where it came
	ReasonStay        // it asked to stay
	ReasonNoRedirect  // it cannot follow a redirect
	ReasonPassedOn    // it was sent here, but this gateway is full and another is not
	ReasonSession     // a child session: it belongs where its supervisor is

	// Why not, or not any more.
	ReasonDraining        // this gateway is stopping
	ReasonStaleGeneration // a newer attempt of the same member is known
	ReasonDuplicateMember // two processes use one member ID in turns
	ReasonBadHello        // the hello is not valid
	ReasonBadProof        // the proof in the hello is forged, or another member's: come back without it
	ReasonSuperseded      // a newer stream of the same member has taken over
	ReasonMoved           // the member is served elsewhere now
	ReasonExpired         // the stream's credentials have run out
	ReasonStopped         // the gateway has stopped
	reasonCount
)

var reasonText = [reasonCount]string{
	ReasonUnknown:         "unknown",
	ReasonPlaced:          "placed",
	ReasonFull:            "full",
	ReasonUnreachable:     "unreachable",
	ReasonLocal:           "local",
	ReasonStay:            "stay",
	ReasonNoRedirect:      "no-redirect",
	ReasonPassedOn:        "passed-on",
	ReasonSession:         "session",
	ReasonDraining:        "draining",
	ReasonStaleGeneration: "stale-generation",
	ReasonDuplicateMember: "duplicate-member",
	ReasonBadHello:        "bad-hello",
	ReasonBadProof:        "bad-proof",
	ReasonSuperseded:      "superseded",
	ReasonMoved:           "moved",
	ReasonExpired:         "expired",
	ReasonStopped:         "stopped",
}

// String returns the reason's stable text.
func (r Reason) String() string {
	if r < reasonCount {
		return reasonText[r]
	}
	return reasonText[ReasonUnknown]
}

// ParseReason is the inverse of [Reason.String]; a text that it does not know is ReasonUnknown.
func ParseReason(text string) Reason {
	for r, t := range reasonText {
		if t == text {
			return Reason(r)
		}
	}
	return ReasonUnknown
}

// Reasons returns every reason, in order.
func Reasons() []Reason {
	all := make([]Reason, reasonCount)
	for i := range all {
		all[i] = Reason(i)
	}
	return all
}
