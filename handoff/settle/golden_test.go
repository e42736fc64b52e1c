// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/internal/diagram"
	"github.com/evenring/evenring/internal/script"
	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// timed is an event, so long after the start.
type timed struct {
	after time.Duration
	event Event
}

// sight is A with so many, who settles, and B with so many; where is where a is.
func sight(own, other int, where ring.GatewayID, change ...func(*redirect.Sight)) redirect.Sight {
	s := redirect.Sight{Self: "A", Gateways: gateways(own, other), Where: []redirect.Whereabouts{{Member: "a", At: where}}}
	for _, f := range change {
		f(&s)
	}
	return s
}

func suspect(s *redirect.Sight) { s.Gateways[1].Suspect = true }
func over(s *redirect.Sight)    { s.Over = true }
func stale(s *redirect.Sight)   { s.Stale = true }
func holds(s *redirect.Sight)   { s.Gateways[1].Held = 1 }
func joined(s *redirect.Sight)  { s.Gateways = append(s.Gateways, gateways(0, 0, 0)[2]) }
func left(s *redirect.Sight)    { s.Gateways = s.Gateways[:1] }
func anew(s *redirect.Sight)    { s.Gateways[1].Incarnation++ }
func keeps(s *redirect.Sight)   { s.Gateways[1].Reserved = 1 }
func unready(s *redirect.Sight) { s.Gateways[1].State = placement.Starting }

var (
	goldenBegin  = Begin{sight(4, 0, "A")}
	goldenListed = Listed{[]redirect.Supervisor{{Member: "c"}, {Member: "b", Movable: true}, {Member: "a", Movable: true, From: "B"}}}
	goldenConfig = Config{Budget: 2, InFlight: 1, MoveTimeout: 5 * second}
)

// fixtures are machines in each state. A has 4 and B none, so that two are to move.
var fixtures = []struct {
	name  string
	now   time.Duration
	steps []timed
}{
	{"idle", 0, nil},
	{"waiting", 5 * second, []timed{{0, goldenBegin}}},
	{"waiting, B is suspect", 5 * second, []timed{{0, Begin{sight(4, 0, "A", suspect)}}}},
	{"moving, not listed", 10 * second, []timed{{0, goldenBegin}, {10 * second, Tick{}}}},
	{"moving, B is asked", 10*second + time.Millisecond, []timed{{0, goldenBegin}, {10 * second, Tick{}}, {10 * second, goldenListed}}},
	{"moving, a was told", 11 * second, []timed{
		{0, goldenBegin}, {10 * second, Tick{}}, {10 * second, goldenListed}, {10 * second, Seen{sight(4, 0, "A", keeps)}}, {10 * second, Ordered{"a", Told}},
	}},
	{"moving, a has not moved", 15 * second, []timed{
		{0, goldenBegin}, {10 * second, Tick{}}, {10 * second, goldenListed}, {10 * second, Seen{sight(4, 0, "A", keeps)}}, {10 * second, Ordered{"a", Told}}, {15 * second, Tick{}},
	}},
	{"waiting again", 11 * second, []timed{
		{0, goldenBegin}, {10 * second, Tick{}}, {10 * second, goldenListed}, {10 * second, Ordered{"a", Told}}, {11 * second, Seen{sight(4, 0, "A", suspect)}},
	}},
	{"moving, even", 10 * second, []timed{{0, Begin{sight(2, 2, "A")}}, {10 * second, Tick{}}, {10 * second, goldenListed}}},
	{"done", 11 * second, []timed{{0, Begin{sight(2, 2, "A")}}, {10 * second, Tick{}}, {10 * second, goldenListed}, {11 * second, Tick{}}}},
	{"ended", 5 * second, []timed{{0, goldenBegin}, {5 * second, Abort{}}}},
}

