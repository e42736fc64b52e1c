// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/internal/script"
	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/ring"
)

// epoch is when every test starts.
var epoch = time.Unix(1_700_000_000, 0)

// TestScenarios plays whole requests, at gateway A. A route is where and then who has the
// member: B5 is gateway B since generation 5, "?" says that it is only expected
// there, "-" that it has no endpoint, and "!" that the gateway is suspect.
func TestScenarios(t *testing.T) {
	script.Run(t, "testdata/scenarios/*.txt", func(t *testing.T) func(string, []string) string {
		return newConversation(t).do
	})
}

// conversation is one machine and the time that has passed.
type conversation struct {
	t       *testing.T
	now     time.Time
	machine *Machine
	attempt int // the last one
}

func newConversation(t *testing.T) *conversation {
	return &conversation{t: t, now: epoch, machine: machineOf(t, Config{Self: "A"})}
}

func machineOf(t testing.TB, cfg Config) *Machine {
	m, err := New(cfg)
	require.NoError(t, err)
	return m
}

// do carries out one command and returns the machine's actions and its state.
func (c *conversation) do(command string, args []string) string {
	switch command {
	case "request": // as it is: forwarded, idempotent
		cfg := Config{Self: "A"}
		for _, a := range args {
			cfg.Forwarded = cfg.Forwarded || a == "forwarded"
			cfg.Idempotent = cfg.Idempotent || a == "idempotent"
		}
		c.machine = machineOf(c.t, cfg)
		return ""
	case "begin":
		return c.step(Begin{parseRoute(c.t, args)})
	case "routed":
		return c.step(Routed{parseRoute(c.t, args)})
	case "wait":
		d, err := time.ParseDuration(args[0])
		require.NoError(c.t, err)
		c.now = c.now.Add(d)
		return c.step(Tick{})
	case "stop":
		return c.step(Stop{})
	}
	for o := range outcomeCount {
		if o.String() == command {
			return c.step(Answered{c.attempt, o})
		}
	}
	require.Fail(c.t, "no such command", command)
	return ""
}

func (c *conversation) step(event Event) string {
	var lines []string
	for _, a := range c.machine.Step(c.now, event) {
		if s, ok := a.(Send); ok {
			c.attempt = s.Attempt
		}
		lines = append(lines, show(a))
	}
	state := c.machine.State().String()
	if at, ok := c.machine.Deadline(); ok {
		state += fmt.Sprintf(", for %v", at.Sub(c.now))
	}
	return strings.Join(append(lines, state), "\n")
}

// show renders an action on one line.
func show(action Action) string {
	switch a := action.(type) {
	case Send:
		return fmt.Sprintf("send %d to %s", a.Attempt, a.To.ID)
	case Finish:
		return "finish: " + a.Reason.String()
	default:
		return fmt.Sprintf("%T", a)
	}
}

// parseRoute reads "nobody", "unknown", or holders such as "A5? B6-".
func parseRoute(t testing.TB, words []string) roster.Route {
	var route roster.Route
	for _, w := range words {
		switch w {
		case "nobody":
			route.Where = roster.Nobody
			continue
		case "unknown":
			route.Where = roster.Unknown
			continue
		}
		h := roster.Holder{Gateway: placement.Gateway{ID: ring.GatewayID(w[:1]), Endpoint: "at " + w[:1]}}
		rest, expected := strings.CutSuffix(w[1:], "?")
		rest, closed := strings.CutSuffix(rest, "-")
		rest, h.Suspect = strings.CutSuffix(rest, "!")
		if closed {
			h.Endpoint = ""
		}
		g, err := strconv.ParseUint(rest, 10, 64)
		require.NoError(t, err)
		h.Generation, h.Expected = placement.Generation(g), expected
		route.Holders = append(route.Holders, h)
	}
	if len(route.Holders) > 0 {
		route.Where = roster.Elsewhere
		if route.Holders[0].ID == "A" {
			route.Where = roster.Here
		}
	}
	return route
}
