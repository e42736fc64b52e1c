// SPDX-License-Identifier: Apache-2.0

package herd

import (
	"fmt"
	"slices"
	"time"

	"github.com/evenring/evenring/redirect"
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

// Troubled returns the ways in which questions and answers have trouble: they come after
// their asker has stopped waiting, or never, or after the place has been given up. However even that ends, nobody is
// lost, nobody dials too often, and no gateway says yes above the limit that it was asked for.
func Troubled() []Way {
	const reserve = redirect.DefaultReserve
	return []Way{
		{Asking + "-late", "1 in 10 up to 600 ms late", Ours{Trouble: Trouble{Late: 0.1, LateBy: 600 * time.Millisecond}}, troubledTarget},
		{Asking + "-lost", "1 in 10 lost", Ours{Trouble: Trouble{Loss: 0.1}}, troubledTarget},
		{Asking + "-old", "1 in 10 up to 20 s late", Ours{Trouble: Trouble{Late: 0.1, LateBy: 2 * reserve}}, troubledTarget},
		{Asking + "-expired", "1 in 3 up to 250 ms late, places kept for 50 ms", Ours{Trouble: Trouble{Late: 1. / 3, LateBy: redirect.DefaultAskTimeout, Reserve: 50 * time.Millisecond}}, troubledTarget},
		{Asking + "-stall", "one gateway stands still for 11 s", Ours{Trouble: Trouble{Stall: reserve + time.Second}}, troubledTarget},
	}
}

// TroubledWaves are those that the troubled ways are tried on. They are small: what waits for answers in vain
// makes others wait, and in a large one many would not have a verdict in the time that a supervisor waits for it.
func TroubledWaves() []Wave {
	return []Wave{{Gateways: 5, Supervisors: 500}, {Gateways: 16, Supervisors: 1000}}
}

// Find returns the way of this name, and whether there is one.
func Find(name string) (Way, bool) {
	all := slices.Concat(Ways(), Troubled())
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
	NoneAbove  bool // no plain yes leaves its target above the limit that it was asked for
}

// enough is how many supervisors the targets of evenness are for: a percent of few is less than one.
const enough = 10_000

func askingTarget(gateways int) Target {
	t := Target{MeanDials: 2, WorstDials: 3, MeanAsks: 3, NoneAbove: true}
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

// troubledTarget has the dials of any placement as its bound.
func troubledTarget(int) Target { return Target{WorstDials: 4, NoneAbove: true} }

// Target returns what the way must keep in such a wave. Where messages take longer than [DefaultLatency] only NoneAbove
// is left of it: a burst may then take longer than a supervisor waits for its verdict, and some dial again.
func (w Way) Target(wave Wave) Target {
	t := w.target(wave.Gateways)
	switch {
	case wave.latency() > DefaultLatency:
		t = Target{NoneAbove: t.NoneAbove}
	case wave.Supervisors < enough:
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

	Questions Questions     `json:"questions"` // of all seeds together
	Took      time.Duration `json:"took_ns"`   // the longest, in virtual time; 0 of a simple rule

	Checked int      `json:"checked"`          // targets
	Missed  []string `json:"missed,omitempty"` // those of them that were, in words
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
		f.Questions.merge(out.Questions)
		f.Took = max(f.Took, out.Took)
	}
	w.Target(wave).check(&f)
	return f, nil
}

// check holds the figures against the target.
func (t Target) check(f *Figures) {
	check := func(is, missed bool, what string, got, want any) {
		if is {
			f.Checked++
		}
		if is && missed {
			f.Missed = append(f.Missed, fmt.Sprintf("%s, %d on %d, views refreshed every %d %%: %s is %v; at most %v is the target (seeds %d to %d, the worst %d)",
				f.Way, f.Wave.Supervisors, f.Wave.Gateways, f.Wave.Refresh, what, got, want, f.Wave.Seed, f.Wave.Seed+uint64(f.Seeds)-1, f.Worst))
		}
	}
	percent := func(x float64) string { return fmt.Sprintf("%.2f %%", x) }
	check(t.Overshoot > 0, f.Overshoot > t.Overshoot, "the overshoot", percent(f.Overshoot), percent(t.Overshoot))
	check(t.Spread > 0, f.Spread > t.Spread, "the spread", f.Spread, t.Spread)
	check(t.MeanDials > 0, f.Dials.Mean() > t.MeanDials, "the mean of dials", f.Dials.Mean(), t.MeanDials)
	check(t.WorstDials > 0, f.Dials.Worst > t.WorstDials, "the most dials", f.Dials.Worst, t.WorstDials)
	check(t.MeanAsks > 0, f.Asks.Mean() > t.MeanAsks, "the mean of asks", f.Asks.Mean(), t.MeanAsks)
	check(t.NoneAbove, f.Questions.Above > 0, "the number of yeses above their limit", f.Questions.Above, 0)
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
	refreshes := []int{Stale, 1, 50}
	if f.Supervisors < 4 { // half of so few is one
		refreshes = refreshes[:2]
	}
	over := []time.Duration{0, 5 * time.Millisecond, 30 * time.Millisecond, 150 * time.Millisecond}
	n := uint64(len(refreshes))
	return Wave{
		Gateways: f.Gateways, Supervisors: f.Supervisors, Seed: seed,
		Refresh: refreshes[seed%n], Over: over[seed/n%uint64(len(over))],
	}
}

// Tried is how interleavings of a small fleet have ended.
type Tried struct {
	Spreads  []int    `json:"spreads"`          // how many ended with a spread of 0, 1, ...
	Distinct int      `json:"distinct"`         // orders of who came where, was asked for, sent, accepted and shown to all, leaving aside when
	Missed   []uint64 `json:"missed,omitempty"` // the seeds that miss the target
}

// Interleavings returns how many there were.
func (t Tried) Interleavings() int {
	n := 0
	for _, k := range t.Spreads {
		n += k
	}
	return n
}

// Try runs interleavings from the seed on.
func (f Few) Try(seed uint64, interleavings int) (Tried, error) {
	way, ok := Find(f.Way)
	if !ok {
		return Tried{}, fmt.Errorf("herd: no way is called %q", f.Way)
	}
	var t Tried
	orders := make(map[uint64]bool)
	for i := range uint64(interleavings) {
		out, err := way.Placer.Run(f.Wave(seed + i))
		if err != nil {
			return Tried{}, err
		}
		orders[out.Order] = true
		n := out.Spread()
		for len(t.Spreads) <= n {
			t.Spreads = append(t.Spreads, 0)
		}
		t.Spreads[n]++
		if n > f.Spread {
			t.Missed = append(t.Missed, seed+i)
		}
	}
	t.Distinct = len(orders)
	return t, nil
}
