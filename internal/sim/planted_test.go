// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/handoff"
	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/forward"
	"github.com/evenring/evenring/redirect/session"
	"github.com/evenring/evenring/redirect/supervisor"
)

// planted are faults of the kinds that the machines are there to prevent, one
// rule broken each. The runs must find them, and by one of these promises.
var planted = []struct {
	name  string
	with  mix // kinds that every run has, besides those that it draws
	spoil func() Spoil
	by    []Invariant
}{
	{
		"a place that was promised is not kept",
		0,
		func() Spoil {
			return Spoil{Asked: func(g *Gateway, q placement.Question) placement.Answer {
				r := g.Admission.Roster()
				self, _ := r.Gateway(g.ID)
				return placement.Answer{Gateway: g.ID, State: self.State, Reports: r.Reports(),
					Yes: self.State == placement.Ready && (q.Insist || self.Load() < q.Limit)}
			}}
		},
		[]Invariant{WithinCap, NoIdleMoves},
	},
	{
		"a place that was promised is kept for ever",
		mixOf(supCrash, severed),
		func() Spoil {
			return Spoil{Gateway: func(c *redirect.Config) { c.Reserve = time.Hour }}
		},
		[]Invariant{OnePlace, NoWayBack},
	},
	{
		"a lost link makes nobody suspect",
		0,
		func() Spoil {
			return Spoil{Roster: func(_ *Gateway, ev roster.Event) roster.Event {
				if _, ok := ev.(roster.LinkLost); ok {
					return nil
				}
				return ev
			}}
		},
		[]Invariant{FitTargets},
	},
	{
		"an old number passes for a new one",
		0,
		func() Spoil {
			return Spoil{Roster: func(g *Gateway, ev roster.Event) roster.Event {
				e, ok := ev.(roster.Received)
				if !ok {
					return ev
				}
				d, ok := e.Message.(roster.Delta)
				if !ok {
					return ev
				}
				if have := g.watch.counts[d.Gateway]; d.Incarnation == have.Incarnation && d.Sequence <= have.Sequence {
					d.From, d.Sequence = have.Sequence, have.Sequence+1
					e.Message = d
				}
				return e
			}}
		},
		[]Invariant{OnePlace, NobodyLost, FixedPoint},
	},
	{
		"an old incarnation passes for the new one",
		mixOf(elder),
		func() Spoil {
			return Spoil{Roster: func(g *Gateway, ev roster.Event) roster.Event {
				e, ok := ev.(roster.Received)
				if !ok {
					return ev
				}
				now := g.watch.counts[e.From].Incarnation
				e.Message = respoken(e.Message, func(o *roster.Origin) { o.Incarnation = max(o.Incarnation, now) })
				return e
			}}
		},
		[]Invariant{OnePlace, FitTargets, NoWayBack, FixedPoint, RunsOnce},
	},
	{
		"nobody is on hold: a broken stream is a goodbye",
		0,
		func() Spoil { return Spoil{Leave: func(bool) bool { return true }} },
		[]Invariant{WithinCap},
	},
	{
		"a hold never ends",
		mixOf(supCrash, breaks, severed),
		func() Spoil {
			return Spoil{Gateway: func(c *redirect.Config) { c.Hold = time.Hour }}
		},
		[]Invariant{OnePlace},
	},
	{
		"redirects are followed without end, and nobody counts them",
		mixOf(noAsks, loss, drains, rolling),
		func() Spoil {
			return Spoil{
				Supervisor: func(c *supervisor.Config) { c.MaxHops = 1000 },
				Gateway:    func(c *redirect.Config) { c.MaxHops = 1000 },
				Verdict: func(_ *Gateway, v redirect.Verdict) redirect.Verdict {
					v.Full = nil
					return v
				},
			}
		},
		[]Invariant{FourDials},
	},
	{
		"who drains is a target",
		0,
		func() Spoil {
			return Spoil{Roster: func(_ *Gateway, ev roster.Event) roster.Event {
				e, ok := ev.(roster.Received)
				if !ok {
					return ev
				}
				e.Message = respoken(e.Message, func(o *roster.Origin) { o.State = placement.Ready })
				return e
			}}
		},
		[]Invariant{FitTargets, OnePlace},
	},
	{
		"the old stream is closed before the new one is accepted",
		0,
		func() Spoil {
			return Spoil{Step: func(s *Supervisor, now time.Time, ev supervisor.Event) []supervisor.Action {
				actions := s.Machine.Step(now, ev)
				if e, ok := ev.(supervisor.Noticed); ok && e.Notice.Kind == redirect.NoticeMove {
					actions = append(actions, supervisor.Close{Generation: e.Generation})
					actions = append(actions, s.Machine.Step(now, supervisor.Lost{Generation: e.Generation})...)
				}
				return actions
			}}
		},
		[]Invariant{MakeBeforeBreak},
	},
	{
		"a gateway accepts a generation that is older than its newest",
		mixOf(severed, supCrash, slow),
		func() Spoil {
			return Spoil{Hello: func(g *Gateway, h redirect.Hello) redirect.Hello {
				h.Generation = max(h.Generation, g.knows(h.Member).generation+1)
				return h
			}}
		},
		[]Invariant{NoWayBack, NoIdleMoves},
	},
	{
		"a supervisor takes late news of an earlier attempt for news of this one",
		0,
		func() Spoil {
			return Spoil{Step: func(s *Supervisor, now time.Time, ev supervisor.Event) []supervisor.Action {
				switch e := ev.(type) {
				case supervisor.Failed:
					if s.watch.flying != 0 {
						e.Generation = s.watch.flying
					}
					ev = e
				case supervisor.Answered:
					if s.watch.flying != 0 {
						e.Generation = s.watch.flying
					}
					ev = e
				}
				return s.Machine.Step(now, ev)
			}}
		},
		[]Invariant{NoWayBack, OnePlace, FourDials},
	},
	{
		"whom a supervisor avoids is ignored",
		0,
		func() Spoil {
			return Spoil{Hello: func(_ *Gateway, h redirect.Hello) redirect.Hello {
				h.Avoid = nil
				return h
			}}
		},
		[]Invariant{FitTargets},
	},
	{
		"who asks to stay is placed like any other",
		0,
		func() Spoil {
			return Spoil{Hello: func(_ *Gateway, h redirect.Hello) redirect.Hello {
				h.Stay = h.Stay && h.Session != ""
				return h
			}}
		},
		[]Invariant{NoIdleMoves},
	},
	{
		"a drain sends to itself",
		0,
		func() Spoil {
			return Spoil{Notice: func(g *Gateway, n redirect.Notice) redirect.Notice {
				if n.Kind == redirect.NoticeMove {
					n.Gateway, n.Endpoint = g.ID, g.Endpoint
				}
				return n
			}}
		},
		[]Invariant{FitTargets},
	},
	{
		"what was lost is never asked for",
		0,
		func() Spoil {
			return Spoil{Roster: func(_ *Gateway, ev roster.Event) roster.Event {
				if e, ok := ev.(roster.Received); ok {
					if _, asks := e.Message.(roster.SnapshotRequest); asks {
						return nil
					}
				}
				return ev
			}}
		},
		[]Invariant{OnePlace, NobodyLost},
	},
	{
		"of two claims the lower generation is right",
		0,
		func() Spoil {
			return Spoil{Roster: func(_ *Gateway, ev roster.Event) roster.Event {
				e, ok := ev.(roster.Received)
				if !ok {
					return ev
				}
				switch m := e.Message.(type) {
				case roster.Delta:
					changes := make([]roster.Change, len(m.Changes))
					for i, c := range m.Changes {
						c.Generation = math.MaxInt64 - c.Generation
						changes[i] = c
					}
					m.Changes = changes
					e.Message = m
				case roster.Snapshot:
					entries := make([]roster.Entry, len(m.Entries))
					for i, c := range m.Entries {
						c.Generation = math.MaxInt64 - c.Generation
						entries[i] = c
					}
					m.Entries = entries
					e.Message = m
				}
				return e
			}}
		},
		[]Invariant{OnePlace, NobodyLost, NoIdleMoves},
	},
	{
		"a settle does not ask",
		mixOf(settles, scaleUp),
		func() Spoil {
			return Spoil{Asked: func(g *Gateway, q placement.Question) placement.Answer {
				if p := g.w.Gateways[q.From]; p != nil && p.settles != nil && p.settles.Report == nil {
					r := g.Admission.Roster()
					return placement.Answer{Gateway: g.ID, State: placement.Ready, Reports: r.Reports()}
				}
				return g.Admission.Asked(g.now(), q)
			}, Answer: func(g *Gateway, a placement.Answer) placement.Answer {
				a.Yes = a.Yes || g.settles != nil && g.settles.Report == nil
				return a
			}}
		},
		[]Invariant{NoIdleMoves},
	},
	{
		"home is never given up",
		mixOf(crash),
		func() Spoil {
			return Spoil{Supervisor: func(c *supervisor.Config) { c.HomeTries, c.HomePatience = 1_000_000, time.Hour }}
		},
		[]Invariant{NobodyLost, FourDials},
	},
	{
		"a session never hears that its supervisor has moved",
		0,
		func() Spoil {
			return Spoil{Session: func(ev session.Event) session.Event {
				if _, ok := ev.(session.HomeChanged); ok {
					return nil
				}
				return ev
			}}
		},
		[]Invariant{NobodyLost, OnePlace},
	},
	{
		"every request is executed again when in doubt",
		mixOf(calls, pause, crash, late),
		func() Spoil {
			return Spoil{Call: func(c *forward.Config) { c.Idempotent = true }}
		},
		[]Invariant{RunsOnce},
	},
	{
		"a drain forgets somebody",
		0,
		func() Spoil {
			return Spoil{Drain: func(ev handoff.Event) handoff.Event {
				if e, ok := ev.(handoff.Begin); ok && len(e.Members) > 0 {
					e.Members = e.Members[1:]
					return e
				}
				return ev
			}}
		},
		[]Invariant{DrainAccounts},
	},
}

