// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/examples/internal/report"
)

// Short hand for what supervisors report.

func attached(name, gateway string, gapMS float64) report.Event {
	return report.Event{Kind: report.Attached, Member: name, Gateway: gateway, GapMS: gapMS}
}

func lost(name string) report.Event { return report.Event{Kind: report.Lost, Member: name} }

func verdict(name, outcome, gateway string) report.Event {
	return report.Event{Kind: report.Verdict, Member: name, Outcome: outcome, Gateway: gateway}
}

func session(name, id, gateway string, atHome bool) report.Event {
	return report.Event{Kind: report.Session, Member: name, Session: id, Gateway: gateway, AtHome: atHome}
}

// tell gives a board what happens: a [report.Event], or something to do with the board.
func tell(b *board, all ...any) {
	for _, one := range all {
		switch one := one.(type) {
		case report.Event:
			b.event(one)
		case func(*board):
			one(b)
		default:
			panic("neither an event nor something to do")
		}
	}
}

func begins(b *board) { b.begin() }

func expects(name string, sessions int) func(*board) {
	return func(b *board) { b.expect(name, sessions) }
}

func dies(names ...string) func(*board) { return func(b *board) { b.died(names) } }

func TestBoard(t *testing.T) {
	for _, row := range []struct {
		name  string
		story []any
		want  figures
	}{
		{
			"nobody", nil,
			figures{least: -1},
		},
		{
			"expected, and not there yet", []any{expects("a", 2), expects("b", 0)},
			figures{supervisor: 2, lost: 2, missing: 2},
		},
		{
			"served, with their sessions", []any{
				expects("a", 2), expects("b", 1),
				attached("a", "gw-1", 0), session("a", "s1", "gw-1", true), session("a", "s2", "gw-1", true),
				attached("b", "gw-2", 0), session("b", "s1", "gw-2", true),
			},
			figures{supervisor: 2, served: map[string]int{"gw-1": 1, "gw-2": 1}, sessions: 3, least: 1},
		},
		{
			"strangers do not count", []any{
				expects("a", 0), attached("a", "gw-1", 0),
				attached("x", "gw-1", 9), verdict("x", "refuse", ""), session("x", "s1", "gw-1", true), dies("x"),
			},
			figures{supervisor: 1, served: map[string]int{"gw-1": 1}, least: 1},
		},
		{
			"lost: its sessions are not where it is", []any{
				expects("a", 1), attached("a", "gw-1", 0), session("a", "s1", "gw-1", true), lost("a"),
			},
			figures{supervisor: 1, lost: 1, sessions: 1, misplaced: 1, least: 1},
		},
		{
			"lost and back at the same gateway: no move", []any{
				expects("a", 0), attached("a", "gw-1", 0), begins, lost("a"), attached("a", "gw-1", 3.5),
			},
			figures{supervisor: 1, served: map[string]int{"gw-1": 1}, least: 1, gapMax: 3.5, gapP99: 3.5},
		},
		{
			"the first gateway is no move", []any{
				begins, expects("a", 0), attached("a", "gw-1", 0),
			},
			figures{supervisor: 1, served: map[string]int{"gw-1": 1}, least: 1},
		},
		{
			"moved once without a gap, its session a moment behind", []any{
				expects("a", 1), attached("a", "gw-1", 0), session("a", "s1", "gw-1", true), begins,
				attached("a", "gw-2", 0), session("a", "s1", "gw-1", false),
			},
			figures{supervisor: 1, served: map[string]int{"gw-2": 1}, sessions: 1, misplaced: 1, moved: 1, maxMoves: 1, least: 1},
		},
		{
			"moved once, its session too", []any{
				expects("a", 1), attached("a", "gw-1", 0), session("a", "s1", "gw-1", true), begins,
				attached("a", "gw-2", 0), session("a", "s1", "gw-2", true),
			},
			figures{supervisor: 1, served: map[string]int{"gw-2": 1}, sessions: 1, moved: 1, maxMoves: 1, least: 1},
		},
		{
			"a session at the right gateway that says it is not at home", []any{
				expects("a", 1), attached("a", "gw-1", 0), session("a", "s1", "gw-1", false),
			},
			figures{supervisor: 1, served: map[string]int{"gw-1": 1}, sessions: 1, misplaced: 1, least: 1},
		},
		{
			"one moved there and back, one moved once, one stayed", []any{
				expects("a", 0), expects("b", 0), expects("c", 0),
				attached("a", "gw-1", 0), attached("b", "gw-1", 0), attached("c", "gw-1", 0), begins,
				attached("a", "gw-2", 0), attached("a", "gw-1", 0), lost("b"), attached("b", "gw-2", 7),
			},
			figures{supervisor: 3, served: map[string]int{"gw-1": 2, "gw-2": 1}, moved: 2, maxMoves: 2, gapMax: 7, gapP99: 7},
		},
		{
			"a step forgets the moves, gaps, refusals and redirects before it", []any{
				expects("a", 0), attached("a", "gw-1", 0), verdict("a", "redirect", "gw-2"), verdict("a", "refuse", ""),
				lost("a"), attached("a", "gw-2", 9), begins,
			},
			figures{supervisor: 1, served: map[string]int{"gw-2": 1}},
		},
		{
			"a session ends", []any{
				expects("a", 2), attached("a", "gw-1", 0), session("a", "s1", "gw-1", true), session("a", "s2", "gw-1", true),
				session("a", "s1", "", false),
			},
			figures{supervisor: 1, served: map[string]int{"gw-1": 1}, sessions: 1, missing: 1, least: 1},
		},
		{
			"more sessions than expected are not missing ones", []any{
				expects("a", 0), expects("b", 1), attached("a", "gw-1", 0), attached("b", "gw-1", 0), session("a", "s1", "gw-1", true),
			},
			figures{supervisor: 2, served: map[string]int{"gw-1": 2}, sessions: 1, missing: 1, least: 1},
		},
		{
			"a process died with two members", []any{
				expects("a", 1), expects("b", 1), expects("c", 1),
				attached("a", "gw-1", 0), session("a", "s1", "gw-1", true),
				attached("b", "gw-2", 0), session("b", "s1", "gw-2", true),
				attached("c", "gw-2", 0), session("c", "s1", "gw-2", true),
				begins, dies("a", "b"),
			},
			figures{supervisor: 3, served: map[string]int{"gw-2": 1}, lost: 2, sessions: 1, missing: 2},
		},
		{
			"a process died and came back elsewhere: that is a move", []any{
				expects("a", 0), attached("a", "gw-1", 0), begins, dies("a"), attached("a", "gw-2", 0),
			},
			figures{supervisor: 1, served: map[string]int{"gw-2": 1}, moved: 1, maxMoves: 1, least: 1},
		},
		{
			"redirects by target, refusals; an acceptance is neither", []any{
				expects("a", 0), begins, verdict("a", "redirect", "gw-2"), verdict("a", "redirect", "gw-2"), verdict("a", "redirect", "gw-3"),
				verdict("a", "refuse", ""), verdict("a", "accept", "gw-3"),
			},
			figures{supervisor: 1, lost: 1, redirects: map[string]int{"gw-2": 2, "gw-3": 1}, refused: 1},
		},
		{
			"expected again with other sessions", []any{
				expects("a", 1), attached("a", "gw-1", 0), expects("a", 3),
			},
			figures{supervisor: 1, served: map[string]int{"gw-1": 1}, missing: 3, least: 1},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBoard()
				tell(b, row.story...)
				got := b.read()
				if row.want.served == nil {
					row.want.served = map[string]int{}
				}
				if row.want.redirects == nil {
					row.want.redirects = map[string]int{}
				}
				got.quiet = 0
				require.Equal(t, row.want, got)
			})
		})
	}
}

