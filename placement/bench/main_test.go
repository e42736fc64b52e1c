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

// madeUp are figures by rule: ours takes 10 ns, everybody else so many.
func madeUp(theirs float64) figures {
	f := figures{}
	for _, c := range cells() {
		f[c] = theirs
		if c.impl == ours {
			f[c] = 10
		}
	}
	return f
}

// fake measures nothing: ours takes 10 ns, everybody else so many.
func fake(theirs time.Duration) func(string) (measure, error) {
	return func(string) (measure, error) {
		return func(c cell) (testing.BenchmarkResult, error) {
			r := testing.BenchmarkResult{N: 100, T: 100 * theirs}
			if c.impl == ours {
				r.T = 1000
			}
			return r, nil
		}, nil
	}
}

func TestFaults(t *testing.T) {
	require.Empty(t, madeUp(200).faults())
	require.NotEmpty(t, madeUp(199).faults(), "19.9 is not 20")

	slow := cell{impl: "maglev", job: jobCapped, gateways: 128, full: 90}
	even := cell{impl: "lafikl-shape", job: jobReserve, gateways: 3}
	blind := cell{impl: "least-loaded", job: jobCapped, gateways: 3}
	soft := cell{impl: "two-choices", job: jobCapped, gateways: 1024, full: 99}
	gone := cell{impl: "authzed", job: jobOwner, gateways: 16}
	f := madeUp(200)
	f[slow], f[even], f[blind], f[soft] = 190, 10, 1, 1
	delete(f, gone)
	require.Equal(t, []string{
		"BenchmarkReserve/impl=lafikl-shape/gateways=3/full=0 takes 1.00 times what evenring takes, where more than 1 and at least 1 are claimed",
		"BenchmarkPlace/impl=authzed/job=owner/gateways=16/full=0 was not measured",
		"BenchmarkPlace/impl=maglev/job=capped/gateways=128/full=90 takes 19.00 times what evenring takes, where more than 1 and at least 20 are claimed",
	}, f.faults())
}

func TestTables(t *testing.T) {
	f := madeUp(123.4)
	f[cell{impl: "least-loaded", job: jobCapped, gateways: 3}] = 0.5
	all := f.tables()
	require.True(t, strings.HasPrefix(all, legend))
	for _, want := range []string{
		"\ngateways=3                       owner           full=0          full=90          full=99         full=100\n" +
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

func TestMedians(t *testing.T) {
	c := cells()[0]
	var samples []sample
	for _, ns := range []time.Duration{90, 10, 20} {
		samples = append(samples, sample{c, testing.BenchmarkResult{N: 2, T: 2 * ns}})
	}
	require.Equal(t, figures{c: 20}, medians(samples))
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
		{"ahead", []string{"-check"}, 300, 0, "ours is ahead", true},
		{"behind", []string{"-check"}, 5, 1, "not so: BenchmarkPlace/impl=maglev/job=owner/gateways=3/full=0 takes 0.50 times", true},
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
		return func(c cell) (testing.BenchmarkResult, error) {
			return testing.BenchmarkResult{}, errors.New(c.impl + " is broken")
		}, nil
	}
	var stderr bytes.Buffer
	require.Equal(t, 1, run(nil, io.Discard, &stderr, broken))
	require.Contains(t, stderr.String(), "evenring is broken")

	stderr.Reset()
	require.Equal(t, 2, run([]string{"-benchtime", "soon"}, io.Discard, &stderr, timed))
	require.Contains(t, stderr.String(), "-benchtime")

	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	stderr.Reset()
	require.Equal(t, 1, run([]string{"-out", file}, io.Discard, &stderr, fake(5)))
	require.Contains(t, stderr.String(), file)
}

func TestKeep(t *testing.T) {
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
	require.Equal(t, 2*len(cells()), results)
	require.Contains(t, string(text), "\ncommand: go run ./placement/bench -benchtime 100ms -count 2\n")
}

// The command measures as the benchmarks do.
func TestTimed(t *testing.T) {
	before := flag.Lookup("test.benchtime").Value.String()
	t.Cleanup(func() { require.NoError(t, flag.Set("test.benchtime", before)) })
	m, err := timed("7x")
	require.NoError(t, err)
	for _, c := range cells()[:3] {
		r, err := m(c)
		require.NoError(t, err)
		require.Equal(t, 7, r.N)
		require.Positive(t, sample{c, r}.ns())
	}
}
