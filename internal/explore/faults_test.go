// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/supervisor"
)

// faults stand between the walk and the machines, and spoil what passes.
type faults struct {
	config     func(*supervisor.Config)
	supervisor func(s *sup, now time.Time, event supervisor.Event) []supervisor.Action
	hello      func(g *gateway, h redirect.Hello) redirect.Hello
	roster     func(roster.Event) roster.Event // nil: it is lost
	answer     func(placement.Answer) placement.Answer
}

// orNone fills in what leaves everything as it is.
func (f faults) orNone() faults {
	if f.config == nil {
		f.config = func(*supervisor.Config) {}
	}
	if f.supervisor == nil {
		f.supervisor = func(s *sup, now time.Time, event supervisor.Event) []supervisor.Action {
			return s.machine.Step(now, event)
		}
	}
	if f.hello == nil {
		f.hello = func(_ *gateway, h redirect.Hello) redirect.Hello { return h }
	}
	if f.roster == nil {
		f.roster = func(e roster.Event) roster.Event { return e }
	}
	if f.answer == nil {
		f.answer = func(a placement.Answer) placement.Answer { return a }
	}
	return f
}

// planted are faults of the kinds that the machines are there to prevent. Each
// must be found, and none of the walks must find anything without it.
var planted = []struct {
	name   string
	faults faults
	found  string // is part of what is found
	shape
	noAsks bool
	root   root
	budget budget
	kinds  []kind // the actions that are tried; nil: all
	depth  int
}{
	{
		name: "the old stream is closed before the new one is accepted",
		faults: faults{supervisor: func(s *sup, now time.Time, event supervisor.Event) []supervisor.Action {
			actions := s.machine.Step(now, event)
			if e, ok := event.(supervisor.Noticed); ok && e.Notice.Kind == redirect.NoticeMove {
				actions = append(actions, supervisor.Close{Generation: e.Generation})
				actions = append(actions, s.machine.Step(now, supervisor.Lost{Generation: e.Generation})...)
			}
			return actions
		}},
		found: "closes its last stream before another is accepted",
		shape: shape{2, 2}, root: handing, depth: 5,
	},
	{
		name: "a gateway does not look at who asks to stay",
		faults: faults{hello: func(_ *gateway, h redirect.Hello) redirect.Hello {
			h.Stay = false
			return h
		}},
		found: "who asks to stay",
		shape: shape{2, 2}, root: uneven, budget: budget{breaks: 1}, depth: 6,
	},
	{
		name: "a gateway accepts a generation that is older than its newest",
		faults: faults{hello: func(g *gateway, h redirect.Hello) redirect.Hello {
			h.Generation = max(h.Generation, g.accepted[supervisorOf(h.Member)]+1)
			return h
		}},
		found: "having accepted",
		shape: shape{2, 2}, root: warm, budget: budget{kills: 1}, depth: 6,
	},
	{
		name: "a supervisor takes late news of an earlier attempt for news of this one",
		faults: faults{supervisor: func(s *sup, now time.Time, event supervisor.Event) []supervisor.Action {
			switch e := event.(type) {
			case supervisor.Failed:
				if s.flying != 0 {
					e.Generation = s.flying
				}
				event = e
			case supervisor.Answered:
				if s.flying != 0 {
					e.Generation = s.flying
				}
				event = e
			}
			return s.machine.Step(now, event)
		}},
		found: "a stale ",
		shape: shape{2, 1}, root: warm, budget: budget{breaks: 1}, depth: 10,
	},
	{
		name: "targets are not held against what they say of themselves",
		faults: faults{
			roster: func(event roster.Event) roster.Event {
				e, ok := event.(roster.Received)
				if !ok {
					return event
				}
				switch m := e.Message.(type) {
				case roster.Delta:
					m.State = placement.Ready
					e.Message = m
				case roster.Heartbeat:
					m.State = placement.Ready
					e.Message = m
				}
				return e
			},
		},
		found: "which is draining",
		shape: shape{2, 2}, noAsks: true, root: warm, budget: budget{drains: 1}, depth: 6,
	},
	{
		name: "targets are not held against what is known of their links",
		faults: faults{
			roster: func(event roster.Event) roster.Event {
				if _, ok := event.(roster.LinkLost); ok {
					return nil
				}
				return event
			},
		},
		found: "which is suspect",
		shape: shape{2, 2}, noAsks: true, root: warm, budget: budget{crashes: 1}, depth: 6,
	},
	{
		name:   "redirects are followed without end",
		faults: faults{config: func(c *supervisor.Config) { c.MaxHops = 1000 }},
		found:  "makes dial 5 of one placement",
		shape:  shape{2, 1}, noAsks: true, root: warm, budget: budget{drains: 2},
		kinds: []kind{start, drain, back, arrive}, depth: 12,
	},
}

func TestPlantedFaultsAreFound(t *testing.T) {
	for _, p := range planted {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			w := &walk{fleet: newFleet(p.shape, p.noAsks, p.faults), depth: p.depth, limit: limit, calm: never, kinds: p.kinds}
			failure := w.from(p.root, p.budget)
			require.NotNil(t, failure, "%d states", len(w.nodes))
			require.Contains(t, failure.what, p.found)
			t.Logf("after %d states: %s", len(w.nodes), failure)

			sound := &walk{fleet: newFleet(p.shape, p.noAsks, faults{}), depth: w.reached, limit: limit, calm: never, kinds: p.kinds}
			require.Nil(t, sound.from(p.root, p.budget), "without the fault")
		})
	}
}
