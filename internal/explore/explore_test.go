// SPDX-License-Identifier: Apache-2.0

// Package explore walks through every interleaving of what can happen to a small
// fleet, to a depth, on the real machines: admissions with their rosters, drains
// and supervisors. Messages arrive in every order that their streams and links
// allow, timers run out while messages are under way, streams and links break
// and lose what they carried, gateways and supervisors crash and start again,
// and gateways drain.
//
// In every state it looks at what must always hold: no bad target, at most
// four dials for a placement, nobody healthy told to move without a drain, no
// old word that changes anything, no stream closed before the next is accepted,
// no count below zero, one stream of one's own. From some of the last states
// it lets the fleet run on without further trouble: everybody must come to
// rest where all views say that he is, and stay there.
//
// The machines are pure, so a step of one process is carried out once and
// remembered, however many states of the fleet have it in common.
//
// Time goes from timer to timer, the earliest first. The Service may choose any
// gateway that runs, one that drains too. What differs only in counters, in keys
// of streams, or in the order of a roster's entries is one state.
package explore

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	limit = 5_000_000 // states of one walk
	never = -1        // an even end is not to be expected, whatever happens
	soon  = int64(200 * time.Millisecond)
)

// What may go wrong on one walk.
var (
	quiet    = budget{}
	all      = budget{breaks: 1, parts: 1, crashes: 1, kills: 1, drains: 1}
	draining = budget{drains: 1}
	troubles = budget{breaks: 1, parts: 1, crashes: 1, kills: 1}
)

// walks are what is walked through, and how many states that must be at least:
// an explorer that loses its way must not pass.
var walks = []struct {
	shape
	root   root
	budget budget
	calm   int64
	depth  int
	states [2]int // with questions, and without a link to put them over
}{
	{shape{2, 2}, cold, all, never, 6, [2]int{90_000, 90_000}},
	{shape{2, 2}, warm, quiet, soon, 9, [2]int{100_000, 100_000}},
	{shape{2, 2}, warm, all, soon, 6, [2]int{45_000, 45_000}},
	{shape{2, 2}, attached, all, never, 7, [2]int{200_000, 200_000}},
	{shape{2, 2}, attached, draining, never, 12, [2]int{70_000, 180_000}},
	{shape{2, 2}, uneven, all, never, 7, [2]int{200_000, 200_000}},
	{shape{2, 2}, handing, troubles, never, 8, [2]int{200_000, 200_000}},
	{shape{3, 1}, cold, all, never, 5, [2]int{50_000, 50_000}},
	{shape{3, 1}, warm, all, never, 6, [2]int{120_000, 120_000}},
	{shape{3, 1}, attached, all, never, 6, [2]int{120_000, 120_000}},
	{shape{3, 1}, handing, troubles, never, 7, [2]int{100_000, 100_000}},
}

func TestEveryInterleaving(t *testing.T) {
	percent := debug.SetGCPercent(400) // there is much to keep, and memory enough
	t.Cleanup(func() { debug.SetGCPercent(percent) })
	for _, c := range walks {
		for i, link := range []string{"asking", "no link"} {
			t.Run(fmt.Sprintf("%d on %d/%s/%s/%s", c.sups, c.gateways, c.root.name, c.budget, link), func(t *testing.T) {
				t.Parallel()
				w := &walk{fleet: newFleet(c.shape, i == 1, faults{}), depth: depth(t, c.depth), limit: limit, calm: c.calm, every: 500}
				begun := time.Now()
				failure := w.from(c.root, c.budget)
				t.Logf("%d states, %d transitions, to a depth of %d; %d states of processes, %d steps of theirs; %d of the last states run to their end; %v",
					len(w.nodes), w.transitions, w.depth, len(w.procs), len(w.steps), w.ran, time.Since(begun))
				require.Nil(t, failure, "%v", failure)
				require.Zero(t, w.mixed, "same input, same output")
				floor := 10
				if w.depth >= c.depth {
					floor = c.states[i]
				}
				require.GreaterOrEqual(t, len(w.nodes), floor, "the explorer has lost its way")
				require.Positive(t, w.ran)
			})
		}
	}
}

// depth is how deep to walk: so deep, or as EVENRING_DEPTH says.
func depth(t *testing.T, d int) int {
	t.Helper()
	if text := os.Getenv("EVENRING_DEPTH"); text != "" {
		n, err := strconv.ParseUint(text, 10, 16)
		require.NoError(t, err, "EVENRING_DEPTH")
		return int(n)
	}
	if racing {
		return d - 3
	}
	return d
}
