// SPDX-License-Identifier: Apache-2.0

package handoff

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/internal/script"
)

// start is when every test's drain begins.
var start = time.Unix(1_700_000_000, 0)

// at is start + d.
func at(d time.Duration) time.Time { return start.Add(d) }

const second = time.Second

// fixtures are machines in each state, made by the same drain of four movable
// supervisors and one that is not.
var fixtures = []struct {
	name  string
	now   time.Duration
	steps []timed
}{
	{"idle", 0, nil},
	{"announced", 1 * second, []timed{{0, goldenBegin}}},
	{"handing", 6 * second, []timed{
		{0, goldenBegin},
		{3 * second, Tick{}},
		{3 * second, Ordered{Member: "a", Told: true, Target: "C"}},
		{4 * second, Closed{"d"}},
		{5 * second, Tick{}},
	}},
	{"handing, only the last one to move is left", 7 * second, []timed{
		{0, goldenBegin},
		{3 * second, Tick{}},
		{3 * second, Ordered{Member: "a", Told: true, Target: "C"}},
		{4 * second, Closed{"b"}},
		{5 * second, Closed{"c"}},
		{6 * second, Closed{"d"}},
	}},
	{"handing, the last one has just closed", 7 * second, []timed{
		{0, goldenBegin},
		{3 * second, Tick{}},
		{3 * second, Ordered{Member: "a", Told: true, Target: "C"}},
		{4 * second, Moved{Member: "b", To: "C"}},
		{5 * second, Closed{"c"}},
		{6 * second, Closed{"d"}},
		{6500 * time.Millisecond, Closed{"a"}},
	}},
	{"closing", 16100 * time.Millisecond, []timed{
		{0, goldenBegin},
		{3 * second, Tick{}},
		{3 * second, Ordered{Member: "a", Told: true, Target: "C"}},
		{5 * second, Tick{}},
		{16 * second, Tick{}},
		{16 * second, Closed{"c"}},
	}},
	{"done", 17 * second, []timed{
		{0, goldenBegin},
		{3 * second, Tick{}},
		{3 * second, Ordered{Member: "a", Told: true, Target: "C"}},
		{5 * second, Tick{}},
		{16 * second, Tick{}},
		{17 * second, Tick{}},
	}},
	{"aborted", 7 * second, []timed{
		{0, goldenBegin},
		{3 * second, Tick{}},
		{3 * second, Ordered{Member: "a", Told: true, Target: "C"}},
		{5 * second, Tick{}},
		{6 * second, Abort{}},
	}},
}

type timed struct {
	after time.Duration
	event Event
}

var goldenConfig = Config{
	Propagation: 3 * second, Window: 8 * second, Confirm: 5 * second, KillAfter: 20 * second,
	OrderTimeout: 4 * second, RetryPause: 2 * second, Linger: second,
}

var goldenBegin = Begin{[]Member{{"old", false}, {"d", true}, {"c", true}, {"b", true}, {"a", true}, {"a", false}}}

var goldenEvents = []timed{
	{0, goldenBegin},
	{0, Begin{}},
	{0, Ordered{Member: "a", Told: true, Target: "B"}},
	{0, Ordered{Member: "b", Told: true, Target: "C"}},
	{0, Ordered{Member: "b", Told: true}},
	{0, Ordered{Member: "b"}},
	{0, Ordered{Member: "c", Told: true, Target: "C"}},
	{0, Ordered{Member: "stranger", Told: true, Target: "C"}},
	{0, Moved{Member: "a", To: "C"}},
	{0, Moved{Member: "c", To: "B"}},
	{0, Moved{Member: "d", To: "B"}},
	{0, Moved{Member: "old", To: "B"}},
	{0, Moved{Member: "stranger", To: "B"}},
	{0, Closed{"a"}},
	{0, Closed{"old"}},
	{0, Closed{"stranger"}},
	{0, Abort{}},
	{0, Tick{}},
	{3 * second, Tick{}},
	{60 * second, Tick{}},
	{-60 * second, Tick{}},
	{0, nil},
}

// TestGoldenTable shows every event in every state with its whole outcome.
func TestGoldenTable(t *testing.T) {
	var out strings.Builder
	for _, f := range fixtures {
		fmt.Fprintf(&out, "== %s\n", f.name)
		for _, e := range goldenEvents {
			m := run(t, goldenConfig, f.steps)
			now := at(f.now + e.after)
			actions := m.Step(now, e.event)
			if e.after != 0 {
				fmt.Fprintf(&out, "%v later: ", e.after)
			}
			fmt.Fprintf(&out, "%s\n", show(e.event))
			for _, a := range actions {
				fmt.Fprintf(&out, "    -> %s\n", show(a))
			}
			r := m.Report(now)
			fmt.Fprintf(&out, "    %s, moved=%d closed=%d left=%d", m.State(), len(r.Moved), len(r.Closed), len(r.Left))
			if next, ok := m.Deadline(); ok {
				fmt.Fprintf(&out, ", next in %v", next.Sub(now))
			}
			fmt.Fprintln(&out)
		}
	}
	golden(t, "table.txt", out.String())
}

// run is a machine that has been through the steps.
func run(t testing.TB, cfg Config, steps []timed) *Machine {
	t.Helper()
	m, err := New(orNoJitter(cfg))
	require.NoError(t, err)
	for _, s := range steps {
		m.Step(at(s.after), s.event)
	}
	return m
}

// orNoJitter puts every order at the beginning of its share, unless told otherwise.
func orNoJitter(cfg Config) Config {
	if cfg.Jitter == nil {
		cfg.Jitter = func() float64 { return 0 }
	}
	return cfg
}

// show renders an event or an action: its type and what is in it.
func show(v any) string {
	if o, ok := v.(Order); ok {
		return fmt.Sprintf("Order{%s until %v}", o.Member, o.Until.Sub(start))
	}
	if f, ok := v.(Finished); ok {
		return fmt.Sprintf("Finished{%v moved=%v closed=%v left=%v}", f.Report, f.Report.Moved, f.Report.Closed, f.Report.Left)
	}
	return strings.TrimPrefix(fmt.Sprintf("%T%+v", v, v), "handoff.")
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if script.Updating() {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}
