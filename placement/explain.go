// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// Explanation is a decision together with everybody who was on the walk. Its
// JSON has the names below; numbers of 64 bits are strings there, for many readers
// round them beyond 2^53, and words such as a state or a reason are their texts.
type Explanation struct {
	Request     Request     `json:"request"`
	Decision    Decision    `json:"decision"`
	Stale       bool        `json:"stale"`       // the view is not to be relied on, and nobody goes by the decision: whoever comes is served where it came. A [View] does not know; package redirect does
	Rank        int         `json:"rank"`        // of the chosen gateway on the walk, 0 for the first; -1: none was chosen
	Live        int         `json:"live"`        // with the newcomer
	Placeable   int         `json:"placeable"`   // gateways that the live are divided by: those that may be given supervisors, and need not be avoided
	Rivals      int         `json:"rivals"`      // how often a promise counts: once for each gateway that is taken to have made it
	Fingerprint Fingerprint `json:"fingerprint"` // of the ring; gateways that agree on it agree on every walk
	Walk        []Candidate `json:"walk"`
}

// Candidate is one gateway on a member's walk.
type Candidate struct {
	Gateway Gateway `json:"gateway"`
	Load    int     `json:"load"`    // as this request counts it: Gateway.Load() + Rivals*Gateway.Promised - Omitted
	Omitted int     `json:"omitted"` // at home: the member itself, and those on hold there if they are left out with it
	Why     Why     `json:"why"`
}

// Fingerprint is a ring's fingerprint, as package ring computes it. Its text is
// 16 hexadecimal digits.
type Fingerprint uint64

// String returns the fingerprint's text.
func (f Fingerprint) String() string { return fmt.Sprintf("%016x", uint64(f)) }

// MarshalText implements [encoding.TextMarshaler].
func (f Fingerprint) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (f *Fingerprint) UnmarshalText(text []byte) error {
	v, err := strconv.ParseUint(string(text), 16, 64)
	if err != nil {
		return fmt.Errorf("placement: %q is no fingerprint", text)
	}
	*f = Fingerprint(v)
	return nil
}

// Explain makes the same decision as [View.Place] and tells how it came about:
// every gateway in walk order with its load, its state, and why it was passed
// over.
func (v *View) Explain(r Request) Explanation {
	r.Avoid = slices.Clone(r.Avoid)
	d := v.Place(r)
	e := Explanation{
		Request: r, Decision: d, Rank: -1, Live: v.live, Placeable: v.divisor(&r), Rivals: v.rivals,
		Fingerprint: Fingerprint(v.ring.Fingerprint()), Walk: make([]Candidate, 0, len(v.gateways)),
	}
	if r.Home == "" {
		e.Live++
	}
	for i := range v.walk(r.Member, v.begin(r, d)) {
		g := v.gateways[i]
		c := Candidate{Gateway: g, Load: v.load(&r, &g)}
		c.Omitted = g.weighed(v.rivals) - c.Load
		c.Why = v.why(r, d, c, e.Rank >= 0)
		if c.Why == WhyChosen {
			e.Rank = len(e.Walk)
		}
		e.Walk = append(e.Walk, c)
	}
	return e
}

// begin is the position where the walk that made the decision begins, if that is not the owner's; otherwise -1.
func (v *View) begin(r Request, d Decision) int {
	if d.Reason == Full {
		return -1
	}
	return v.position(cmp.Or(r.Prefer, r.Home))
}

// why tells of a candidate; after says that one before it was chosen.
func (v *View) why(r Request, d Decision, c Candidate, after bool) Why {
	g := c.Gateway
	switch {
	case g.ID == d.Gateway:
		return WhyChosen
	case !g.Placeable():
		return g.unfit()
	case slices.Contains(r.Avoid, g.ID):
		return WhyAvoided
	case !v.target(&g):
		return WhyNoEndpoint
	case after && d.Reason != Full:
		return WhyLater
	case c.Load >= d.Cap:
		return WhyFull
	default:
		return WhyAboveShare
	}
}

