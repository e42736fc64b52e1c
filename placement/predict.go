// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/evenring/evenring/ring"
)

// Prediction is what a plan comes to. The zero value is that of no plan for no fleet.
type Prediction struct {
	Before   Outcome               // the fleet before the first step
	Steps    []Outcome             // the fleet after each step, in order
	Moves    []int                 // Moves[n] is how many supervisors changed gateway n times; the last is not 0
	Movers   map[ring.MemberID]int // those who did, and how often
	Warnings []string              // what an operator should know beforehand
}

// Outcome is the fleet after a step.
type Outcome struct {
	Step    Step                   // nil: before the first
	Served  map[ring.GatewayID]int // supervisors of each gateway in the fleet, placeable or not
	Balance Balance
	Moved   int // supervisors that changed gateway in this step
	Waiting int // supervisors that no gateway may be given
}

// Predict runs a plan on paper: what each step does to the fleet that v shows,
// by the same rules, and the same code, that the fleet itself goes by. It only reads the view.
//
// Names decide walks, and so who goes where and which gateway gets an odd
// one. who tells who is where: a gateway in it serves exactly those, whatever
// the view counts. It may be nil, and for a gateway that it does not have names are made up,
// "gw-1/0", "gw-1/1" and so on.
//
// Everybody comes to rest between two steps: whoever is held or on the way has arrived,
// holds and times to live have run out, counts are fresh, and the ring is that of the gateways that are there.
// A stop hands over in the order of member IDs, preferring the youngest gateway, and everybody follows. After a
// crash they come back in that order too; in truth it is no order at all, which decides who gets the odd ones, and
// more if the fleet was uneven. Somebody has moved if the gateway that serves them now has another ID than the last one.
//
// A plan that cannot be carried out, say because a gateway is unknown, is
// an error that names the step, counted from 1, and the gateway. It takes time in proportion to those who move,
// and a few milliseconds for each change of the ring.
func Predict(v *View, who map[ring.GatewayID][]ring.MemberID, plan ...Step) (Prediction, error) {
	f, err := newForecast(v, who)
	if err != nil {
		return Prediction{}, err
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
		o.Served[g.ID] = g.Load()
	}
	return o
}

// stepWarnings are about what the last step did.
func (f *forecast) stepWarnings(before, after Outcome) []string {
	var all []string
	lost := before.Balance.Gateways > 0 && after.Balance.Gateways == 0
	if lost || after.Waiting > before.Waiting {
		text := "no gateway is left that may be given supervisors"
		if after.Waiting > 0 {
			text += "; " + plural(after.Waiting, "supervisor waits", "supervisors wait") + " until one starts"
		}
		all = append(all, text)
	}
	s, ok := after.Step.(Settle)
	switch {
	case !ok:
	case after.Balance.Gateways == 0:
		all = append(all, "it is not possible, for no gateway may be given supervisors")
	case after.Balance.Even():
	case after.Moved == s.Budget && s.Budget > 0:
		all = append(all, fmt.Sprintf("its budget does not suffice: %s would make it even", plural(after.Balance.Moves, "more move", "more moves")))
	default:
		all = append(all, fmt.Sprintf("it is not possible to make it even, for %s has no endpoint and nobody can be sent there", after.Balance.Emptiest))
	}
	return all
}

// planWarnings are about where the plan ends.
func (f *forecast) planWarnings(p Prediction) []string {
	var all []string
	end := p.After()
	if end.Waiting > 0 {
		all = append(all, plural(end.Waiting, "supervisor waits", "supervisors wait")+" for a gateway at the end: start one")
	}
	if b := end.Balance; !b.Even() {
		if last, ok := f.leftBehind(end); ok {
			all = append(all, fmt.Sprintf("a rolling restart without surge leaves the last gateway %s: nobody moves because a gateway starts; start each replacement before the old one stops, or settle afterwards", last))
		}
		all = append(all, fmt.Sprintf("the plan ends uneven, with %d to %s on a gateway: a settle would take %s",
			b.Fewest, plural(b.Most, "supervisor", "supervisors"), plural(b.Moves, "move", "moves")))
	}
	often := 0
	for n, k := range p.Moves {
		if n > 1 {
			often += k
		}
	}
	if often > 0 {
		all = append(all, plural(often, "supervisor moves", "supervisors move")+" more than once, up to "+times(len(p.Moves)-1))
	}
	return all
}

// leftBehind says how the last gateway stands that started after it had
// stopped, if it is one of several and nobody stands worse.
func (f *forecast) leftBehind(end Outcome) (string, bool) {
	if len(f.restarted) < 2 {
		return "", false
	}
	last := f.restarted[len(f.restarted)-1]
	several := slices.ContainsFunc(f.restarted, func(id ring.GatewayID) bool { return id != last })
	n, here := end.Served[last]
	switch {
	case !several || !here || n != end.Balance.Fewest:
		return "", false
	case n == 0:
		return fmt.Sprintf("empty (%s)", last), true
	default:
		return fmt.Sprintf("behind (%s, with %d)", last, n), true
	}
}

// String renders the prediction as a table for a terminal: a row for each step,
// a column for each gateway, and below it the balance at the end, the moves and the warnings.
func (p Prediction) String() string {
	outcomes := append([]Outcome{p.Before}, p.Steps...)
	known := map[ring.GatewayID]bool{}
	waits := false
	for _, o := range outcomes {
		for id := range o.Served {
			known[id] = true
		}
		waits = waits || o.Waiting > 0
	}
	ids := slices.Sorted(maps.Keys(known))

	head := []string{""}
	for _, id := range ids {
		head = append(head, string(id))
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
			row = append(row, cell(n, here))
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
