// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/evenring/evenring/internal/herd"
)

// screen shows rows: tables for people, or a JSON object each.
type screen struct {
	to  io.Writer
	enc *json.Encoder // nil: tables
}

func printer(asJSON bool, to io.Writer) *screen {
	s := &screen{to: to}
	if asJSON {
		s.enc = json.NewEncoder(to)
	}
	return s
}

// begin says what holds for all rows.
func (s *screen) begin(cfg config) error {
	if s.enc != nil {
		return nil
	}
	checked := "every target is checked"
	if cfg.latency > herd.DefaultLatency {
		checked = fmt.Sprintf("of the targets, which are for up to %v, one is checked: nobody says yes above the limit", herd.DefaultLatency)
	}
	_, err := fmt.Fprintf(s.to, `A message takes up to %v; %s.
Figures are for views refreshed whenever 1 %% | 10 %% more are served | never.
Never: every view shows an empty fleet, and who would pass over the full passes over nobody.

`, cfg.latency, checked)
	return err
}

// column is a figure of three rows: one for each refresh.
type column struct {
	head string
	of   func(herd.Figures) string
}

var (
	overshoot = column{"worst overshoot, %", func(f herd.Figures) string { return fmt.Sprintf("%.2f", f.Overshoot) }}
	spread    = column{"worst spread", func(f herd.Figures) string { return fmt.Sprint(f.Spread) }}
	dials     = column{"dials: mean, most", func(f herd.Figures) string { return tally(f.Dials) }}
	asks      = column{"asks: mean, most", func(f herd.Figures) string { return tally(f.Asks) }}
	answers   = column{"yes, no, insisted", func(f herd.Figures) string {
		return fmt.Sprintf("%d, %d, %d", f.Questions.Yes, f.Questions.No, f.Questions.Insisted)
	}}
	unanswered = column{"no answer", func(f herd.Figures) string { return fmt.Sprint(f.Questions.Unanswered) }}
	inVain     = column{"kept in vain", func(f herd.Figures) string { return fmt.Sprint(f.Questions.InVain) }}
	above      = column{"yes above the limit", func(f herd.Figures) string { return unless(f.Asks.Total == 0, fmt.Sprint(f.Questions.Above)) }}
	took       = column{"took, s", func(f herd.Figures) string { return unless(f.Took == 0, fmt.Sprintf("%.1f", f.Took.Seconds())) }}
)

// figures shows the rows of one number of gateways: for each way one for each refresh.
func (s *screen) figures(cfg config, wave herd.Wave, ways []herd.Way, rows []herd.Figures) error {
	head := fmt.Sprintf("%d supervisors arrive on %d gateways; %d seeds from %d on", wave.Supervisors, wave.Gateways, cfg.seeds, cfg.first)
	return s.table(head, ways, rows, overshoot, spread, dials, asks, above, took)
}

// troubled shows the rows of questions that have trouble.
func (s *screen) troubled(cfg config, wave herd.Wave, ways []herd.Way, rows []herd.Figures) error {
	head := fmt.Sprintf("Asking with trouble: %d on %d; questions and answers are late, lost, or older than a place is kept; %d seeds from %d on", wave.Supervisors, wave.Gateways, cfg.seeds, cfg.first)
	return s.table(head, ways, rows, spread, dials, answers, unanswered, inVain, above, took)
}

func (s *screen) table(head string, ways []herd.Way, rows []herd.Figures, columns ...column) error {
	if s.enc != nil {
		return encode(s.enc, rows)
	}
	fmt.Fprintln(s.to, head)
	w := tabwriter.NewWriter(s.to, 0, 0, 2, ' ', 0)
	for _, c := range columns {
		fmt.Fprintf(w, "\t%s", c.head)
	}
	fmt.Fprintln(w)
	for i, way := range ways {
		fmt.Fprint(w, way.What)
		for _, c := range columns {
			fmt.Fprintf(w, "\t%s", join(rows[i*len(refreshes):][:len(refreshes)], c.of))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
	return w.Flush()
}

// few shows the small fleets.
func (s *screen) few(rows []small) error {
	if s.enc != nil {
		return encode(s.enc, rows)
	}
	fmt.Fprintf(s.to, "Small fleets, messages up to %v, every interleaving from another seed, views fresh or stale\n", herd.DefaultLatency)
	w := tabwriter.NewWriter(s.to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\t\tinterleavings\tof which distinct\twithin the target\tby spread, from 0 up")
	for _, r := range rows {
		n := r.Interleavings()
		fmt.Fprintf(w, "%d on %d\t%s\t%d\t%d\t%d\t%v\n", r.Few.Supervisors, r.Few.Gateways, r.Few.Way, n, r.Distinct, n-len(r.Missed), r.Spreads)
	}
	fmt.Fprintln(w)
	return w.Flush()
}

func encode[T any](enc *json.Encoder, rows []T) error {
	for _, r := range rows {
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

func join(rows []herd.Figures, text func(herd.Figures) string) string {
	all := make([]string, len(rows))
	for i, r := range rows {
		all[i] = text(r)
	}
	return strings.Join(all, " | ")
}

// unless shows a figure, or that there is none.
func unless(none bool, figure string) string {
	if none {
		return "-"
	}
	return figure
}

func tally(t herd.Tally) string { return fmt.Sprintf("%.2f, %d", t.Mean(), t.Worst) }
