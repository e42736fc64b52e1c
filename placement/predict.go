// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/evenring/evenring/ring"
)

// MaxPredicted is how many supervisors [Predict] takes at most, those who come in the course
// of the plan included. Each takes 100 to 300 bytes.
const MaxPredicted = 10_000_000

// Prediction is what a plan comes to. The zero value is that of no plan for no
// fleet. In JSON a step is its text.
type Prediction struct {
	Before   Outcome               `json:"before"`   // the fleet before the first step
	Steps    []Outcome             `json:"steps"`    // the fleet after each step, in order
	Moves    []int                 `json:"moves"`    // Moves[n] is how many supervisors changed gateway n times, those who have left by the end included; the last is not 0
	Movers   map[ring.MemberID]int `json:"movers"`   // those who did, and how often
	Warnings []string              `json:"warnings"` // what an operator should know beforehand
}

// Outcome is the fleet after a step.
type Outcome struct {
	Step    Step                   `json:"step,omitempty"`    // nil: before the first
	Served  map[ring.GatewayID]int `json:"served"`            // supervisors of each gateway in the fleet, placeable or not, as far as they are known
	Unknown []ring.GatewayID       `json:"unknown,omitempty"` // the others in the fleet: nobody knows whom they serve
	Balance Balance                `json:"balance"`
	Moved   int                    `json:"moved"`   // supervisors that changed gateway in this step
	Waiting int                    `json:"waiting"` // supervisors that no gateway may be given
}

// UnmarshalJSON implements [json.Unmarshaler].
func (o *Outcome) UnmarshalJSON(data []byte) error {
	type plain Outcome
	read := struct {
		*plain
		Step Plan `json:"step"`
	}{plain: (*plain)(o)}
	o.Step = nil
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	switch len(read.Step) {
	case 0:
	case 1:
		o.Step = read.Step[0]
	default:
		return fmt.Errorf("placement: %q is more than one step", read.Step)
	}
	return nil
}

// Predict runs a plan on paper: what each step does to the fleet that v shows,
// by the same rules, and the same code, that the fleet itself goes by. It only reads the view; nil is
// that of no fleet.
//
// Names decide walks, and so who goes where and which gateway gets an odd
// one. who tells who is where: a gateway in it serves exactly those, whatever
// the view counts. It may be nil, and for a gateway that it does not have names are made up,
// "gw-1/0", "gw-1/1" and so on. All of them can follow a redirect and move when they are told to. They
// are placed as the view's own gateway would, which is the only one that may be given newcomers without having an endpoint.
//
// Gateways are at rest between two steps, unless they are not at the start: whoever is held or on the way has
// arrived, of those that stop or crash every time to live has run out, and the ring is that of the gateways that are there. One that is
// draining, suspect or starting at the start remains so until a step of the plan concerns it, and
// keeps whom it serves; whom one of unknown load serves is left out. The warnings say so.
//
// A stop hands over in the order of member IDs, preferring the youngest gateway, and everybody follows. After a
// crash they come back in that order too; in truth it is no order at all, which decides who gets the odd ones, and
// more if the fleet was uneven. Somebody has moved if the gateway that serves them now has another ID than the last one.
//
// A settle begins on every gateway at once, and nobody refuses; a fleet whose gateways do not ask cannot do it. Who gives how many is certain then. What is a matter of milliseconds
// in a fleet is this: with several givers, which of them gives to which receiver, and so which of its
// supervisors go, for those who came from the receiver are the first; if a budget cuts the settle short, which receiver
// gets how many; and if counts take longer to arrive than settle.Config.Interval, which of the receivers get the odd
// ones. Predict lets givers take turns in ID order. Where supervisors came from it knows from the plan
// only: those who are there at the start came from nowhere.
//
// A plan that cannot be carried out, say because a gateway is unknown, is
// an error that names the step, counted from 1, and the gateway; more than [MaxPredicted] supervisors are another. It
// takes time and memory in proportion to all supervisors and the moves, and a few milliseconds for each change of the ring.
func Predict(v *View, who map[ring.GatewayID][]ring.MemberID, plan ...Step) (Prediction, error) {
	if v == nil {
		v = NewView(Picture{})
	}
	f, err := newForecast(v, who)
	if err != nil {
		return Prediction{}, fmt.Errorf("placement: %w", err)
	}
	p := Prediction{Before: f.outcome(nil), Movers: make(map[ring.MemberID]int)}
	for i, s := range plan {
		if s == nil {
			return Prediction{}, fmt.Errorf("placement: step %d is nil", i+1)
		}
		if err := f.apply(s); err != nil {
			return Prediction{}, fmt.Errorf("placement: step %d (%s): %w", i+1, s, err)
		}
		before, after := p.After(), f.outcome(s)
		p.Steps = append(p.Steps, after)
		f.gaps.after(s, after.Balance)
		for _, w := range f.stepWarnings(before, after) {
			p.Warnings = append(p.Warnings, fmt.Sprintf("step %d (%s): %s", i+1, s, w))
		}
	}
	for _, r := range f.all {
		for len(p.Moves) <= r.moves {
			p.Moves = append(p.Moves, 0)
		}
		p.Moves[r.moves]++
		if r.moves > 0 {
			p.Movers[r.id] = r.moves
		}
	}
	p.Warnings = append(p.Warnings, f.planWarnings(p)...)
	return p, nil
}

