// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// madeUp are figures by rule: ours takes 10 ns, the floor 4, and everybody else so many.
func madeUp(theirs float64) figures {
	f := figures{}
	for _, c := range cells() {
		f[c] = figure{ns: theirs, ours: 10}
		switch c.impl {
		case ours:
			f[c] = figure{ns: 10, ours: 10}
		case floor:
			f[c] = figure{ns: 4.01, ours: 10}
		}
	}
	return f
}

// ran is what measuring once came to, at so many nanoseconds for one decision.
func ran(ns time.Duration) testing.BenchmarkResult {
	return testing.BenchmarkResult{N: 100, T: 100 * ns}
}

// fake measures nothing: ours takes 10 ns, the floor 5, everybody else so many.
func fake(theirs time.Duration) func(string) (measure, error) {
	return func(string) (measure, error) {
		return func(c cell) (func() testing.BenchmarkResult, error) {
			ns := theirs
			switch c.impl {
			case ours:
				ns = 10
			case floor:
				ns = 5
			}
			return func() testing.BenchmarkResult { return ran(ns) }, nil
		}, nil
	}
}

func TestFaults(t *testing.T) {
	require.Empty(t, madeUp(200.1).faults())

	f := madeUp(200.1)
	for c, ns := range map[cell]float64{
		{impl: "maglev", job: jobCapped, gateways: 128, full: 90}:             190,
		{impl: "maglev-free-list", job: jobCapped, gateways: 1024, full: 99}:  10.1, // it finds one without looking
		{impl: "maglev-free-list", job: jobCapped, gateways: 16}:              9.8,
		{impl: "maglev-free-list", job: jobReserve, gateways: 3, full: 100}:   9.1, // level
		{impl: "maglev-free-list", job: jobReserve, gateways: 128, full: 100}: 8.9,
		{impl: "lafikl-shape", job: jobReserve, gateways: 3}:                  10,
		{impl: "lafikl-shape", job: jobReserve, gateways: 1024, full: 99}:     11,  // the margin is for decisions
		{impl: "serialx", job: jobCapped, gateways: 16, full: 100}:            11,  // in large fleets
		{impl: "serialx", job: jobCapped, gateways: 1024}:                     11,  // that are nearly full
		{impl: "least-loaded", job: jobCapped, gateways: 3}:                   1,   // blind
		{impl: "two-choices", job: jobCapped, gateways: 1024, full: 99}:       1,   // blind and soft
		{impl: floor, job: jobCapped, gateways: 3}:                            3.9, // more than 2.5 times
		{impl: floor, job: jobCapped, gateways: 3, full: 99}:                  2.9, // less than 3.5 times
		{impl: floor, job: jobCapped, gateways: 1024, full: 100}:              2.5,
		{impl: floor, job: jobOwner, gateways: 3}:                             1, // only decisions
		{impl: floor, job: jobReserve, gateways: 3}:                           1,
	} {
		require.Contains(t, f, c)
		f[c] = figure{ns: ns, ours: 10}
	}
	delete(f, cell{impl: "authzed", job: jobOwner, gateways: 16})
	require.Equal(t, []string{
		"BenchmarkPlace/impl=floor/job=capped/gateways=3/full=0: evenring takes 2.56 times what the floor takes (10.0 and 3.9 ns), where less than 2.5 is claimed",
		"BenchmarkReserve/impl=lafikl-shape/gateways=3/full=0 takes 1.00 times what evenring takes (10.0 and 10.0 ns), where more than 1 is claimed",
		"BenchmarkPlace/impl=authzed/job=owner/gateways=16/full=0 was not measured",
		"BenchmarkPlace/impl=maglev-free-list/job=capped/gateways=16/full=0 takes 0.98 times what evenring takes (9.8 and 10.0 ns), where more than 1 is claimed",
		"BenchmarkPlace/impl=maglev/job=capped/gateways=128/full=90 takes 19.00 times what evenring takes (190 and 10.0 ns), where more than 20 is claimed",
		"BenchmarkReserve/impl=maglev-free-list/gateways=128/full=100 takes 0.89 times what evenring takes (8.9 and 10.0 ns), where more than 0.9 is claimed",
		"BenchmarkPlace/impl=floor/job=capped/gateways=1024/full=100: evenring takes 4.00 times what the floor takes (10.0 and 2.5 ns), where less than 3.5 is claimed",
	}, f.faults())
}

