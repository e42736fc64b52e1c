// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"testing"

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
	for _, way := range herd.Ways() {
		require.Equal(t, 2, strings.Count(text, "\n"+way.What+" "), "%s\n%s", way.What, text)
	}
	require.Contains(t, text, "30 supervisors arrive on 3 gateways; views refreshed every 1 % | 10 % | never; 2 seeds from 0 on\n")
	require.Regexp(t, `(?m)^2 on 2 +no-link +20 +20 +\[20\] *$`, text)
	require.Regexp(t, `(?m)^12 on 3 +asking +2 +2 `, text)
	require.True(t, strings.HasSuffix(text, "\nEvery target is met.\n"), text)
}

func TestJSON(t *testing.T) {
	var out, people bytes.Buffer
	status := run([]string{"-herd", "-json", "-gateways", "4", "-supervisors", "40", "-seeds", "1", "-seed", "9", "-interleavings", "3", "-ways", "owner,no-link"}, &out, &people)
	require.Zero(t, status, people.String())
	require.Equal(t, "Every target is met.\n", people.String())
	var ways []string
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 2*3+1)
	for _, line := range lines[:6] {
		var f herd.Figures
		require.NoError(t, json.Unmarshal([]byte(line), &f), line)
		require.Equal(t, 4, f.Wave.Gateways)
		require.EqualValues(t, 9, f.Worst)
		require.Equal(t, 40, f.Dials.Supervisors)
		ways = append(ways, f.Way)
	}
	require.Equal(t, []string{"owner", "owner", "owner", "no-link", "no-link", "no-link"}, ways)
	var s small
	require.NoError(t, json.Unmarshal([]byte(lines[6]), &s))
	require.Equal(t, small{Few: s.Few, Seed: 9, Spreads: []int{3}}, s)
	require.Equal(t, herd.NoLink, s.Few.Way)
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
	row := small{Few: herd.Few{Way: herd.NoLink, Supervisors: 2, Gateways: 2}, Spreads: []int{7, 0, 1}, Missed: []uint64{5}}
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
		{"-herd -interleavings -1", "-interleavings is -1"},
		{"-herd -ways owner,best", `-ways: no way is called "best"`},
		{"-herd -plan rolling", "-plan does not go with -herd"},
		{"-herd -grow -plot a.png", "-plot does not go with -herd"},
		{"-plan rolling -seeds 3", "-seeds goes with -herd alone"},
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