// String renders the explanation as a table for a terminal.
func (e Explanation) String() string {
	var b strings.Builder
	const here = "wherever it came"
	d := e.Decision
	target, reason := here, d.Reason.String()
	if d.Gateway != "" {
		target = word(string(d.Gateway))
	}
	if e.Stale {
		target, reason = here, fmt.Sprintf("the view is stale; it says %s, %s", target, reason)
	}
	fmt.Fprintf(&b, "%s -> %s (%s): %d live on %s, share %d, cap %d\n",
		word(string(e.Request.Member)), target, reason, e.Live, plural(e.Placeable, "gateway", "gateways"), d.Share, d.Cap)
	if more := e.Request.particulars(); more != "" {
		fmt.Fprintln(&b, more)
	}
	fmt.Fprintf(&b, "ring %s, view %d, %s old\n", e.Fingerprint, d.Version, d.Age.Round(time.Millisecond))
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for i, c := range e.Walk {
		g := c.Gateway
		fmt.Fprintf(w, "  %d\t%s\t%s\t%s\t%s\n", i, word(string(g.ID)), g.condition(), e.load(c), e.sentence(c))
	}
	_ = w.Flush() // a strings.Builder takes everything
	return b.String()
}

// particulars says what the request knows of the member; empty: it is a newcomer like any other.
func (r Request) particulars() string {
	var parts []string
	switch home := word(string(r.Home)); {
	case r.Home == "":
	case r.Promised:
		parts = append(parts, "promised to "+home)
	case r.Held:
		parts = append(parts, "on hold at "+home)
	default:
		parts = append(parts, "at home at "+home)
	}
	if r.Prefer != "" && r.Prefer != r.Home {
		parts = append(parts, "prefers "+word(string(r.Prefer)))
	}
	if len(r.Avoid) > 0 {
		var ids []string
		for _, id := range r.Avoid {
			ids = append(ids, word(string(id)))
		}
		parts = append(parts, "avoids "+strings.Join(ids, " "))
	}
	return strings.Join(parts, ", ")
}

// load shows a candidate's load as the sum that it is.
func (e Explanation) load(c Candidate) string {
	g := c.Gateway
	if !g.Known {
		return "?"
	}
	text := fmt.Sprintf("%d (%d attached, %d held, %d reserved", c.Load, g.Attached, g.Held, g.Reserved)
	if g.Promised > 0 {
		text += fmt.Sprintf(", %d promised", g.Promised)
		if e.Rivals > 1 {
			text += fmt.Sprintf(" x%d", e.Rivals)
		}
	}
	switch {
	case c.Omitted == 0:
	case e.Request.Promised:
		text += "; its own promise left out"
	case c.Omitted == 1:
		text += "; itself left out"
	case e.Request.Held:
		text += "; itself and the others on hold left out"
	default:
		text += "; itself and those on hold left out"
	}
	return text + ")"
}

// sentence says why for a person.
func (e Explanation) sentence(c Candidate) string {
	d := e.Decision
	switch c.Why {
	case WhyChosen:
		switch {
		case d.Reason == Full:
			return "chosen: nobody has room, and it comes first"
		case e.Request.Home == c.Gateway.ID:
			return fmt.Sprintf("chosen: its home, below %d", d.Limit)
		default:
			return fmt.Sprintf("chosen: the first below %d", d.Limit)
		}
	case WhyLater:
		return "after the chosen one"
	case WhySuspect, WhyDraining, WhyStarting:
		return "takes nobody"
	case WhyUnheard:
		return "its load is not known"
	case WhyAvoided:
		return "the supervisor avoids it"
	case WhyNoEndpoint:
		return "no endpoint"
	case WhyFull:
		return fmt.Sprintf("at the cap of %d", d.Cap)
	case WhyAboveShare:
		return fmt.Sprintf("others are below the share of %d", d.Share)
	default:
		return c.Why.String()
	}
}

// word returns an ID as it is, or quoted if it would not be one word in a line.
func word(id string) string {
	odd := func(r rune) bool { return r == ' ' || r == '"' || r == unicode.ReplacementChar || !unicode.IsPrint(r) }
	if id == "" || strings.ContainsFunc(id, odd) {
		return strconv.Quote(id)
	}
	return id
}
