// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/evenring/evenring/internal/herd"
)

// refreshes are how stale the views are, in percent of the wave.
var refreshes = []int{1, 10, herd.Stale}

func wayNames() []string {
	var names []string
	for _, w := range herd.Ways() {
		names = append(names, w.Name)
	}
	return names
}

// small is a row of the small fleets.
type small struct {
	Few     herd.Few `json:"few"`
	Seed    uint64   `json:"seed"`    // the first
	Spreads []int    `json:"spreads"` // how many interleavings ended with a spread of 0, 1, ...
	Missed  []uint64 `json:"missed,omitempty"`
}

func (s small) tried() int {
	n := 0
	for _, k := range s.Spreads {
		n += k
	}
	return n
}

// missed says that the target was missed.
func (s small) missed() string {
	return fmt.Sprintf("%s, %d on %d: a spread of at most %d in every interleaving is the target; not so in %d of %d, the first of seed %d",
		s.Few.Way, s.Few.Supervisors, s.Few.Gateways, s.Few.Spread, len(s.Missed), s.tried(), s.Missed[0])
}

// simulate runs everything, a row for each processor at a time, shows the rows in
// their order, and returns the targets that were missed.
func simulate(ctx context.Context, cfg config, show *screen) ([]string, error) {
	var missed []string
	for _, gateways := range cfg.gateways {
		var ways []herd.Way
		for _, w := range herd.Ways() {
			if slices.Contains(cfg.ways, w.Name) {
				ways = append(ways, w)
			}
		}
		rows := make([]herd.Figures, len(ways)*len(refreshes))
		err := each(ctx, len(rows), func(i int) (err error) {
			wave := herd.Wave{
				Gateways: gateways, Supervisors: cfg.supervisors[0], Over: cfg.over, Seed: cfg.first,
				Refresh: refreshes[i%len(refreshes)],
			}
			rows[i], err = ways[i/len(refreshes)].Measure(wave, cfg.seeds)
			return err
		})
		if err != nil {
			return nil, err
		}
		if err := show.figures(cfg, gateways, ways, rows); err != nil {
			return nil, err
		}
		for _, row := range rows {
			missed = append(missed, row.Missed...)
		}
	}
	few := slices.DeleteFunc(herd.AllFew(), func(f herd.Few) bool { return !slices.Contains(cfg.ways, f.Way) })
	if cfg.interleavings == 0 || len(few) == 0 {
		return missed, nil
	}
	rows := make([]small, len(few))
	err := each(ctx, len(rows), func(i int) (err error) {
		rows[i] = small{Few: few[i], Seed: cfg.first}
		rows[i].Spreads, rows[i].Missed, err = few[i].Try(cfg.first, max(1, cfg.interleavings/few[i].Share))
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := show.few(rows); err != nil {
		return nil, err
	}
	for _, r := range rows {
		if len(r.Missed) > 0 {
			missed = append(missed, r.missed())
		}
	}
	return missed, nil
}

// each calls f for every number below n, as many at a time as there are processors.
func each(ctx context.Context, n int, f func(int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		group.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return f(i)
		})
	}
	return group.Wait()
}
