// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/internal/diagram"
	"github.com/evenring/evenring/internal/script"
	"github.com/evenring/evenring/redirect"
)

// situations are ways into every state, each as the commands that lead there.
var situations = []struct{ name, way string }{
	{"idle", ""},
	{"dialing, the Service", "start"},
	{"dialing, a target", "start; redirect B"},
	{"dialing, home", "start; accept A; wait 1m; lost"},
	{"attached", "start; accept A; wait 1m"},
	{"moving, to a target", "start; accept A; wait 1m; move B"},
	{"moving, to even out", "start; accept A; wait 1m; move B reason=placed"},
	{"moving, to a renewed stream", "start; accept A; wait 1m; end reason=expired"},
	{"moving, after a pause", "start; accept A; wait 1m; move"},
	{"waiting, for the Service", "start; fail"},
	{"waiting, for home", "start; accept A; wait 1m; lost; fail"},
	{"stopped", "start; accept A; stop"},
}

// happenings are every event, in every way that makes a difference.
var happenings = []struct {
	name  string
	event func(*Machine) Event
}{
	{"start", func(*Machine) Event { return Start{} }},
	{"accept", func(m *Machine) Event {
		return Answered{m.next.generation, redirect.Verdict{Outcome: redirect.Accept, Gateway: "B", Endpoint: "b", Incarnation: 1}}
	}},
	{"accept, stale", func(*Machine) Event { return Answered{99, redirect.Verdict{Outcome: redirect.Accept}} }},
	{"redirect", func(m *Machine) Event {
		return Answered{m.next.generation, redirect.Verdict{Outcome: redirect.Redirect, Gateway: "C", Endpoint: "c"}}
	}},
	{"redirect, no endpoint", func(m *Machine) Event {
		return Answered{m.next.generation, redirect.Verdict{Outcome: redirect.Redirect, Gateway: "C"}}
	}},
	{"refuse", func(m *Machine) Event {
		return Answered{m.next.generation, redirect.Verdict{Outcome: redirect.Refuse, RetryAfter: 2 * time.Second}}
	}},
	{"refuse, stale generation", func(m *Machine) Event {
		return Answered{m.next.generation, redirect.Verdict{Outcome: redirect.Refuse, Reason: redirect.ReasonStaleGeneration, Generation: 70}}
	}},
	{"no verdict", func(m *Machine) Event { return Answered{m.next.generation, redirect.Verdict{}} }},
	{"failed", func(m *Machine) Event { return Failed{Generation: m.next.generation} }},
	{"failed, stale", func(*Machine) Event { return Failed{Generation: 99} }},
	{"lost", func(m *Machine) Event { return Lost{m.stream.generation} }},
	{"lost, stale", func(*Machine) Event { return Lost{99} }},
	{"move", notice(redirect.Notice{Kind: redirect.NoticeMove, Gateway: "C", Endpoint: "c"})},
	{"move, evening out", notice(redirect.Notice{Kind: redirect.NoticeMove, Reason: redirect.ReasonPlaced, Gateway: "C", Endpoint: "c"})},
	{"move, no target", notice(redirect.Notice{Kind: redirect.NoticeMove})},
	{"end: superseded", notice(redirect.Notice{Kind: redirect.NoticeEnd, Reason: redirect.ReasonSuperseded})},
	{"end: expired", notice(redirect.Notice{Kind: redirect.NoticeEnd, Reason: redirect.ReasonExpired})},
	{"end: stopped", notice(redirect.Notice{Kind: redirect.NoticeEnd, Reason: redirect.ReasonStopped})},
	{"end: unknown", notice(redirect.Notice{Kind: redirect.NoticeEnd})},
	{"heartbeat", notice(redirect.Notice{Kind: redirect.NoticeHeartbeat, Gateway: "A", Incarnation: 1})},
	{"heartbeat of another", notice(redirect.Notice{Kind: redirect.NoticeHeartbeat, Gateway: "A", Incarnation: 2})},
	{"notice of a newer kind", notice(redirect.Notice{Kind: 200})},
	{"tick, early", func(*Machine) Event { return Tick{} }},
	{"tick, due", func(*Machine) Event { return Tick{} }},
	{"stop", func(*Machine) Event { return Stop{} }},
	{"nil", func(*Machine) Event { return nil }},
}

func notice(n redirect.Notice) func(*Machine) Event {
	return func(m *Machine) Event { return Noticed{m.stream.generation, n} }
}

// reach leads a new machine into a situation.
func reach(t *testing.T, name, way string) *conversation {
	c := newConversation(t)
	m, err := New(c.cfg)
	require.NoError(t, err)
	c.machine = m
	for command := range strings.SplitSeq(way, "; ") {
		if words := strings.Fields(command); len(words) > 0 {
			c.do(words[0], words[1:])
		}
	}
	require.True(t, strings.HasPrefix(name, c.machine.State().String()), name)
	return c
}

// due lets the deadline come, if that is what happens.
func (c *conversation) due(happening string) {
	if at, ok := c.machine.Deadline(); ok && happening == "tick, due" {
		c.now = at
	}
}

// TestDiagram holds the diagram in the package comment against the same.
func TestDiagram(t *testing.T) {
	seen := make(map[diagram.Edge]bool)
	for _, s := range situations {
		for _, h := range happenings {
			c := reach(t, s.name, s.way)
			before := c.machine.State()
			c.due(h.name)
			c.machine.Step(c.now, h.event(c.machine))
			if after := c.machine.State(); after != before {
				seen[diagram.Edge{From: before.String(), To: after.String()}] = true
			}
		}
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
			before := *c.machine
			c.due(h.name)

			actions := c.machine.Step(c.now, h.event(c.machine))

			if len(actions) == 0 && before.State() == c.machine.State() && before.next.at.Equal(c.machine.next.at) {
				fmt.Fprintf(&out, "  %-26s -\n", h.name)
				continue
			}
			var shown []string
			for _, a := range actions {
				shown = append(shown, show(a))
			}
			until := ""
			if at, ok := c.machine.Deadline(); ok {
				until = "+" + at.Sub(c.now).String()
			}
			fmt.Fprintf(&out, "  %-26s %-9s %-6s %s\n", h.name, c.machine.State(), until, strings.Join(shown, "; "))
		}
		out.WriteByte('\n')
	}
	got := regexp.MustCompile(` +\n`).ReplaceAllString(out.String(), "\n")
	if script.Updating() {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "run with -update and review the diff")
}
