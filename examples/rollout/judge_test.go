// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each criterion of an act can fail.
func TestJudgeAct(t *testing.T) {
	moved := func(b *board) {
		tell(b, expects("a", 0), attached("a", "gw-1", 0), begins, attached("a", "gw-2", 0))
	}
	for _, row := range []struct {
		name string
		kind kind
		had  func(*board)
		res  actResult
		want []string
	}{
		{name: "nothing", kind: kind{smooth: true}},
		{name: "somebody moved", had: moved, res: actResult{Moved: 1, MaxMoves: 1}, want: []string{"a moved from gw-1 to gw-2, and nothing had happened to it"}},
		{name: "a gap", res: actResult{GapMSMax: 5}},
		{name: "a gap where there must be none", kind: kind{smooth: true}, res: actResult{GapMSMax: 5}, want: []string{"somebody had no stream for 5.0 ms"}},
		{name: "moved twice", res: actResult{MaxMoves: 2}},
		{name: "moved twice where once is enough", kind: kind{smooth: true}, res: actResult{MaxMoves: 2}, want: []string{"somebody moved 2 times"}},
		{name: "no answer", res: actResult{Echo: &Echo{Sent: 9, Uncertain: 1}}, want: []string{"1 of 9 requests have no answer: <nil>"}},
		{name: "no answer, of a process that is killed", kind: kind{loses: true}, res: actResult{Echo: &Echo{Sent: 9, Failed: 1}}},
		{name: "twice, of a process that is killed", kind: kind{loses: true}, res: actResult{Echo: &Echo{Sent: 9, Twice: 1}}, want: []string{"1 requests were executed twice"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := paper(config{}, "gw-1")
			if row.had != nil {
				row.had(r.board)
			}
			require.Equal(t, row.want, newHavoc(r, kinds).judge(act{kind: row.kind}, row.res))
		})
	}
}

func TestJudgeAllActs(t *testing.T) {
	grows := func(by float64, acts int) *life {
		looks := make([]usage, acts)
		for i := range looks {
			looks[i].Goroutines = by * float64(i)
		}
		return lived(looks...)
	}
	one := actResult{Act: 1, Kind: "refresh", OK: true}
	for _, row := range []struct {
		name     string
		acts     []actResult
		gateways history
		hosts    history
		want     []string
	}{
		{name: "none", want: []string{"there was no act"}},
		{name: "held", acts: []actResult{one}},
		{name: "did not", acts: []actResult{one, {Act: 2}, {Act: 5}}, want: []string{"2 of 3 acts did not hold: 2 5"}},
		{name: "gateways grow", acts: []actResult{one}, gateways: history{"gw-1/1": grows(1, 12)}, want: []string{"with each act gateways have at least 1.0 goroutines and 0.0 files more open"}},
		{name: "hosts grow", acts: []actResult{one}, hosts: history{"host-1/1": grows(0.75, 12)}, want: []string{"with each act hosts have at least 0.8 goroutines and 0.0 files more open"}},
		{name: "they grow within what is allowed", acts: []actResult{one}, hosts: history{"host-1/1": grows(0.5, 12)}},
		{name: "too little to tell", acts: []actResult{one}, gateways: history{"gw-1/1": grows(1, 5)}},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := newHavoc(paper(config{}), kinds)
			for _, res := range row.acts {
				h.sum.add(res)
			}
			h.gatewaysOpen, h.hostsOpen = row.gateways, row.hosts
			require.Equal(t, row.want, h.judgeAll())
			require.Contains(t, h.aside, " acts, ")
		})
	}
	require.Empty(t, paper(config{}).judgeChaos(result{}), "it has not begun, and that is told already")
}

// Whom a settle names may move, nobody else, and no more than are above the even share.
func TestEvenIsJudged(t *testing.T) {
	moved := gatewayPages(t, map[string]string{"/settle": `{"ending":"even","moved":[{"member":"a","gateway":"gw-2"}],"failed":[]}`})
	h := newHavoc(paper(config{}, "gw-1"), kinds)
	h.gateways["gw-1"].ops = moved
	require.EqualError(t, h.even(t.Context(), act{}), "-settle moved 1, and only 0 were above the even share")
	require.Empty(t, h.excused.judge([]mover{{"a", "gw-1", "gw-2"}}))
	require.NotEmpty(t, h.excused.judge([]mover{{"b", "gw-1", "gw-2"}}))
}

func TestUntilSaysWhatSpokeAgainstIt(t *testing.T) {
	errOver := errors.New("time is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	looks := 0
	err := new(fleet).until(ctx, func() []string {
		if looks++; looks == 2 {
			cancel(errOver)
			return []string{"asked too late"}
		}
		return []string{"one", "two", "three", "four"}
	})
	require.ErrorIs(t, err, errOver)
	require.EqualError(t, err, "one; two; three: time is over")
	require.NoError(t, new(fleet).until(ctx, func() []string { return nil }))
}
