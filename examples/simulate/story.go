// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/evenring/evenring/examples/simulate/internal/scale"
)

// story tells a person what happened.
func story(to io.Writer, r scale.Result) {
	fmt.Fprintln(to, title(r.Config))
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tgateways\tserved\tfewest\tmost\tdecisions\tmoves\t")
	for _, p := range r.Phases {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t\n", p.Name, p.Gateways, p.Served, p.Fewest, p.Most, p.Decisions, p.Moves)
	}
	_ = w.Flush() // as with every line here, a writer that fails is seen by nobody
	fmt.Fprintf(to, "spread %d; at its fullest, a gateway had %.3f times the even share; %d moves, at most %d of one supervisor\n",
		r.Spread, r.OverFair(), r.Moves, r.MaxMoves)
	if r.Config.Settle {
		fmt.Fprintf(to, "settled with %d moves\n", r.Settled)
	}
	fmt.Fprintf(to, "%d decisions with %d questions, %.0f ns of processor time each; %.2f bytes for each supervisor; %v\n",
		r.Decisions, r.Asks, r.NanosecondsPerDecision(), r.BytesPerSupervisor(), r.Took.Round(time.Millisecond))
}

func title(c scale.Config) string {
	text := fmt.Sprintf("%s: %d supervisors on %d gateways", c.Plan, c.Supervisors, c.Gateways)
	if c.Plan == scale.Rolling && c.Surge {
		text += ", with surge"
	} else if c.Plan == scale.Rolling {
		text += ", without surge"
	}
	if c.Settle {
		text += ", then a settle"
	}
	return text
}

// growth shows how the cost grows, a row for each number of supervisors.
func growth(to io.Writer, cfg config, all []scale.Result) {
	for _, t := range []struct {
		what  string
		value func(scale.Result) float64
	}{
		{"ns for a decision", scale.Result.NanosecondsPerDecision},
		{"bytes for a supervisor", scale.Result.BytesPerSupervisor},
	} {
		fmt.Fprintf(to, "%s: %s, by supervisors (rows) and gateways (columns)\n", cfg.plan, t.what)
		w := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
		for _, g := range cfg.gateways {
			fmt.Fprintf(w, "\t%d", g)
		}
		fmt.Fprintln(w, "\t")
		for _, s := range cfg.supervisors {
			fmt.Fprintf(w, "%d", s)
			for _, g := range cfg.gateways {
				i := slices.IndexFunc(all, func(r scale.Result) bool { return r.Config.Gateways == g && r.Config.Supervisors == s })
				fmt.Fprintf(w, "\t%.4g", t.value(all[i]))
			}
			fmt.Fprintln(w, "\t")
		}
		_ = w.Flush() // see story
		fmt.Fprintln(to)
	}
}
