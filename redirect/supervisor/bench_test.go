// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/redirect"
)

func BenchmarkStep(b *testing.B) {
	for _, event := range []struct {
		name   string
		events func(*Machine) []Event
	}{
		{"heartbeat", func(m *Machine) []Event {
			return []Event{Noticed{m.stream.generation, redirect.Notice{Kind: redirect.NoticeHeartbeat, Gateway: "A", Incarnation: 1}}}
		}},
		{"reconnect", func(m *Machine) []Event {
			return []Event{Lost{m.stream.generation}, Answered{m.generation + 1, verdictA}}
		}},
	} {
		b.Run("event="+event.name, func(b *testing.B) {
			m, err := New(Config{Member: "s", Service: serviceAddr, BackoffMin: 1})
			require.NoError(b, err)
			m.Step(epoch, Start{})
			m.Step(epoch, Answered{1, verdictA})
			now := epoch
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(2)
				for _, e := range event.events(m) {
					m.Step(now, e)
				}
			}
		})
	}
}

var verdictA = redirect.Verdict{Outcome: redirect.Accept, Gateway: "A", Endpoint: "a", Incarnation: 1}
