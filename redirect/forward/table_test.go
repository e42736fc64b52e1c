// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/internal/diagram"
	"github.com/evenring/evenring/internal/script"
	"github.com/evenring/evenring/placement/roster"
)

// situations are ways into every state, each as the commands that lead there.
var situations = []struct{ name, way string }{
	{"idle", "request"},
	{"sending here", "request; begin A5 B4"},
	{"sending here, idempotent", "request idempotent; begin A5 B4"},
	{"sending here, forwarded", "request forwarded; begin A5 B4"},
	{"sending elsewhere", "request; begin B5"},
	{"sending to the second", "request; begin B5 C4; not-here"},
	{"waiting, nobody has it", "request; begin nobody"},
	{"waiting, nobody that is known has it", "request; begin unknown"},
	{"waiting, it is expected here", "request; begin A5?"},
	{"waiting, it is expected here, forwarded", "request forwarded; begin A5?"},
	{"waiting, after one that did not have it", "request; begin B5; not-here"},
	{"waiting, after one that may have executed it, idempotent", "request idempotent; begin B5; uncertain"},
	{"over", "request; begin B5; replied"},
}

// happenings are every event, in every way that makes a difference.
var happenings = []struct {
	name  string
	event func(t *testing.T, c *conversation) Event
}{
	{"begin B9", route("B9", func(r roster.Route) Event { return Begin{r} })},
	{"routed nobody", route("nobody", routed)},
	{"routed unknown", route("unknown", routed)},
	{"routed A5", route("A5", routed)},
	{"routed A5?", route("A5?", routed)},
	{"routed A6", route("A6", routed)},
	{"routed B5", route("B5", routed)},
	{"routed C9-", route("C9-", routed)},
	{"routed C9", route("C9", routed)},
	{"replied", answer(Replied)},
	{"not-here", answer(NotHere)},
	{"not-sent", answer(NotSent)},
	{"uncertain", answer(Uncertain)},
	{"an outcome of a later version", answer(200)},
	{"replied, about another attempt", func(_ *testing.T, c *conversation) Event { return Answered{c.attempt + 1, Replied} }},
	{"tick, early", func(*testing.T, *conversation) Event { return Tick{} }},
	{"tick, due", func(_ *testing.T, c *conversation) Event {
		if at, ok := c.machine.Deadline(); ok {
			c.now = at
		}
		return Tick{}
	}},
	{"stop", func(*testing.T, *conversation) Event { return Stop{} }},
	{"nil", func(*testing.T, *conversation) Event { return nil }},
}

func route(words string, event func(roster.Route) Event) func(*testing.T, *conversation) Event {
	return func(t *testing.T, _ *conversation) Event { return event(parseRoute(t, strings.Fields(words))) }
}

func routed(r roster.Route) Event { return Routed{r} }

func answer(o Outcome) func(*testing.T, *conversation) Event {
	return func(_ *testing.T, c *conversation) Event { return Answered{c.attempt, o} }
}

// reach leads a new machine into a situation.
func reach(t *testing.T, name, way string) *conversation {
	c := newConversation(t)
	for command := range strings.SplitSeq(way, "; ") {
		words := strings.Fields(command)
		c.do(words[0], words[1:])
	}
	require.True(t, strings.HasPrefix(name, c.machine.State().String()), name)
	return c
}

// TestDiagram holds the diagram in the package comment against the same.
func TestDiagram(t *testing.T) {
	seen := make(map[diagram.Edge]bool)
	hold := func(c *conversation, event Event) {
		before := c.machine.State()
		c.now = c.now.Add(time.Millisecond)
		c.step(event)
		if after := c.machine.State(); after != before {
			seen[diagram.Edge{From: before.String(), To: after.String()}] = true
		}
	}
	for _, s := range situations {
		for _, h := range happenings {
			c := reach(t, s.name, s.way)
			hold(c, h.event(t, c))
		}
	}
	for _, to := range []string{"nobody", "unknown", "A5?"} { // other ways to begin
		hold(reach(t, "idle", "request"), Begin{parseRoute(t, []string{to})})
	}
	drawn, err := diagram.Read("doc.go", stateText[:]...)
	require.NoError(t, err)
	require.Equal(t, diagram.Sort(seen), drawn)
}

// TestTransitions holds every state against every event.
func TestTransitions(t *testing.T) {
	const file = "testdata/transitions.txt"
	var out strings.Builder
	for _, s := range situations {
		fmt.Fprintf(&out, "%s\n", s.name)
		for _, h := range happenings {
			c := reach(t, s.name, s.way)
			c.now = c.now.Add(time.Millisecond)
			before, since := c.machine.State(), c.machine.since

			lines := strings.Split(c.step(h.event(t, c)), "\n")

			if len(lines) == 1 && before == c.machine.State() && since.Equal(c.machine.since) {
				fmt.Fprintf(&out, "  %-30s -\n", h.name)
				continue
			}
			fmt.Fprintf(&out, "  %-30s %s\n", h.name, strings.Join(lines, "; "))
		}
		out.WriteByte('\n')
	}
	if script.Updating() {
		require.NoError(t, os.WriteFile(file, []byte(out.String()), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), out.String(), "run with -update and review the diff")
}

func TestConfig(t *testing.T) {
	err := Config{Patience: -1, Settle: -2}.Validate()
	require.ErrorContains(t, err, "Config.Self is empty")
	require.ErrorContains(t, err, "Config.Patience is -1ns")
	require.ErrorContains(t, err, "Config.Settle is -2ns")
	_, err = New(Config{})
	require.Error(t, err)
	require.Equal(t, Config{Self: "A", Patience: DefaultPatience, Settle: DefaultSettle}, Config{Self: "A"}.resolved())

	m := machineOf(t, Config{Self: "A", Patience: time.Minute, Settle: time.Second})
	require.Empty(t, m.Step(epoch, Begin{parseRoute(t, []string{"nobody"})}))
	at, ok := m.Deadline()
	require.True(t, ok)
	require.Equal(t, epoch.Add(time.Second), at)
	m.Step(epoch, Routed{parseRoute(t, []string{"A5?"})})
	at, _ = m.Deadline()
	require.Equal(t, epoch.Add(time.Minute), at)
}

func TestTexts(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Reasons() {
		require.NotEmpty(t, r.String())
		require.False(t, seen[r.String()], r)
		seen[r.String()] = true
	}
	for i, o := range Outcomes() {
		require.Equal(t, Outcome(i), o)
		require.False(t, seen[o.String()], o)
		seen[o.String()] = true
	}
	require.Len(t, Outcomes(), 4)
	require.Equal(t, "none", Reason(200).String())
	require.Equal(t, "uncertain", Outcome(200).String(), "who says what is not known may have executed it")
	require.Equal(t, "unknown", State(200).String())
}