func TestBoardGaps(t *testing.T) {
	for _, row := range []struct {
		name     string
		gaps     int // 1 ms, 2 ms and so on
		p99, max float64
	}{
		{"none", 0, 0, 0},
		{"one", 1, 1, 1},
		{"two", 2, 2, 2},
		{"99", 99, 99, 99},
		{"100", 100, 99, 100},
		{"101", 101, 100, 101},
		{"200", 200, 198, 200},
		{"1000", 1000, 990, 1000},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := newBoard()
			b.expect("a", 0)
			for i := row.gaps; i > 0; i-- { // the largest first: order must not matter
				tell(b, attached("a", "gw-1", float64(i)))
			}
			f := b.read()
			require.Equal(t, row.p99, f.gapP99)
			require.Equal(t, row.max, f.gapMax)
		})
	}
}

func TestBoardIsQuietSinceTheLastEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		b.expect("a", 0)
		tell(b, attached("a", "gw-1", 0))
		<-time.After(3 * time.Second)
		f := b.read()
		require.Equal(t, 3*time.Second, f.quiet)
		tell(b, verdict("a", "accept", "gw-1"))
		require.Zero(t, b.read().quiet)
		<-time.After(time.Second)
		tell(b, dies("a"))
		require.Zero(t, b.read().quiet)
	})
}

// What read returns is the caller's.
func TestBoardKeepsItsOwn(t *testing.T) {
	b := newBoard()
	tell(b, expects("a", 0), attached("a", "gw-1", 0), verdict("a", "redirect", "gw-1"))
	f := b.read()
	f.served["gw-1"], f.redirects["gw-1"] = 9, 9
	f = b.read()
	require.Equal(t, map[string]int{"gw-1": 1}, f.served)
	require.Equal(t, map[string]int{"gw-1": 1}, f.redirects)
}

func TestSpread(t *testing.T) {
	served := map[string]int{"gw-1": 4, "gw-2": 3, "gw-3": 7}
	for _, row := range []struct {
		gateways []string
		want     int
	}{
		{nil, 0},
		{[]string{"gw-1"}, 0},
		{[]string{"gw-1", "gw-2"}, 1},
		{[]string{"gw-2", "gw-1"}, 1},
		{[]string{"gw-1", "gw-2", "gw-3"}, 4},
		{[]string{"gw-3", "gw-4"}, 7}, // gw-4 serves nobody
		{[]string{"gw-4", "gw-5"}, 0},
	} {
		require.Equal(t, row.want, figures{served: served}.spread(row.gateways), "%v", row.gateways)
	}
}