// A planted fault is found within a bounded number of runs.
func TestPlantedFaultsAreFound(t *testing.T) {
	table := []string{"seeds until found"}
	for _, p := range planted {
		t.Run(p.name, func(t *testing.T) {
			var mu sync.Mutex
			var first *Fault
			found, at := uint64(0), uint64(0)
			each(0, plantedSeeds, func(seed uint64) bool {
				f, _ := play(seed, drawMix(seed)|p.with, p.spoil(), nil)
				mu.Lock()
				defer mu.Unlock()
				if f == nil {
					return false
				}
				if found++; first == nil || seed < at {
					first, at = f, seed
				}
				return true
			})
			require.NotNil(t, first, "in %d seeds", plantedSeeds)
			require.Contains(t, p.by, first.Invariant, "seed %d: %v", at, first)
			table = append(table, fmt.Sprintf("%5d  %s: %v", at+1, p.name, first.Invariant))
		})
	}
	t.Log(strings.Join(table, "\n"))
}

// respoken returns a message in which the gateway that made it says something else of itself.
func respoken(m roster.Message, change func(*roster.Origin)) roster.Message {
	switch m := m.(type) {
	case roster.Heartbeat:
		change(&m.Origin)
		return m
	case roster.Delta:
		change(&m.Origin)
		return m
	case roster.Snapshot:
		change(&m.Origin)
		return m
	}
	return m
}
