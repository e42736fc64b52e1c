// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/evenring/evenring/internal/herd"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTable(t *testing.T) {
	var out bytes.Buffer
	status := run([]string{"-herd", "-gateways", "2,3", "-supervisors", "30", "-seeds", "2", "-interleavings", "20", "-over", "10ms"}, &out, io.Discard)
	require.Zero(t, status, out.String())
	text := out.String()
	for _, way := range slices.Concat(herd.Ways(), herd.Troubled()) {
		require.Equal(t, 2, strings.Count(text, "\n"+way.What+" "), "%s\n%s", way.What, text)
	}
	require.Contains(t, text, "A message takes up to 20ms; every target is checked.\n")
	require.Contains(t, text, "30 supervisors arrive on 3 gateways; 2 seeds from 0 on\n")
	require.Regexp(t, `(?m)^the ring alone .* - \| - \| - +- \| - \| - *$`, text, "it takes no time and asks nobody")
	require.Regexp(t, `(?m)^ours, asking .* 0 \| 0 \| 0 +\d\.\d \| \d\.\d \| \d\.\d *$`, text)
	require.Regexp(t, `(?m)^2 on 2 +no-link +20 +1\d +20 +\[20\] *$`, text)
	require.Regexp(t, `(?m)^12 on 3 +asking +2 +2 +2 `, text)
	// Of asking: dials twice, asks, yeses. Of each with trouble: dials, yeses. And the small fleets.
	checked := 3*2*4 + 2*3*2*len(herd.Troubled()) + len(herd.AllFew())
	require.True(t, strings.HasSuffix(text, fmt.Sprintf("\nEvery target is met (%d checked).\n", checked)), text)
}

// What was not checked is not said to be met.
func TestWhatWasChecked(t *testing.T) {
	for args, want := range map[string]string{
		"-ways owner": "No target was checked.\n",
		"-ways asking -interleavings 0 -latency 21ms": "Every target is met (3 checked).\n",
		"-ways no-link -interleavings 0":              "No target was checked.\n",
		"-ways asking -interleavings 0":               "Every target is met (12 checked).\n",
		"-ways no-link -interleavings 3":              "Every target is met (1 checked).\n",
	} {
		var out bytes.Buffer
		require.Zero(t, run(strings.Fields("-herd -gateways 4 -supervisors 40 -seeds 1 "+args), &out, io.Discard), args)
		require.True(t, strings.HasSuffix(out.String(), "\n"+want), "%s\n%s", args, out.String())
		if strings.Contains(args, "21ms") {
			require.Contains(t, out.String(), "A message takes up to 21ms; of the targets, which are for up to 20ms, one is checked: nobody says yes above the limit.\n")
		}
	}
}

func TestJSON(t *testing.T) {
	var out, people bytes.Buffer
	status := run([]string{"-herd", "-json", "-gateways", "4", "-supervisors", "40", "-seeds", "1", "-seed", "9", "-interleavings", "3", "-latency", "5ms", "-ways", "owner,no-link"}, &out, &people)
	require.Zero(t, status, people.String())
	require.Equal(t, "Every target is met (1 checked).\n", people.String())
	var ways []string
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 2*3+1)
	for _, line := range lines[:6] {
		var f herd.Figures
		require.NoError(t, json.Unmarshal([]byte(line), &f), line)
		require.Equal(t, 4, f.Wave.Gateways)
		require.Equal(t, 5*time.Millisecond, f.Wave.Latency)
		require.EqualValues(t, 9, f.Worst)
		require.Equal(t, 40, f.Dials.Supervisors)
		ways = append(ways, f.Way)
	}
	require.Equal(t, []string{"owner", "owner", "owner", "no-link", "no-link", "no-link"}, ways)
	var s small
	require.NoError(t, json.Unmarshal([]byte(lines[6]), &s))
	require.Equal(t, small{Few: s.Few, Seed: 9, Tried: herd.Tried{Spreads: []int{3}, Distinct: 3}}, s)
	require.Equal(t, herd.NoLink, s.Few.Way)
}

