// SPDX-License-Identifier: Apache-2.0

package roster_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
)

// The counts of a gateway's new process are heard of before its record is, by a
// hint, and have the number that the record of its last process had got to: whom
// that one lists and somebody else serves by now is not taken off them.
func TestCountsOfANewProcessAreNotThoseOfTheOldRecord(t *testing.T) {
	now := time.Unix(1_000_000_000, 0)
	r, err := roster.New(now, roster.Config{Gateway: "A", Incarnation: 1})
	require.NoError(t, err)
	origin := roster.Origin{Gateway: "B", Endpoint: "b", State: placement.Ready, Counts: placement.Counts{Incarnation: 1, Sequence: 2, Attached: 1}}
	r.Step(now, roster.Received{From: "B", Message: roster.Delta{Origin: origin, Changes: []roster.Change{{Member: "s", Generation: 1, Op: roster.OpAttached}}}})
	r.Step(now, roster.Attached{Member: "s", Generation: 2})
	b, ok := r.Gateway("B")
	require.True(t, ok)
	require.Zero(t, b.Attached, "it is here by now")

	fresh := placement.Counts{Incarnation: 2, Sequence: 2, Held: 1}
	r.Step(now, roster.Hinted{Reports: []placement.Report{{Gateway: "B", Counts: fresh}}})
	b, _ = r.Gateway("B")
	require.Equal(t, fresh, b.Counts)
}
