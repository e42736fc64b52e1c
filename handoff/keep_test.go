// SPDX-License-Identifier: Apache-2.0

package handoff

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// With Keep a drain closes nothing: it names who is left, and they stay.
func TestKeep(t *testing.T) {
	members := []Member{{"gone", true}, {"moves", true}, {"nowhere", true}, {"old", false}, {"silent", true}}
	m := run(t, Config{Keep: true}, []timed{
		{0, Begin{members}},
		{13 * second, Tick{}},
		{13 * second, Ordered{Member: "moves", Told: true, Target: "C"}},
		{13 * second, Ordered{Member: "silent", Told: true, Target: "C"}},
		{13 * second, Ordered{Member: "nowhere"}},
		{14 * second, Moved{Member: "moves", To: "C"}},
		{15 * second, Closed{"gone"}},
	})
	end := at(m.Plan().Deadline())
	require.Equal(t, Handing, m.State())
	actions := m.Step(end, Tick{})
	require.Len(t, actions, 1, "and nobody is closed")
	report := finished(t, actions)
	require.Equal(t, Done, m.State())
	require.Equal(t, []Move{{"moves", "C"}}, report.Moved)
	require.Equal(t, []LeftBehind{{"nowhere", Nowhere}, {"old", Immovable}, {"silent", Silent}}, report.Left)
	require.Equal(t, len(members), report.Served())
	require.False(t, report.Aborted)
	_, wanted := m.Deadline()
	require.False(t, wanted)

	// A late one is honoured, as ever.
	report = finished(t, m.Step(end.Add(second), Moved{Member: "silent", To: "C"}))
	require.Len(t, report.Moved, 2)
	require.Len(t, report.Left, 2)
	require.Equal(t, len(members), report.Served())
}

// Those who cannot move are not waited for.
func TestKeepOfNobodyToMove(t *testing.T) {
	m := run(t, Config{Keep: true}, []timed{{0, Begin{[]Member{{"old", false}}}}})
	report := finished(t, m.Step(at(DefaultPropagation), Tick{}))
	require.Equal(t, []LeftBehind{{"old", Immovable}}, report.Left)
}