var goldenEvents = []struct {
	name  string
	after time.Duration
	event Event
}{
	{"Begin", 0, goldenBegin},
	{"Seen, the same", 0, Seen{sight(4, 0, "A")}},
	{"Seen, even", 0, Seen{sight(2, 2, "A")}},
	{"Seen, a has moved", 0, Seen{sight(3, 1, "B")}},
	{"Seen, a is nowhere", 0, Seen{sight(3, 0, "")}},
	{"Seen, B is suspect", 0, Seen{sight(4, 0, "A", suspect)}},
	{"Seen, B is not ready", 0, Seen{sight(4, 0, "A", unready)}},
	{"Seen, B has left", 0, Seen{sight(4, 0, "A", left)}},
	{"Seen, B has started anew", 0, Seen{sight(4, 0, "A", anew)}},
	{"Seen, C has joined", 0, Seen{sight(4, 0, "A", joined)}},
	{"Seen, stale", 0, Seen{sight(4, 0, "A", stale)}},
	{"Seen, one on hold", 0, Seen{sight(4, 0, "A", holds)}},
	{"Seen, a drain has begun", 0, Seen{sight(4, 0, "A", over)}},
	{"Seen, nothing at all", 0, Seen{}},
	{"Listed", 0, goldenListed},
	{"Ordered a: told", 0, Ordered{"a", Told}},
	{"Ordered a: refused", 0, Ordered{"a", Refused}},
	{"Ordered a: absent", 0, Ordered{"a", Absent}},
	{"Ordered a stranger: told", 0, Ordered{"stranger", Told}},
	{"Abort", 0, Abort{}},
	{"Tick", 0, Tick{}},
	{"Tick after 10s", 10 * second, Tick{}},
	{"Tick after an hour", time.Hour, Tick{}},
	{"Tick an hour before", -time.Hour, Tick{}},
	{"nil", 0, nil},
}

// through is a machine that has been through the steps.
func through(t testing.TB, steps []timed) *Machine {
	t.Helper()
	m, err := New(goldenConfig)
	require.NoError(t, err)
	for _, s := range steps {
		m.Step(at(s.after), s.event)
	}
	return m
}

// TestGoldenTable shows every event in every state with its whole outcome.
func TestGoldenTable(t *testing.T) {
	var out strings.Builder
	for _, f := range fixtures {
		fmt.Fprintf(&out, "== %s\n", f.name)
		for _, e := range goldenEvents {
			m := through(t, f.steps)
			now := at(f.now + e.after)
			fmt.Fprintf(&out, "%s\n", e.name)
			for _, a := range m.Step(now, e.event) {
				fmt.Fprintf(&out, "    -> %s\n", show(a))
			}
			r := m.Report(now)
			fmt.Fprintf(&out, "    %s, moved=%d failed=%d", m.State(), len(r.Moved), len(r.Failed))
			if r.Unrest != "" {
				fmt.Fprintf(&out, ", %s", r.Unrest)
			}
			if next, ok := m.Deadline(); ok {
				require.True(t, next.After(now), "%s: %s", f.name, e.name)
				fmt.Fprintf(&out, ", next in %v", next.Sub(now))
			}
			fmt.Fprintln(&out)
		}
	}
	path := filepath.Join("testdata", "table.txt")
	if script.Updating() {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(out.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), out.String())
}

func show(a Action) string {
	if f, ok := a.(Finished); ok {
		return fmt.Sprintf("Finished{%v moved=%v failed=%v}", f.Report, f.Report.Moved, f.Report.Failed)
	}
	return strings.TrimPrefix(fmt.Sprintf("%T%+v", a, a), "settle.")
}

// The diagram in the package's comment has exactly the transitions of the table.
func TestDiagram(t *testing.T) {
	seen := make(map[diagram.Edge]bool)
	for _, f := range fixtures {
		for _, e := range goldenEvents {
			m := through(t, f.steps)
			before := m.State()
			m.Step(at(f.now+e.after), e.event)
			if after := m.State(); after != before {
				seen[diagram.Edge{From: before.String(), To: after.String()}] = true
			}
		}
	}
	drawn, err := diagram.Read("doc.go", stateText[:]...)
	require.NoError(t, err)
	require.Equal(t, diagram.Sort(seen), drawn)
}
