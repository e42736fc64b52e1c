// SPDX-License-Identifier: Apache-2.0

package handoff

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/ring"
)

// FuzzMachine: bytes become events at growing times; no input panics, loses a
// member, or wants ticks without end, and the same input does the same twice.
func FuzzMachine(f *testing.F) {
	f.Fuzz(func(t *testing.T, script []byte) {
		require.Equal(t, play(t, script), play(t, script))
	})
}

// play runs a script and returns all that the machine wanted.
func play(t *testing.T, script []byte) []Action {
	m, err := New(Config{InFlight: 2})
	require.NoError(t, err)
	names := []ring.MemberID{"a", "b", "c", "old", "stranger"}
	now, served := start, 0
	var all []Action
	for len(script) >= 2 {
		kind, arg := script[0], script[1]
		script = script[2:]
		name := names[int(arg)%len(names)]
		if kind >= 8 { // the timer, as many times as it is wanted, up to a time
			limit := now.Add(time.Duration(arg) * second / 4)
			for ticks := 0; ; ticks++ {
				next, ok := m.Deadline()
				if !ok || next.After(limit) {
					break
				}
				require.Less(t, ticks, 100)
				now = next
				all = append(all, m.Step(now, Tick{})...)
			}
			now = limit
			continue
		}
		event := []Event{
			Begin{[]Member{{"b", true}, {"a", true}, {"old", false}, {"c", arg&1 == 0}}},
			Ordered{Member: name, Told: true, Target: "C"},
			Ordered{Member: name},
			Moved{Member: name, To: "C"},
			Closed{name},
			Abort{},
			Tick{},
			nil,
		}[kind]
		all = append(all, m.Step(now, event)...)
		if m.State() != Idle {
			served = 4
		}
		require.Equal(t, served, m.Report(now).Served())
	}
	return all
}
