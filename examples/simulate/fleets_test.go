// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/examples/simulate/internal/scale"
)

// cost is the line that no two runs have in common.
var cost = regexp.MustCompile(`(?m)^(\d+ decisions with \d+ questions), \d+ ns of processor time each; [\d.]+ bytes for each supervisor; \S+s$`)

func TestPlanTells(t *testing.T) {
	for args, want := range map[string]string{
		"-plan rolling -gateways 4 -supervisors 1000": `
rolling: 1000 supervisors on 4 gateways, with surge
           gateways  served  fewest  most  decisions  moves
   arrive         4    1000     250   250       1000      0
  restart         4    1000     250   250       1000   1000
spread 0; at its fullest, a gateway had 1.000 times the even share; 1000 moves, at most 1 of one supervisor
2000 decisions with 1738 questions, COST
Every promise is kept.
`,
		"-plan rolling -gateways 4 -supervisors 1000 -surge=false": `
rolling: 1000 supervisors on 4 gateways, without surge
           gateways  served  fewest  most  decisions  moves
   arrive         4    1000     250   250       1000      0
  restart         4    1000       0   334       1250   1250
spread 334; at its fullest, a gateway had 1.336 times the even share; 1250 moves, at most 2 of one supervisor
2250 decisions with 1988 questions, COST
Every promise is kept.
`,
		"-plan rolling -gateways 4 -supervisors 1000 -surge=false -settle": `
rolling: 1000 supervisors on 4 gateways, without surge, then a settle
           gateways  served  fewest  most  decisions  moves
   arrive         4    1000     250   250       1000      0
  restart         4    1000       0   334       1250   1250
   settle         4    1000     250   250          0    250
spread 0; at its fullest, a gateway had 1.336 times the even share; 1500 moves, at most 3 of one supervisor
settled with 250 moves
2250 decisions with 1988 questions, COST
Every promise is kept.
`,
		"-plan scale-up -gateways 4 -supervisors 1000": `
scale-up: 1000 supervisors on 4 gateways
                gateways  served  fewest  most  decisions  moves
        arrive         2     500     250   250        500      0
          join         4     500       0   250          0      0
  arrive later         4    1000     250   250        500      0
spread 0; at its fullest, a gateway had 1.000 times the even share; 0 moves, at most 0 of one supervisor
1000 decisions with 630 questions, COST
Every promise is kept.
`,
	} {
		var out, errs bytes.Buffer
		require.Zero(t, run(strings.Fields(args), &out, &errs), args)
		require.Empty(t, errs.String(), "no bar where nobody sees it")
		require.Equal(t, strings.TrimPrefix(want, "\n"), cost.ReplaceAllString(out.String(), "$1, COST"), args)
	}
}

func TestPlanAsJSON(t *testing.T) {
	for _, plan := range scale.Plans() {
		var out, people bytes.Buffer
		require.Zero(t, run([]string{"-plan", string(plan), "-gateways", "5", "-supervisors", "5000", "-json"}, &out, &people))
		require.True(t, strings.HasSuffix(people.String(), "\nEvery promise is kept.\n"), people.String())
		var got map[string]any
		require.NoError(t, json.Unmarshal(out.Bytes(), &got), "one object, and nothing else")
		require.Equal(t, []string{
			"bytes_per_supervisor", "decisions", "gateways", "max_moves", "moves", "ns_per_decision", "ok", "peak_over_fair", "seconds", "spread", "supervisors",
		}, slices.Sorted(maps.Keys(got)))
		require.EqualValues(t, 5, got["gateways"])
		require.EqualValues(t, 5000, got["supervisors"])
		require.Equal(t, true, got["ok"])
		for _, key := range []string{"decisions", "ns_per_decision", "bytes_per_supervisor", "seconds", "peak_over_fair"} {
			require.Positive(t, got[key], key)
		}
		if plan == scale.Rolling {
			require.EqualValues(t, 5000, got["moves"])
			require.EqualValues(t, 1, got["max_moves"])
		}
	}
	require.False(t, figuresOf(scale.Result{Broken: []string{"this"}, Config: scale.Config{Supervisors: 1}}).OK)
}

func TestGrow(t *testing.T) {
	args := []string{"-grow", "-plan", "crash", "-gateways", "2,10", "-supervisors", "10,100,1000"}
	var out bytes.Buffer
	require.Zero(t, run(args, &out, io.Discard), out.String())
	for _, what := range []string{"ns for a decision", "bytes for a supervisor"} {
		require.Regexp(t, `(?m)^crash: `+what+`, by supervisors \(rows\) and gateways \(columns\)
 +2 +10
 +10 +[\d.e+]+ +[\d.e+]+
 +100 +[\d.e+]+ +[\d.e+]+
 +1000 +[\d.e+]+ +[\d.e+]+
$`, out.String())
	}
	out.Reset()
	require.Zero(t, run(append(args, "-json"), &out, io.Discard))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 6)
	var last figures
	require.NoError(t, json.Unmarshal([]byte(lines[5]), &last))
	require.Equal(t, 10, last.Gateways)
	require.Equal(t, 1000, last.Supervisors)
	require.Equal(t, 1100, last.Decisions)
}

func TestPlanInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range []string{"-plan rolling", "-grow"} {
		cfg, err := parse(strings.Fields(args), io.Discard)
		require.NoError(t, err)
		_, err = scaled(ctx, cfg, nil, io.Discard, io.Discard, io.Discard)
		require.ErrorIs(t, err, context.Canceled)
	}
}