// The file that is kept has every row that the program prints.
func TestKeptResults(t *testing.T) {
	kept, err := os.ReadFile(filepath.Join("results", "herd-linux-amd64.txt"))
	require.NoError(t, err)
	text := string(kept)
	for _, what := range []string{"goos: linux\n", "goarch: amd64\n", "cpu: ", "go: go1.", "command: go run ./examples/simulate -herd\n", "\nEvery target is met ("} {
		require.Contains(t, text, what)
	}
	tables := strings.Split(text, "\n\n")
	rows := func(head string) string {
		i := slices.IndexFunc(tables, func(table string) bool { return strings.HasPrefix(table, head) })
		require.GreaterOrEqual(t, i, 0, head)
		return tables[i]
	}
	cfg, err := parse([]string{"-herd"}, io.Discard)
	require.NoError(t, err)
	for _, g := range cfg.gateways {
		table := rows(fmt.Sprintf("%d supervisors arrive on %d gateways; %d seeds from 0 on\n", cfg.supervisors[0], g, cfg.seeds))
		for _, way := range herd.Ways() {
			require.Contains(t, table, "\n"+way.What+"  ")
		}
	}
	for _, wave := range herd.TroubledWaves() {
		table := rows(fmt.Sprintf("Asking with trouble: %d on %d;", wave.Supervisors, wave.Gateways))
		for _, way := range herd.Troubled() {
			require.Contains(t, table, "\n"+way.What+"  ")
		}
	}
	table := rows("Small fleets,")
	for _, f := range herd.AllFew() {
		require.Regexp(t, fmt.Sprintf(`(?m)^%d on %d +%s +%d +`, f.Supervisors, f.Gateways, f.Way, cfg.interleavings/f.Share), table)
	}
}

func TestVerdict(t *testing.T) {
	var out bytes.Buffer
	require.Equal(t, 1, verdict(nil, []string{"this", "that"}, "MISSED:", "Well.", &out, io.Discard))
	require.Equal(t, "MISSED: this\nMISSED: that\n", out.String())
	out.Reset()
	require.Equal(t, 0, verdict(nil, nil, "MISSED:", "Well.", &out, io.Discard))
	require.Equal(t, "Well.\n", out.String())
	out.Reset()
	require.Equal(t, 1, verdict(io.ErrShortWrite, nil, "MISSED:", "Well.", io.Discard, &out))
	require.Equal(t, "simulate: short write\n", out.String())
}

// A small fleet that cannot meet its target is named with its first seed.
func TestMissed(t *testing.T) {
	row := small{Few: herd.Few{Way: herd.NoLink, Supervisors: 2, Gateways: 2}, Tried: herd.Tried{Spreads: []int{7, 0, 1}, Missed: []uint64{5}}}
	require.Equal(t, "no-link, 2 on 2: a spread of at most 0 in every interleaving is the target; not so in 1 of 8, the first of seed 5", row.missed())
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	cfg, err := parse([]string{"-herd"}, io.Discard)
	require.NoError(t, err)
	_, err = simulate(ctx, cfg, printer(false, io.Discard))
	require.ErrorIs(t, err, context.Canceled)
}

func TestFaultsNameTheirFlag(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", "nothing to simulate: give -herd, -plan or -grow"},
		{"-herd more", `unexpected argument "more"`},
		{"-herd -gateways 3,x", `-gateways: "x"`},
		{"-herd -gateways 0", `-gateways: "0"`},
		{"-herd -supervisors 0", `-supervisors: "0" is no number of supervisors`},
		{"-herd -supervisors 1,2", `-supervisors: "1,2"; -herd takes one number`},
		{"-herd -seeds 0", "-seeds is 0"},
		{"-herd -over -1s", "-over is -1s"},
		{"-herd -latency 0s", "-latency is 0s; it must be above 0"},
		{"-herd -interleavings -1", "-interleavings is -1"},
		{"-herd -ways owner,best", `-ways: no way is called "best"`},
		{"-herd -plan rolling", "-plan does not go with -herd"},
		{"-herd -grow -plot a.png", "-plot does not go with -herd"},
		{"-plan rolling -seeds 3", "-seeds goes with -herd alone"},
		{"-plan crash -latency 1s", "-latency goes with -herd alone"},
		{"-grow -over 1s", "-over goes with -herd alone"},
		{"-plan storm", `-plan: no plan is called "storm"; there are rolling, crash, burst, scale-up, partition`},
		{"-plan crash -gateways 2,3", `-gateways: "2,3"; -plan takes one number`},
		{"-plan crash -supervisors 2,3", `-supervisors: "2,3"; -plan takes one number`},
		{"-plan crash -gateways 1", "-gateways: a plan takes from 2 to 10000, and not 1"},
		{"-grow -gateways 3,10001", "and not 10001"},
		{"-plan crash -supervisors 1000000001", "-supervisors: a plan takes at most 1000000000, and not 1000000001"},
		{"-plan crash -plot a.gif", `-plot: "a.gif" ends neither in .png nor in .svg`},
		{"-plan crash -plot " + filepath.Join(t.TempDir(), "none", "a.png"), "-plot: open "},
		{"-nonsense", "nonsense"},
	} {
		var stderr bytes.Buffer
		require.Equal(t, 2, run(strings.Fields(c.args), io.Discard, &stderr), c.args)
		require.Contains(t, stderr.String(), c.want)
	}
	require.Zero(t, run([]string{"-help"}, io.Discard, io.Discard))
}
