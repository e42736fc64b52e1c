// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

const bar = "########################################"

func TestDraw(t *testing.T) {
	for _, row := range []struct {
		name  string
		since time.Duration
		f     figures
		want  string
	}{
		{
			"nobody yet", 90 * time.Millisecond, figures{},
			"step, 0.1 s\n" +
				"  0 of 0 supervisors have a stream, 0 sessions, 0 moved, longest gap 0 ms\n",
		},
		{
			"some are lost", 12340 * time.Millisecond,
			figures{supervisor: 12, lost: 3, sessions: 18, moved: 5, gapMax: 859.7, served: map[string]int{"gw-1": 6, "gw-2": 3}},
			"step, 12.3 s\n" +
				"  9 of 12 supervisors have a stream, 18 sessions, 5 moved, longest gap 860 ms\n" +
				"  gw-1       6 " + bar + "\n" +
				"  gw-2       3 " + bar[:20] + "\n",
		},
		{
			"in the order of their numbers; a bar is never too short to see, nor there for nobody", 0,
			figures{supervisor: 1001, sessions: 2002, served: map[string]int{"gw-10": 1000, "gw-9": 1, "gw-2": 0}},
			"step, 0.0 s\n" +
				"  1001 of 1001 supervisors have a stream, 2002 sessions, 0 moved, longest gap 0 ms\n" +
				"  gw-2       0 \n" +
				"  gw-9       1 #\n" +
				"  gw-10   1000 " + bar + "\n",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, draw("step", row.since, row.f))
		})
	}
}

func TestFit(t *testing.T) {
	const table = "one\nthree\nfourteen\n"
	for _, row := range []struct {
		width, height int
		want          string
	}{
		{80, 24, table},
		{9, 4, table},
		{8, 4, "one\nthree\nfourtee\n"},
		{80, 3, "one\nthree\n"},
		{4, 2, "one\n"},
		{1, 2, "\n"},
		{80, 1, ""},
	} {
		got := fit(table, func() (int, int) { return row.width, row.height })
		require.Equal(t, row.want, got, "%d columns, %d lines", row.width, row.height)
	}
}

func TestScreenOffTerminalPrintsLinesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := newScreen(&out, newBoard())
		s.begin("start")
		<-time.After(time.Second)
		s.say("one")
		s.begin("rolling")
		<-time.After(time.Second)
		s.say("two\n  and why")
		s.close()
		require.Equal(t, "one\ntwo\n  and why\n", out.String())
	})
}

func TestScreenInAFilePrintsLinesOnly(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/out")
	require.NoError(t, err)
	defer f.Close()
	s := newScreen(f, newBoard())
	s.begin("start")
	s.say("one")
	s.close()
	require.Nil(t, s.size)
	text, err := os.ReadFile(f.Name())
	require.NoError(t, err)
	require.Equal(t, "one\n", string(text))
}

// live starts a screen on a terminal; both are there for a fleet of gateways
// with as many supervisors each as told.
func live(term *terminal, served ...int) *screen {
	b := newBoard()
	for i, n := range served {
		for j := range n {
			name := fmt.Sprint(i, "/", j)
			tell(b, expects(name, 0), attached(name, fmt.Sprint("gw-", i+1), 0))
		}
	}
	s := newScreen(term, b)
	s.live(term.size)
	return s
}

func TestScreenOnATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		term := &terminal{width: 80, height: 24}
		s := live(term, 2, 1)
		s.say("hello")
		<-time.After(time.Second)
		synctest.Wait()
		require.Equal(t, "hello\n", term.shown(t), "no table before the first step")

		s.begin("start")
		<-time.After(time.Second)
		synctest.Wait()
		require.Equal(t, "hello\nstart, 1.0 s\n"+
			"  3 of 3 supervisors have a stream, 0 sessions, 0 moved, longest gap 0 ms\n"+
			"  gw-1       2 "+bar+"\n"+
			"  gw-2       1 "+bar[:20]+"\n", term.shown(t))

		s.say("ok start") // above the table, which is soon back
		tell(s.board, lost("0/0"))
		s.begin("crash")
		<-time.After(200 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, "hello\nok start\ncrash, 0.2 s\n"+
			"  2 of 3 supervisors have a stream, 0 sessions, 0 moved, longest gap 0 ms\n"+
			"  gw-1       1 "+bar+"\n"+
			"  gw-2       1 "+bar+"\n", term.shown(t))

		s.close()
		require.Equal(t, "hello\nok start\n", term.shown(t))
	})
}

// A table that does not fit is cut; what is left of it can always be erased.
func TestScreenOnASmallTerminal(t *testing.T) {
	for _, size := range []struct{ width, height int }{{80, 24}, {79, 5}, {40, 4}, {20, 3}, {10, 2}, {2, 1}} {
		t.Run(fmt.Sprintf("%dx%d", size.width, size.height), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				term := &terminal{width: size.width, height: size.height}
				s := live(term, 1, 1, 1, 1, 1, 1)
				s.begin("restart-supervisors")
				<-time.After(5 * time.Second)
				s.say("ok")
				<-time.After(5 * time.Second)
				synctest.Wait()
				require.Equal(t, size.height > 1, strings.HasPrefix(term.shown(t), "ok\nr"), "a table: %q", term.shown(t))
				s.close()
				require.Equal(t, "ok\n", term.shown(t))
			})
		})
	}
}