// What is claimed of a whole table is claimed of every cell that the README says.
func TestClaims(t *testing.T) {
	byTimes := map[float64]int{}
	for _, c := range cells() {
		if times, claimed := claim(c); claimed {
			byTimes[times]++
		}
	}
	require.Equal(t, map[float64]int{
		margin:  7 * 2 * 3,              // capped, two sizes, three fills
		1:       8*4 + 7*10 + 16 + 2*16, // owner; capped elsewhere; the list, capped; reserve
		level:   16,                     // the list, reserve
		1 / 2.5: 4, 1 / 3.5: 12,         // the floor
	}, byTimes)
}

func TestTables(t *testing.T) {
	f := madeUp(123.4)
	f[cell{impl: "least-loaded", job: jobCapped, gateways: 3}] = figure{ns: 0.5, ours: 10}
	all := f.tables()
	require.True(t, strings.HasPrefix(all, legend))
	for _, want := range []string{
		"\ngateways=3                       owner           full=0          full=90          full=99         full=100\n" +
			"floor                              4.0  0.40x       4.0  0.40x       4.0  0.40x       4.0  0.40x       4.0  0.40x\n" +
			"evenring                          10.0   1.0x      10.0   1.0x      10.0   1.0x      10.0   1.0x      10.0   1.0x\n" +
			"buraksezer                         123  12.3x       123  12.3x       123  12.3x       123  12.3x       123  12.3x\n",
		"\nleast-loaded (blind)                 -             0.50  0.05x       123  12.3x ",
		"\ngateways=1024 reserve           full=0          full=90          full=99         full=100\n",
	} {
		require.Contains(t, all, want)
	}
	require.Equal(t, len(sizes), strings.Count(all, "\ntwo-choices (blind) (soft) "))
	require.Equal(t, 2*len(sizes), strings.Count(all, "\nlafikl-shape "))
}

// The fastest of a rival is held against the fastest of ours that was measured with it, not
// against one that somebody else found a quiet moment for; half of the samples may be spoilt.
func TestFastest(t *testing.T) {
	column := cell{job: jobCapped, gateways: 16, full: 90}
	us, a, b := column.of(ours), column.of("maglev"), column.of("serialx")
	var all []pair
	for _, row := range []struct {
		cell         cell
		ours, theirs time.Duration
	}{{a, 35, 90}, {b, 10, 400}, {a, 20, 1000}, {b, 30, 800}, {a, 22, 60}} {
		all = append(all, pair{ours: sample{us, ran(row.ours)}, theirs: sample{row.cell, ran(row.theirs)}})
	}
	f := fastest(all)
	require.Equal(t, figures{us: {10, 10}, a: {60, 20}, b: {400, 10}}, f)
	require.Equal(t, 3.0, f[a].ratio())
}

// A machine that is slow for a while, and short decisions the most, changes nothing that is said.
func TestSlowWhile(t *testing.T) {
	taken := 0
	m := func(c cell) (func() testing.BenchmarkResult, error) {
		return func() testing.BenchmarkResult {
			ns := time.Duration(30)
			if c.impl == ours {
				ns = 20
			}
			if taken++; taken/500%2 == 0 {
				ns += 25
			}
			return ran(ns)
		}, nil
	}
	all, err := pairs(m, 6, io.Discard)
	require.NoError(t, err)
	f := fastest(all)
	for _, c := range cells() {
		want := figure{ns: 30, ours: 20}
		if c.impl == ours {
			want.ns = 20
		}
		require.Equal(t, want, f[c], c)
	}
}

// Everybody is measured as often as was asked for, right after ours in the same fleet, and once before
// anybody is again.
func TestPairs(t *testing.T) {
	m, err := fake(50)("")
	require.NoError(t, err)
	all, err := pairs(m, 2, io.Discard)
	require.NoError(t, err)
	var want []cell
	for _, n := range sizes {
		for range 2 {
			for _, column := range columns(n) {
				for _, c := range column.cells() {
					if c.impl != ours {
						want = append(want, c)
					}
				}
			}
		}
	}
	require.Len(t, all, len(want))
	for i, p := range all {
		require.Equal(t, want[i], p.theirs.cell)
		require.Equal(t, want[i].of(ours), p.ours.cell)
	}
}

