// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/evenring/evenring/ring"
)

// Explanation is a decision together with everybody who was on the walk.
type Explanation struct {
	Member      ring.MemberID
	Decision    Decision
	Rank        int    // of the chosen gateway on the walk, 0 for the first; -1: none was chosen
	Live        int    // with the newcomer
	Placeable   int    // gateways that the live are divided by: those that may be given supervisors, and need not be avoided
	Rivals      int    // gateways that a fresh promise is taken to have been made by as well
	Fingerprint uint64 // of the ring; gateways that agree on it agree on every walk
	Walk        []Candidate
}

// Candidate is one gateway on a member's walk.
type Candidate struct {
	Gateway Gateway
	Load    int    // as this request counts it: attached, held, reserved and promised, the member itself left out
	Chosen  bool   // the decision fell on it
	Why     string // a few words: why it was chosen or passed over
}

// Explain makes the same decision as [View.Place] and tells how it came about:
// every gateway in walk order with its load, its state, and why it was passed
// over.
func (v *View) Explain(r Request) Explanation {
	if r.Prefer == "" {
		r.Prefer = r.Home
	}
	d := v.Place(r)
	e := Explanation{Member: r.Member, Decision: d, Rank: -1, Live: v.live, Placeable: v.divisor(&r), Rivals: v.rivals, Fingerprint: v.ring.Fingerprint()}
	if r.Home == "" {
		e.Live++
	}
	prefer := v.position(r.Prefer)
	if d.Reason == Full {
		prefer = -1
	}
	passed := false
	for i := range v.walk(r.Member, prefer) {
		g := v.gateways[i]
		c := Candidate{Gateway: g, Load: v.load(&r, &g), Chosen: g.ID == d.Gateway}
		c.Why = v.why(r, d, c, passed)
		if c.Chosen {
			e.Rank, passed = len(e.Walk), true
		}
		e.Walk = append(e.Walk, c)
	}
	return e
}

func (v *View) why(r Request, d Decision, c Candidate, passed bool) string {
	g := c.Gateway
	switch {
	case c.Chosen && d.Reason == Full:
		return "chosen: nobody has room, and it comes first"
	case c.Chosen && r.Home == g.ID:
		return fmt.Sprintf("chosen: its home, below %d", d.Limit)
	case c.Chosen:
		return fmt.Sprintf("chosen: the first below %d", d.Limit)
	case slices.Contains(r.Avoid, g.ID):
		return "the supervisor avoids it"
	case !g.Placeable():
		return "takes nobody"
	case !v.target(&g):
		return "no endpoint"
	case passed:
		return "after the chosen one"
	case c.Load >= d.Cap:
		return fmt.Sprintf("at the cap of %d", d.Cap)
	case c.Load >= d.Limit:
		return fmt.Sprintf("others are below the share of %d", d.Share)
	default:
		return "promised to others already"
	}
}

// String renders the explanation as a table for a terminal.
func (e Explanation) String() string {
	var b strings.Builder
	d := e.Decision
	target := string(d.Gateway)
	if target == "" {
		target = "wherever it came"
	}
	fmt.Fprintf(&b, "%s -> %s (%s): %d live on %d gateways, share %d, cap %d\n", e.Member, target, d.Reason, e.Live, e.Placeable, d.Share, d.Cap)
	fmt.Fprintf(&b, "ring %016x, view %d, %s old\n", e.Fingerprint, d.Version, d.Age.Round(time.Millisecond))
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for i, c := range e.Walk {
		g := c.Gateway
		load := "?"
		if g.Known {
			load = fmt.Sprintf("%d (%d attached, %d held, %d reserved", c.Load, g.Attached, g.Held, g.Reserved)
			if n := g.Promised; n > 0 {
				load += fmt.Sprintf(", %d promised", n)
			}
			load += ")"
		}
		fmt.Fprintf(w, "  %d\t%s\t%s\t%s\t%s\n", i, g.ID, g.condition(), load, c.Why)
	}
	_ = w.Flush() // a strings.Builder takes everything
	return b.String()
}
