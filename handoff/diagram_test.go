// SPDX-License-Identifier: Apache-2.0

package handoff

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/internal/diagram"
)

// TestDiagram holds the diagram in the package comment against the golden
// table. A tick that comes late, or a drain with nobody left, passes through
// several states in one step: those steps must be ways through the diagram.
func TestDiagram(t *testing.T) {
	seen := make(map[diagram.Edge]bool)
	for _, f := range fixtures {
		for _, e := range goldenEvents {
			m := run(t, goldenConfig, f.steps)
			before := m.State()
			m.Step(at(f.now+e.after), e.event)
			if after := m.State(); after != before {
				seen[diagram.Edge{From: before.String(), To: after.String()}] = true
			}
		}
	}
	drawn, err := diagram.Read("doc.go", stateText[:]...)
	require.NoError(t, err)

	next := make(map[string][]string)
	for _, e := range drawn {
		require.True(t, seen[e], "%s is drawn, and not in the table", e)
		next[e.From] = append(next[e.From], e.To)
		delete(seen, e)
	}
	for _, e := range diagram.Sort(seen) {
		require.True(t, leads(next, e.From, e.To), "%s is in the table, and not drawn", e)
	}
	require.Equal(t, []diagram.Edge{{From: "announced", To: "closing"}}, diagram.Sort(seen), "in one step")
}

// leads reports whether there is a way from one state to another.
func leads(next map[string][]string, from, to string) bool {
	for _, n := range next[from] {
		if n == to || leads(next, n, to) {
			return true
		}
	}
	return false
}
