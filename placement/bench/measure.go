// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"testing"
)

// measure measures a cell once.
type measure func(cell) (testing.BenchmarkResult, error)

// timed measures with package testing, for so long. That is a setting of the whole process.
func timed(benchtime string) (measure, error) {
	if err := flag.Set("test.benchtime", benchtime); err != nil {
		return nil, err
	}
	return func(c cell) (testing.BenchmarkResult, error) {
		p, err := c.prepare()
		if err != nil {
			return testing.BenchmarkResult{}, err
		}
		r := testing.Benchmark(func(b *testing.B) { loop(b, p) })
		if r.N == 0 {
			return r, fmt.Errorf("%v: it did not run", c)
		}
		return r, nil
	}, nil
}

// sample is what measuring a cell once came to.
type sample struct {
	cell   cell
	result testing.BenchmarkResult
}

// ns is the time for one decision.
func (s sample) ns() float64 { return float64(s.result.T.Nanoseconds()) / float64(s.result.N) }

// rounds measures every cell, and then every cell again, so that a
// disturbance of the machine does not hit all samples of one.
func rounds(m measure, count int, progress io.Writer) ([]sample, error) {
	var all []sample
	for round := range count {
		size := 0
		for _, c := range cells() {
			if c.gateways != size {
				size = c.gateways
				fmt.Fprintf(progress, "round %d of %d: %d gateways\n", round+1, count, size)
			}
			r, err := m(c)
			if err != nil {
				return nil, err
			}
			all = append(all, sample{cell: c, result: r})
		}
	}
	return all, nil
}

// figures are the nanoseconds for one decision.
type figures map[cell]float64

func medians(samples []sample) figures {
	times := map[cell][]float64{}
	for _, s := range samples {
		times[s.cell] = append(times[s.cell], s.ns())
	}
	f := figures{}
	for c, all := range times {
		slices.Sort(all)
		f[c] = all[len(all)/2]
	}
	return f
}

// ratio returns how many times as long as ours c takes, and false if one of them was not measured.
func (f figures) ratio(c cell) (float64, bool) {
	theirs, ok := f[c]
	c.impl = ours
	return theirs / f[c], ok && f[c] > 0
}
