// SPDX-License-Identifier: Apache-2.0

// Package diagram reads state diagrams that are drawn with characters in a doc
// comment, so that a test can hold them against what the machine does.
//
// Lines are drawn with - and |, turn and meet at +, and end in an arrow, one of
// < > ^ v, at the name of a state; at its other end a line without an arrow
// touches the state that it leaves. What stands beside the lines is for people,
// with two exceptions: "a or b" at the end of an arrow means both, and "any
// state" stands for all.
package diagram

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// Edge is one transition.
type Edge struct{ From, To string }

func (e Edge) String() string { return e.From + " -> " + e.To }

// Read returns the transitions drawn in the comments of a Go file, sorted.
func Read(file string, states ...string) ([]Edge, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("diagram: %w", err)
	}
	return Edges(string(text), states...), nil
}

// Edges returns the transitions drawn in the comments of a Go source, sorted.
// Only what is indented in a comment counts as drawn.
func Edges(source string, states ...string) []Edge {
	d := &drawing{states: states, edges: make(map[Edge]bool)}
	for line := range strings.Lines(source) {
		drawn, _ := strings.CutPrefix(strings.TrimRight(line, "\n"), "//\t")
		if len(drawn) == len(strings.TrimRight(line, "\n")) {
			drawn = ""
		}
		d.rows = append(d.rows, drawn)
	}
	d.find()
	for _, s := range d.spots {
		d.leave(s)
	}
	return sorted(d.edges)
}

// anyState is the name that stands for all.
const anyState = "any state"

// drawing is a diagram as characters.
type drawing struct {
	rows   []string
	states []string
	spots  []spot
	edges  map[Edge]bool
}

// spot is where a name stands: its columns are from first up to, not including, end.
type spot struct {
	name            string
	row, first, end int
}

func (d *drawing) find() {
	for _, name := range append(slices.Clone(d.states), anyState) {
		word := regexp.MustCompile(`\b` + name + `\b`)
		for row, text := range d.rows {
			for _, at := range word.FindAllStringIndex(text, -1) {
				d.spots = append(d.spots, spot{name, row, at[0], at[1]})
			}
		}
	}
}

func (d *drawing) at(row, col int) byte {
	if row < 0 || row >= len(d.rows) || col < 0 || col >= len(d.rows[row]) {
		return ' '
	}
	return d.rows[row][col]
}

// heading is a direction on the page.
type heading struct{ down, right int }

var (
	up    = heading{-1, 0}
	down  = heading{1, 0}
	left  = heading{0, -1}
	right = heading{0, 1}
)

func (h heading) back() heading { return heading{-h.down, -h.right} }

// carries reports whether a line goes on through this character in this direction.
func carries(c byte, h heading) bool {
	switch c {
	case '+':
		return true
	case '-':
		return h.right != 0
	case '|':
		return h.down != 0
	default:
		return arrow(c) == h
	}
}

// arrow returns where the character points; zero: it is no arrow.
func arrow(c byte) heading {
	switch c {
	case '>':
		return right
	case '<':
		return left
	case '^':
		return up
	case 'v':
		return down
	default:
		return heading{}
	}
}

// leave follows every line that begins at a name.
func (d *drawing) leave(from spot) {
	for gap := range 2 { // a space may stand between
		d.begin(from, from.row, from.end+gap, right)
		d.begin(from, from.row, from.first-1-gap, left)
	}
	for col := from.first; col < from.end; col++ {
		d.begin(from, from.row+1, col, down)
		d.begin(from, from.row-1, col, up)
	}
}

func (d *drawing) begin(from spot, row, col int, h heading) {
	if c := d.at(row, col); carries(c, h) && arrow(c) == (heading{}) {
		d.follow(from, row, col, h, make(map[step]bool))
	}
}

type step struct {
	row, col int
	heading
}

func (d *drawing) follow(from spot, row, col int, h heading, seen map[step]bool) {
	s := step{row, col, h}
	c := d.at(row, col)
	if seen[s] || !carries(c, h) {
		return
	}
	seen[s] = true
	if arrow(c) == h {
		d.arrive(from, row, col, h)
		return
	}
	ways := []heading{h}
	if c == '+' {
		ways = slices.DeleteFunc([]heading{up, down, left, right}, func(way heading) bool { return way == h.back() })
	}
	for _, way := range ways {
		d.follow(from, row+way.down, col+way.right, way, seen)
	}
}

// arrive notes the transition to the name that an arrow points at.
func (d *drawing) arrive(from spot, row, col int, h heading) {
	for _, to := range d.spots {
		switch {
		case h.down != 0 && to.row == row+h.down && to.first <= col && col < to.end,
			h == right && to.row == row && (to.first == col+1 || to.first == col+2),
			h == left && to.row == row && (to.end == col || to.end == col-1):
			d.note(from.name, to.name)
			rest := d.rows[to.row][to.end:]
			for _, also := range d.states {
				if strings.HasPrefix(rest, " or "+also) {
					d.note(from.name, also)
				}
			}
		}
	}
}

func (d *drawing) note(from, to string) {
	if from != anyState {
		d.edges[Edge{from, to}] = true
		return
	}
	for _, one := range d.states {
		if one != to {
			d.edges[Edge{one, to}] = true
		}
	}
}

func sorted(edges map[Edge]bool) []Edge {
	list := make([]Edge, 0, len(edges))
	for e := range edges {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b Edge) int { return strings.Compare(a.String(), b.String()) })
	return list
}

// Sort returns the edges of a set, sorted as those that are read.
func Sort(edges map[Edge]bool) []Edge { return sorted(edges) }