// After returns the fleet after the last step.
func (p Prediction) After() Outcome {
	if len(p.Steps) == 0 {
		return p.Before
	}
	return p.Steps[len(p.Steps)-1]
}

// outcome is the fleet as it is now.
func (f *forecast) outcome(s Step) Outcome {
	o := Outcome{
		Step: s, Served: make(map[ring.GatewayID]int, len(f.view.gateways)),
		Balance: f.view.Balance(), Moved: f.moved, Waiting: len(f.waiting),
	}
	for _, g := range f.view.gateways {
		if g.Known {
			o.Served[g.ID] = g.Load()
		} else {
			o.Unknown = append(o.Unknown, g.ID)
		}
	}
	return o
}

// String renders the prediction as a table for a terminal: a row for each step,
// a column for each gateway, where ? is a load that nobody knows, and below it the balance at the end, the moves and the warnings.
func (p Prediction) String() string {
	outcomes := append([]Outcome{p.Before}, p.Steps...)
	known := map[ring.GatewayID]bool{}
	waits := false
	for _, o := range outcomes {
		for id := range o.Served {
			known[id] = true
		}
		for _, id := range o.Unknown {
			known[id] = true
		}
		waits = waits || o.Waiting > 0
	}
	ids := slices.Sorted(maps.Keys(known))

	head := []string{""}
	for _, id := range ids {
		head = append(head, word(string(id)))
	}
	head = append(head, "moved")
	if waits {
		head = append(head, "waiting")
	}
	rows := [][]string{head}
	for _, o := range outcomes {
		row := []string{"now"}
		if o.Step != nil {
			row[0] = o.Step.String()
		}
		for _, id := range ids {
			n, here := o.Served[id]
			text := cell(n, here)
			if slices.Contains(o.Unknown, id) {
				text = "?"
			}
			row = append(row, text)
		}
		row = append(row, cell(o.Moved, o.Moved > 0))
		if waits {
			row = append(row, cell(o.Waiting, o.Waiting > 0))
		}
		rows = append(rows, row)
	}

	var b strings.Builder
	write(&b, rows)
	fmt.Fprintln(&b, p.After().Balance)
	for n, k := range p.Moves {
		if n > 0 && k > 0 {
			fmt.Fprintf(&b, "%s %s\n", plural(k, "supervisor moves", "supervisors move"), times(n))
		}
	}
	for _, w := range p.Warnings {
		fmt.Fprintln(&b, "warning:", w)
	}
	return b.String()
}

// write writes rows of equal length, the first column to the left and the others to the right.
func write(b *strings.Builder, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, text := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(text))
		}
	}
	for _, row := range rows {
		fmt.Fprintf(b, "%-*s", widths[0], row[0])
		for i, text := range row[1:] {
			fmt.Fprintf(b, "  %*s", widths[i+1], text)
		}
		b.WriteByte('\n')
	}
}

func cell(n int, shown bool) string {
	if !shown {
		return "-"
	}
	return fmt.Sprint(n)
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	default:
		return fmt.Sprint(n, " times")
	}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return fmt.Sprint(n, " ", one)
	}
	return fmt.Sprint(n, " ", many)
}
