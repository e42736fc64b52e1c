// SPDX-License-Identifier: Apache-2.0

package supervisord

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/examples/internal/report"
)

// arrivals closes full once so many supervisors have been attached.
type arrivals struct {
	expected atomic.Int64
	full     chan struct{}
}

func (a *arrivals) Write(line []byte) (int, error) {
	if bytes.HasPrefix(line, []byte(`{"event":"attached"`)) && a.expected.Add(-1) == 0 {
		close(a.full)
	}
	return len(line), nil
}

// BenchmarkStart is the whole life of a process over loopback, its gateway's
// part included: from Run until all are attached, and until all have left.
func BenchmarkStart(b *testing.B) {
	for _, n := range []int{1, 100, 500} {
		b.Run(fmt.Sprint("supervisors=", n), func(b *testing.B) {
			gw := alone(b, gateOptions{})
			b.ReportAllocs()
			for b.Loop() {
				seen := &arrivals{full: make(chan struct{})}
				seen.expected.Store(int64(n))
				ctx, cancel := context.WithCancel(context.Background())
				ended := make(chan error, 1)
				go func() {
					ended <- Run(ctx, Config{Service: gw.addr, Members: members(n), Report: report.NewWriter(seen)})
				}()
				<-seen.full
				cancel()
				require.NoError(b, <-ended)
			}
		})
	}
}
