// SPDX-License-Identifier: Apache-2.0

package handoff

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkDrain is the machine's whole work for one drain in which everybody moves.
func BenchmarkDrain(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		members := fleet(n)
		b.Run(fmt.Sprintf("supervisors=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m, err := New(Config{})
				require.NoError(b, err)
				m.Step(start, Begin{members})
				for next, ok := m.Deadline(); ok; next, ok = m.Deadline() {
					for _, a := range m.Step(next, Tick{}) {
						if o, ok := a.(Order); ok {
							m.Step(next, Ordered{Member: o.Member, Told: true, Target: "C"})
							m.Step(next, Moved{Member: o.Member, To: "C"})
						}
					}
				}
				require.Equal(b, Done, m.State())
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/supervisor")
		})
	}
}
