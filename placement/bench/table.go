// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const legend = `Nanoseconds for one decision, and how many times what evenring takes for the same: the fastest
of several samples each, those of evenring taken right before those of the other.
owner     whose is the member, loads left out
full=F    a gateway below the cap, where F percent have no room left
reserve   that, and the member counted in and out again, for many goroutines
floor     no alternative: a hash of the ID, a remainder and an array read, in reserve an
          atomic add and subtract as well; what goes by the member cannot take less
-         it cannot do that
(blind)   does not go by the member: not what a ring is for, and nothing is claimed of it
(soft)    may choose a full gateway although another has room
`

// tables renders the figures for a person, those of a fleet together.
func (f figures) tables() string {
	var b strings.Builder
	b.WriteString(legend)
	for _, n := range sizes {
		all := columns(n)
		reserving := slices.IndexFunc(all, func(c cell) bool { return c.job == jobReserve })
		f.table(&b, fmt.Sprintf("gateways=%d", n), all[:reserving])
		f.table(&b, fmt.Sprintf("gateways=%d reserve", n), all[reserving:])
	}
	return b.String()
}

// table renders one: a row for each alternative that can do any of the columns.
func (f figures) table(b *strings.Builder, title string, columns []cell) {
	labels := make([]string, len(columns))
	for i, c := range columns {
		labels[i] = entry("full="+strconv.Itoa(c.full), "")
		if c.job == jobOwner {
			labels[i] = entry(jobOwner, "")
		}
	}
	fmt.Fprintf(b, "\n%s\n", line(title, labels))
	for _, a := range alternatives {
		row, measured := make([]string, len(columns)), false
		for i, c := range columns {
			row[i] = entry("-", "")
			if g, ok := f[c.of(a.name)]; ok {
				row[i], measured = entry(short(g.ns), short(g.ratio())+"x"), true
			}
		}
		if measured {
			fmt.Fprintln(b, line(a.label(), row))
		}
	}
}

func entry(ns, ratio string) string { return fmt.Sprintf(" %9s %6s", ns, ratio) }

func line(label string, entries []string) string {
	return strings.TrimRight(fmt.Sprintf("%-28s%s", label, strings.Join(entries, "")), " ")
}

// label is the name in a table, and what is to be known of it.
func (a alternative) label() string {
	label := a.name
	if label == floor {
		return label
	}
	if !a.keyed {
		label += " (blind)"
	}
	if a.soft {
		label += " (soft)"
	}
	return label
}

// short has two or three digits that count.
func short(x float64) string {
	switch {
	case x < 1:
		return fmt.Sprintf("%.2f", x)
	case x < 100:
		return fmt.Sprintf("%.1f", x)
	default:
		return fmt.Sprintf("%.0f", x)
	}
}