func TestRun(t *testing.T) {
	for _, row := range []struct {
		name     string
		args     []string
		theirs   time.Duration
		status   int
		says     string
		measured bool
	}{
		{"the table fails for nothing", nil, 5, 0, "", true},
		{"ahead", []string{"-check"}, 300, 0, "all that is claimed is so", true},
		{"behind", []string{"-check"}, 5, 1, "not so: BenchmarkPlace/impl=maglev/job=owner/gateways=3/full=0 takes 0.50 times what evenring takes (5.0 and 10.0 ns)", true},
		{"no rounds", []string{"-count", "0"}, 5, 2, "-count", false},
		{"words", []string{"all"}, 5, 2, "nothing comes after", false},
		{"a stranger", []string{"-fast"}, 5, 2, "-fast", false},
		{"help", []string{"-help"}, 5, 0, "-benchtime", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			require.Equal(t, row.status, run(row.args, &stdout, &stderr, fake(row.theirs)), stderr.String())
			require.Contains(t, stderr.String(), row.says)
			require.Equal(t, row.measured, strings.Contains(stdout.String(), "gateways=1024"))
		})
	}
}

func TestFailures(t *testing.T) {
	broken := func(string) (measure, error) {
		return func(c cell) (func() testing.BenchmarkResult, error) {
			return nil, errors.New(c.impl + " is broken")
		}, nil
	}
	var stderr bytes.Buffer
	require.Equal(t, 1, run(nil, io.Discard, &stderr, broken))
	require.Contains(t, stderr.String(), "floor is broken")

	idle := func(string) (measure, error) {
		return func(cell) (func() testing.BenchmarkResult, error) {
			return func() testing.BenchmarkResult { return testing.BenchmarkResult{} }, nil
		}, nil
	}
	stderr.Reset()
	require.Equal(t, 1, run(nil, io.Discard, &stderr, idle))
	require.Contains(t, stderr.String(), "BenchmarkPlace/impl=evenring/job=owner/gateways=3/full=0: it did not run")

	stderr.Reset()
	require.Equal(t, 2, run([]string{"-benchtime", "soon"}, io.Discard, &stderr, timed))
	require.Contains(t, stderr.String(), "-benchtime")

	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	stderr.Reset()
	require.Equal(t, 1, run([]string{"-out", file}, io.Discard, &stderr, fake(5)))
	require.Contains(t, stderr.String(), file)
}

func TestKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results")
	var stdout bytes.Buffer
	require.Zero(t, run([]string{"-count", "2", "-out", dir}, &stdout, io.Discard, fake(5)))

	tables, err := filepath.Glob(filepath.Join(dir, "*.table.txt"))
	require.NoError(t, err)
	require.Len(t, tables, 1)
	kept, err := os.ReadFile(tables[0])
	require.NoError(t, err)
	require.Equal(t, stdout.String(), string(kept))

	text, err := os.ReadFile(strings.TrimSuffix(tables[0], ".table.txt") + ".txt")
	require.NoError(t, err)
	setting := regexp.MustCompile(`^(goos|goarch|pkg|cpu|go|command): \S`)
	result := regexp.MustCompile(`^Benchmark(Place|Reserve)/\S+-\d+\t +100\t +\d+\.\d+ ns/op\t +0 B/op\t +0 allocs/op$`)
	settings, results := 0, 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case setting.MatchString(line):
			settings++
		case result.MatchString(line):
			results++
		default:
			t.Errorf("benchstat does not know what this is: %q", line)
		}
	}
	require.Equal(t, 6, settings)
	require.Equal(t, 2*2*(len(cells())-4*9), results, "two for each cell but ours, and ours before each")
	require.Contains(t, string(text), "\ncommand: go run ./placement/bench -benchtime 10ms -count 2\n")
}

// The command measures as the benchmarks do.
func TestTimed(t *testing.T) {
	before := flag.Lookup("test.benchtime").Value.String()
	t.Cleanup(func() { require.NoError(t, flag.Set("test.benchtime", before)) })
	m, err := timed("7x")
	require.NoError(t, err)
	for _, c := range cells()[:3] {
		once, err := m(c)
		require.NoError(t, err)
		r := once()
		require.Equal(t, 7, r.N)
		require.Positive(t, sample{c, r}.ns())
	}
}
