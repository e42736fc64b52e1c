// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"io"
	"testing"
)

// measure prepares a cell and returns what measures it once.
type measure func(cell) (once func() testing.BenchmarkResult, err error)

// timed measures with package testing, for so long. That is a setting of the whole process.
func timed(benchtime string) (measure, error) {
	if err := flag.Set("test.benchtime", benchtime); err != nil {
		return nil, err
	}
	return func(c cell) (func() testing.BenchmarkResult, error) {
		p, err := c.prepare()
		return func() testing.BenchmarkResult {
			return testing.Benchmark(func(b *testing.B) { loop(b, p) })
		}, err
	}, nil
}

// sample is what measuring a cell once came to.
type sample struct {
	cell   cell
	result testing.BenchmarkResult
}

// ns is the time for one decision.
func (s sample) ns() float64 { return float64(s.result.T.Nanoseconds()) / float64(s.result.N) }

// pair is two samples, one taken right after the other: a machine that is slow for
// a while is so for both.
type pair struct{ ours, theirs sample }

// pairs measures everybody count times, and ours right before each. All of a
// fleet's are measured once before any is measured again, so that a disturbance that
// lasts seconds does not hit all samples of a cell.
func pairs(m measure, count int, progress io.Writer) ([]pair, error) {
	var all []pair
	for _, n := range sizes { // ascending: what a library builds for the largest is in the way of the collector that runs before each sample
		for round := range count {
			fmt.Fprintf(progress, "%d gateways, round %d of %d\n", n, round+1, count)
			for _, column := range columns(n) {
				var err error
				if all, err = column.pairs(m, all); err != nil {
					return nil, err
				}
			}
		}
	}
	return all, nil
}

// pairs adds a pair for each cell of a column to all.
func (c cell) pairs(m measure, all []pair) ([]pair, error) {
	once := map[cell]func() testing.BenchmarkResult{}
	for _, c := range c.cells() {
		var err error
		if once[c], err = m(c); err != nil {
			return nil, err
		}
	}
	for _, c := range c.cells() {
		if c.impl == ours {
			continue
		}
		p := pair{ours: sample{cell: c.of(ours)}, theirs: sample{cell: c}}
		for _, s := range []*sample{&p.ours, &p.theirs} {
			if s.result = once[s.cell](); s.result.N == 0 {
				return nil, fmt.Errorf("%v: it did not run", s.cell)
			}
		}
		all = append(all, p)
	}
	return all, nil
}

// figure is what is said of a cell: nanoseconds for one decision.
type figure struct {
	ns   float64 // the fastest sample
	ours float64 // the fastest of ours that were taken together with its samples, and so as many and at the same times
}

// ratio is how many times as long as ours it takes.
func (g figure) ratio() float64 { return g.ns / g.ours }

type figures map[cell]figure

// fastest says of each cell what its pairs come to. What else a machine does slows a
// sample down, never up, and slows the short decisions down most: neither a median nor
// a ratio of two neighbours is free of it, but the fastest of several is.
func fastest(pairs []pair) figures {
	f := figures{}
	note := func(c cell, ns, ours float64) {
		g, ok := f[c]
		if !ok {
			g = figure{ns: ns, ours: ours}
		}
		f[c] = figure{ns: min(g.ns, ns), ours: min(g.ours, ours)}
	}
	for _, p := range pairs {
		note(p.theirs.cell, p.theirs.ns(), p.ours.ns())
		note(p.ours.cell, p.ours.ns(), p.ours.ns())
	}
	return f
}
