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
	for _, w := range slices.Concat(herd.Ways(), herd.Troubled()) {
		names = append(names, w.Name)
	}
	return names
}

// small is a row of the small fleets.
type small struct {
	Few  herd.Few `json:"few"`
	Seed uint64   `json:"seed"` // the first
	herd.Tried
}

// missed says that the target was missed.
func (s small) missed() string {
	return fmt.Sprintf("%s, %d on %d: a spread of at most %d in every interleaving is the target; not so in %d of %d, the first of seed %d",
		s.Few.Way, s.Few.Supervisors, s.Few.Gateways, s.Few.Spread, len(s.Missed), s.Interleavings(), s.Missed[0])
}

// targets are those that were checked, and those of them that were missed, in words.
type targets struct {
	checked int
	missed  []string
}

// met is what there is to say if none was missed.
func (t targets) met() string {
	if t.checked == 0 {
		return "No target was checked."
	}
	return fmt.Sprintf("Every target is met (%d checked).", t.checked)
}

// simulate runs everything, a row for each processor at a time, and shows the rows in their order.
func simulate(ctx context.Context, cfg config, show *screen) (t targets, err error) {
	if err := show.begin(cfg); err != nil {
		return t, err
	}
	for _, gateways := range cfg.gateways {
		wave := herd.Wave{Gateways: gateways, Supervisors: cfg.supervisors[0], Over: cfg.over}
		if err := t.measure(ctx, cfg, wave, herd.Ways(), show.figures); err != nil {
			return t, err
		}
	}
	for _, wave := range herd.TroubledWaves() {
		wave.Over = cfg.over
		if err := t.measure(ctx, cfg, wave, herd.Troubled(), show.troubled); err != nil {
			return t, err
		}
	}
	few := slices.DeleteFunc(herd.AllFew(), func(f herd.Few) bool { return !slices.Contains(cfg.ways, f.Way) })
	if cfg.interleavings == 0 || len(few) == 0 {
		return t, nil
	}
	rows := make([]small, len(few))
	err = each(ctx, len(rows), func(i int) (err error) {
		rows[i] = small{Few: few[i], Seed: cfg.first}
		rows[i].Tried, err = few[i].Try(cfg.first, max(1, cfg.interleavings/few[i].Share))
		return err
	})
	if err != nil {
		return t, err
	}
	for _, r := range rows {
		t.checked++
		if len(r.Missed) > 0 {
			t.missed = append(t.missed, r.missed())
		}
	}
	return t, show.few(rows)
}

// measure lets those of the ways that are wanted place the wave at every staleness, and shows their rows.
func (t *targets) measure(ctx context.Context, cfg config, wave herd.Wave, ways []herd.Way, show func(config, herd.Wave, []herd.Way, []herd.Figures) error) error {
	ways = slices.DeleteFunc(ways, func(w herd.Way) bool { return !slices.Contains(cfg.ways, w.Name) })
	if len(ways) == 0 {
		return nil
	}
	wave.Seed, wave.Latency = cfg.first, cfg.latency
	rows := make([]herd.Figures, len(ways)*len(refreshes))
	err := each(ctx, len(rows), func(i int) (err error) {
		one := wave
		one.Refresh = refreshes[i%len(refreshes)]
		rows[i], err = ways[i/len(refreshes)].Measure(one, cfg.seeds)
		return err
	})
	if err != nil {
		return err
	}
	for _, row := range rows {
		t.checked += row.Checked
		t.missed = append(t.missed, row.Missed...)
	}
	return show(cfg, wave, ways, rows)
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
