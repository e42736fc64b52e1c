// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// FuzzMachine: bytes become events at growing times. No input panics, wants
// ticks without end or in the past, tells anybody to move twice, more at once than
// InFlight or more than Budget, and the same input does the same twice.
func FuzzMachine(f *testing.F) {
	f.Fuzz(func(t *testing.T, script []byte) {
		require.Equal(t, play(t, script), play(t, script))
	})
}

// play runs a script and returns all that the machine wanted.
func play(t *testing.T, script []byte) []Action {
	const budget, inFlight = 3, 2
	m, err := New(Config{Budget: budget, InFlight: inFlight, Interval: 1})
	require.NoError(t, err)
	names := []ring.MemberID{"a", "b", "c", "d", "e", "stranger"}
	toldOf, underWay := map[ring.MemberID]bool{}, map[ring.MemberID]bool{}
	var s redirect.Sight
	now := start
	var all []Action
	step := func(e Event) {
		wasOver := m.over()
		for _, a := range m.Step(now, e) {
			if o, ok := a.(Order); ok {
				require.False(t, wasOver)
				require.False(t, toldOf[o.Member], "%s is told twice", o.Member)
				require.False(t, underWay[o.Member], "%s is asked for twice at once", o.Member)
				require.NotEqual(t, ring.GatewayID("A"), o.To)
				require.Positive(t, o.Limit)
				underWay[o.Member] = true
			}
			all = append(all, a)
		}
		require.LessOrEqual(t, len(toldOf), budget)
		require.LessOrEqual(t, m.underWay(), inFlight)
		if next, ok := m.Deadline(); ok {
			require.True(t, m.running())
			require.True(t, next.After(now))
		}
	}
	for len(script) >= 2 {
		kind, arg := script[0], script[1]
		script = script[2:]
		name := names[int(arg)%len(names)]
		switch kind % 8 {
		case 0: // loads
			s = redirect.Sight{Self: "A", Gateways: gateways(int(arg)>>5, int(arg)>>2&7, int(arg)&3)}
			step(Begin{s})
			step(Seen{s})
		case 1: // conditions
			s.Stale, s.Over = arg&1 != 0, arg&2 != 0 && arg&4 != 0
			if i := int(arg>>3) % 3; i < len(s.Gateways) {
				s.Gateways[i].Suspect = arg&64 != 0
				s.Gateways[i].Reserved = int(arg >> 7)
				s.Gateways[i].Held = int(arg >> 6 & 1)
			}
			step(Seen{s})
		case 2: // where they are
			s.Where = []redirect.Whereabouts{{Member: name, At: []ring.GatewayID{"", "A", "B", "C"}[arg>>6]}}
			step(Seen{s})
		case 3:
			step(Listed{[]redirect.Supervisor{
				{Member: "e", Movable: true}, {Member: "d", Movable: arg&1 == 0}, {Member: "a", Movable: true, From: "C"},
				{Member: "b", Movable: true, From: "A"}, {Member: "c", Movable: true}, {Member: "a", Movable: true},
			}})
		case 4:
			result := []Result{Told, Told, Refused, Absent}[arg>>6]
			if underWay[name] && result == Told {
				toldOf[name] = true
			}
			delete(underWay, name)
			step(Ordered{name, result})
		case 5: // the timer, as many times as it is wanted, up to a time
			limit := now.Add(time.Duration(arg) * second / 4)
			for ticks := 0; ; ticks++ {
				next, ok := m.Deadline()
				if !ok || next.After(limit) {
					break
				}
				require.Less(t, ticks, 1000)
				now = next
				step(Tick{})
			}
			now = limit
		case 6:
			if arg == 0 {
				step(Abort{})
			}
		case 7:
			step(nil)
		}
		m.Report(now)
	}
	return all
}
