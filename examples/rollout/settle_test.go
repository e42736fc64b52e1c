// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseFlagsSettle(t *testing.T) {
	c, err := parseFlags(nil, io.Discard)
	require.NoError(t, err)
	require.False(t, c.settle, "it is asked for")
	c, err = parseFlags([]string{"-settle", "-surge=false"}, io.Discard)
	require.NoError(t, err)
	require.True(t, c.settle)
	require.False(t, c.surge)
}

func TestJudgeSettled(t *testing.T) {
	for _, row := range []struct {
		name string
		got  evened
		res  result
		want []string
	}{
		{"holds", evened{moves: 4, above: 4, spread: 6}, result{Spread: 0, Moved: 12, MaxMoves: 3}, nil},
		{"fewer than are above", evened{moves: 3, above: 4}, result{Spread: 1}, nil},
		{"too many", evened{moves: 5, above: 4}, result{Spread: 1}, []string{"-settle moved 5, and only 4 were above the even share"}},
		{"uneven", evened{moves: 1, above: 4}, result{Spread: 2}, []string{"the spread is 2, above 1"}},
		{"with a gap", evened{}, result{GapMSMax: 5}, []string{"somebody had no stream for 5.0 ms"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := paper(config{settle: true}, "gw-1", "gw-2")
			r.settled = row.got
			require.Equal(t, row.want, find("rolling").judge(r, row.res))
			require.Contains(t, r.aside, "-settle moved")
		})
	}
}

func TestEvenOutSaysWhoDidNotMove(t *testing.T) {
	var asked []string
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path)
		_, _ = io.WriteString(w, `{"ending":"stuck","moved":[{"member":"a","gateway":"gw-2"}],"failed":[{"member":"b","gateway":"gw-2","cause":"silent"}]}`)
	}))
	defer pages.Close()
	r := paper(config{settle: true}, "gw-1")
	r.gateways["gw-1"].ops = strings.TrimPrefix(pages.URL, "http://")
	err := r.evenOut(t.Context())
	require.ErrorContains(t, err, "gw-1 told b to move to gw-2, and it did not (silent)")
	require.Equal(t, 1, r.settled.moves)
	require.Equal(t, []string{"POST /settle"}, asked)

	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, `{"error":"redirect: a drain is under way already"}`)
	}))
	defer refuses.Close()
	r.gateways["gw-1"].ops = strings.TrimPrefix(refuses.URL, "http://")
	require.ErrorContains(t, r.evenOut(t.Context()), "gw-1 does not settle: redirect: a drain is under way already")
	http.DefaultClient.CloseIdleConnections()
}

// A rolling restart that stops each gateway before its replacement is ready
// leaves one empty; -settle mends that.
func TestProgramSettles(t *testing.T) {
	p := newProgram(t, "-gateways", "3", "-supervisors", "9", "-steps", "rolling", "-surge=false", "-settle", "-json", "-window", "500ms")
	var stdout, stderr bytes.Buffer
	p.Stdout, p.Stderr = &stdout, &stderr
	p.start(t)
	require.Zero(t, p.end(t), "%s", &stderr)
	all := results(t, stdout.Bytes())
	rolling := all[len(all)-1]
	require.Equal(t, "rolling", rolling.Step)
	require.LessOrEqual(t, rolling.Spread, 1)
	require.Equal(t, 3, rolling.SettleMoves, "the last one was empty")
}
