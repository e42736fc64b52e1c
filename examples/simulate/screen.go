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

// figures shows the rows of one number of gateways: for each way one for each refresh.
func (s *screen) figures(cfg config, gateways int, ways []herd.Way, rows []herd.Figures) error {
	if s.enc != nil {
		return encode(s.enc, rows)
	}
	fmt.Fprintf(s.to, "%d supervisors arrive on %d gateways; views refreshed every 1 %% | 10 %% | never; %d seeds from %d on\n",
		cfg.supervisors[0], gateways, cfg.seeds, cfg.first)
	w := tabwriter.NewWriter(s.to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tworst overshoot, %\tworst spread\tdials: mean, most\tasks: mean, most\t")
	for i, way := range ways {
		three := rows[i*len(refreshes):][:len(refreshes)]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t\n", way.What,
			join(three, func(f herd.Figures) string { return fmt.Sprintf("%.2f", f.Overshoot) }),
			join(three, func(f herd.Figures) string { return fmt.Sprint(f.Spread) }),
			join(three, func(f herd.Figures) string { return tally(f.Dials) }),
			join(three, func(f herd.Figures) string { return tally(f.Asks) }))
	}
	fmt.Fprintln(w)
	return w.Flush()
}

// few shows the small fleets.
func (s *screen) few(rows []small) error {
	if s.enc != nil {
		return encode(s.enc, rows)
	}
	fmt.Fprintln(s.to, "Small fleets, every interleaving from another seed, views fresh or stale")
	w := tabwriter.NewWriter(s.to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\t\tinterleavings\twithin the target\tby spread, from 0 up\t")
	for _, r := range rows {
		fmt.Fprintf(w, "%d on %d\t%s\t%d\t%d\t%v\t\n", r.Few.Supervisors, r.Few.Gateways, r.Few.Way, r.tried(), r.tried()-len(r.Missed), r.Spreads)
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

func tally(t herd.Tally) string { return fmt.Sprintf("%.2f, %d", t.Mean(), t.Worst) }
