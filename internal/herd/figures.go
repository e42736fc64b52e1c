// SPDX-License-Identifier: Apache-2.0

package herd

import (
	"fmt"
	"slices"
	"time"
)

// Placer places a wave. What it answers depends on the wave alone.
type Placer interface {
	Run(Wave) (Outcome, error)
}

// Way is one way to place a wave, and what is expected of it.
type Way struct {
	Name   string
	What   string // for a person
	Placer Placer
	target func(gateways int) Target
}

// Names of ways.
const (
	Asking = "asking"
	NoLink = "no-link"
)

// Ways returns every way: the simple rules first, then this library's own.
func Ways() []Way {
	none := func(int) Target { return Target{} }
	return []Way{
		{"owner", "the ring alone", Owner, none},
		{"closest", "the order of GetClosestN", Closest, none},
		{"clockwise", "the first with room clockwise", Clockwise, none},
		{"two-choices", "power of two choices", TwoChoices, none},
		{"least-loaded", "least loaded", LeastLoaded, none},
		{Asking, "ours, asking", Ours{}, askingTarget},
		{NoLink + "-1", "ours without a peer link, 1 hop", Ours{NoAsks: true, MaxHops: 1}, none},
		{NoLink, "ours without a peer link, 2 hops", Ours{NoAsks: true}, noLinkTarget},
		{NoLink + "-6", "ours without a peer link, 6 hops", Ours{NoAsks: true, MaxHops: 6}, none},
	}
}

// Find returns the way of this name, and whether there is one.
func Find(name string) (Way, bool) {
	all := Ways()
	if i := slices.IndexFunc(all, func(w Way) bool { return w.Name == name }); i >= 0 {
		return all[i], true
	}
	return Way{}, false
}

// Target is what a way must keep at any staleness. The zero value of a field is no target.
type Target struct {
	Overshoot  float64 // percent
	Spread     int
	MeanDials  float64
	WorstDials int
	MeanAsks   float64
}

// enough is how many supervisors the targets of evenness are for: a percent of few is less than one.
const enough = 10_000

func askingTarget(gateways int) Target {
	t := Target{MeanDials: 2, WorstDials: 3, MeanAsks: 3}
	switch gateways {
	case 3, 16:
		t.Spread = 2
	case 128:
		t.Overshoot = 4
	}
	return t
}

func noLinkTarget(gateways int) Target {
	switch gateways {
	case 3:
		return Target{Overshoot: 1}
	case 16:
		return Target{Overshoot: 5}
	default:
		return Target{}
	}
}

// Target returns what the way must keep in such a wave.
func (w Way) Target(wave Wave) Target {
	t := w.target(wave.Gateways)
	if wave.Supervisors < enough {
		t.Overshoot, t.Spread = 0, 0
	}
	return t
}

// Figures are the worst, and the mean, of several waves that differ in their seeds alone.
type Figures struct {
	Way       string  `json:"way"`
	Wave      Wave    `json:"wave"`  // with the first seed
	Seeds     int     `json:"seeds"` // this one and those that follow it
	Overshoot float64 `json:"overshoot_percent"`
	Spread    int     `json:"spread"`
	Worst     uint64  `json:"worst_seed"` // the first with that spread
	Dials     Tally   `json:"dials"`
	Asks      Tally   `json:"asks"`

	Missed []string `json:"missed,omitempty"` // targets, in words
}

// Measure places the wave with as many seeds, from its own on.
func (w Way) Measure(wave Wave, seeds int) (Figures, error) {
	f := Figures{Way: w.Name, Wave: wave, Seeds: seeds}
	for i := range seeds {
		one := wave
		one.Seed += uint64(i)
		out, err := w.Placer.Run(one)
		if err != nil {
			return f, err
		}
		if i == 0 || out.Spread() > f.Spread {
			f.Spread, f.Worst = out.Spread(), one.Seed
		}
		f.Overshoot = max(f.Overshoot, out.Overshoot())
		f.Dials.merge(out.Dials)
		f.Asks.merge(out.Asks)
	}
	f.Missed = w.Target(wave).missed(f)
	return f, nil
}

func (t Target) missed(f Figures) []string {
	var all []string
	miss := func(what string, got, want any) {
		all = append(all, fmt.Sprintf("%s, %d on %d, views refreshed every %d %%: %s is %v; at most %v is the target (seeds %d to %d, the worst %d)",
			f.Way, f.Wave.Supervisors, f.Wave.Gateways, f.Wave.Refresh, what, got, want, f.Wave.Seed, f.Wave.Seed+uint64(f.Seeds)-1, f.Worst))
	}
	percent := func(x float64) string { return fmt.Sprintf("%.2f %%", x) }
	if t.Overshoot > 0 && f.Overshoot > t.Overshoot {
		miss("the overshoot", percent(f.Overshoot), percent(t.Overshoot))
	}
	if t.Spread > 0 && f.Spread > t.Spread {
		miss("the spread", f.Spread, t.Spread)
	}
	if t.MeanDials > 0 && f.Dials.Mean() > t.MeanDials {
		miss("the mean of dials", f.Dials.Mean(), t.MeanDials)
	}
	if t.WorstDials > 0 && f.Dials.Worst > t.WorstDials {
		miss("the most dials", f.Dials.Worst, t.WorstDials)
	}
	if t.MeanAsks > 0 && f.Asks.Mean() > t.MeanAsks {
		miss("the mean of asks", f.Asks.Mean(), t.MeanAsks)
	}
	return all
}

// Few is a small fleet of which every interleaving must end even: whatever
// overtakes whatever, and however stale the views are.
type Few struct {
	Way         string
	Supervisors int
	Gateways    int
	Spread      int // at most
	Share       int // of this many interleavings one is tried: large ones take longer
}

// AllFew returns the small fleets and their targets.
func AllFew() []Few {
	return []Few{
		{Asking, 2, 2, 0, 1},
		{NoLink, 2, 2, 0, 1},
		{Asking, 12, 3, 1, 10},
		{Asking, 500, 5, 1, 10},
	}
}

// Wave returns the wave of one interleaving: at once or one after the other,
// with views that are refreshed often, sometimes or never.
func (f Few) Wave(seed uint64) Wave {
	return Wave{
		Gateways: f.Gateways, Supervisors: f.Supervisors, Seed: seed,
		Refresh: []int{Stale, 1, 50}[seed%3],
		Over:    []time.Duration{0, 5 * time.Millisecond, 30 * time.Millisecond, 150 * time.Millisecond}[seed/3%4],
	}
}

// Try runs interleavings from the seed on, and returns the spreads that they
// ended with, from 0 up, and the seeds that miss the target.
func (f Few) Try(seed uint64, interleavings int) (spreads []int, missed []uint64, err error) {
	way, ok := Find(f.Way)
	if !ok {
		return nil, nil, fmt.Errorf("herd: no way is called %q", f.Way)
	}
	for i := range uint64(interleavings) {
		out, err := way.Placer.Run(f.Wave(seed + i))
		if err != nil {
			return nil, nil, err
		}
		n := out.Spread()
		for len(spreads) <= n {
			spreads = append(spreads, 0)
		}
		spreads[n]++
		if n > f.Spread {
			missed = append(missed, seed+i)
		}
	}
	return spreads, missed, nil
}
