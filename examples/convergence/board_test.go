// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/examples/internal/report"
)

func TestBoard(t *testing.T) {
	b := newBoard()
	b.begin()
	b.event(report.Event{Kind: report.Listening, Ops: "somewhere"})
	b.event(report.Event{Kind: report.Attached, Member: "m", Gateway: "a", At: at(2)})
	b.event(report.Event{Kind: report.Attached, Member: "n", Gateway: "a", At: at(1)}) // the processes' lines come in any order
	b.event(report.Event{Kind: report.Verdict, Member: "n", Gateway: "b", At: at(9)})
	n, last := b.served()
	require.Equal(t, 2, n)
	require.Equal(t, at(2), last)

	b.event(report.Event{Kind: report.Lost, Member: "m", At: at(3)})
	b.event(report.Event{Kind: report.Attached, Member: "n", Gateway: "b", At: at(4)})
	got := b.read()
	require.Equal(t, truth{"n": "b"}, got)
	delete(got, "n")
	n, last = b.served()
	require.Equal(t, 1, n, "what was read is a copy")
	require.Equal(t, at(4), last)

	b.begin()
	n, last = b.served()
	require.Zero(t, n, "nobody has come again")
	require.Equal(t, time.Time{}, last)
	require.Equal(t, truth{"n": "b"}, b.read())
	b.event(report.Event{Kind: report.Lost, Member: "n"})
	b.event(report.Event{Kind: report.Attached, Member: "n", Gateway: "b", At: at(8)})
	n, last = b.served()
	require.Equal(t, 1, n)
	require.Equal(t, at(8), last)
}
