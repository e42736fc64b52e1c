// SPDX-License-Identifier: Apache-2.0

package placement

// Why says why a gateway on a walk was chosen or passed over. The set is closed and
// the texts are stable. What holds for every member goes before what holds for this
// one, and that before its load.
type Why uint8

// The whys. A text that this version does not know becomes WhyUnknown; it never fails.
const (
	WhyUnknown Why = iota
	WhyChosen      // the decision fell on it; Decision.Reason says more

	WhySuspect    // believed lost
	WhyDraining   // hands over what it has
	WhyStarting   // does not serve yet
	WhyUnheard    // its load is not known
	WhyAvoided    // the member must avoid it
	WhyNoEndpoint // cannot be dialled

	WhyLater      // the chosen one comes before it
	WhyFull       // at the cap, or above
	WhyAboveShare // below the cap, but at the share or above it, and another is below
)

var whyText = [...]string{
	WhyUnknown:    "unknown",
	WhyChosen:     "chosen",
	WhySuspect:    "suspect",
	WhyDraining:   "draining",
	WhyStarting:   "starting",
	WhyUnheard:    "unheard",
	WhyAvoided:    "avoided",
	WhyNoEndpoint: "no-endpoint",
	WhyLater:      "later",
	WhyFull:       "full",
	WhyAboveShare: "above-share",
}

// String returns the stable text.
func (w Why) String() string {
	if int(w) < len(whyText) {
		return whyText[w]
	}
	return whyText[WhyUnknown]
}

// MarshalText implements [encoding.TextMarshaler].
func (w Why) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. It never fails: a text that it does not know is WhyUnknown.
func (w *Why) UnmarshalText(text []byte) error {
	*w = WhyUnknown
	for known, t := range whyText {
		if t == string(text) {
			*w = Why(known)
		}
	}
	return nil
}
