// SPDX-License-Identifier: Apache-2.0

package gossip_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/placement/roster/gossip"
	"github.com/evenring/evenring/ring"
)

// counter tells when it is linked, and of every message.
type counter struct {
	linked  chan struct{}
	arrived chan struct{}
}

func (c *counter) Step(ev roster.Event) {
	switch ev.(type) {
	case roster.LinkUp:
		close(c.linked)
	case roster.Received:
		c.arrived <- struct{}{}
	}
}

// BenchmarkDelivery is a message from Send to the other's replica, over
// loopback: alone, or as one of many.
func BenchmarkDelivery(b *testing.B) {
	entry := roster.Entry{Member: ring.MemberID(make([]byte, 30)), Generation: 1}
	for _, row := range []struct{ members, together int }{{1, 1}, {1, 1000}, {30_000, 1}} {
		b.Run(fmt.Sprintf("members=%d/together=%d", row.members, row.together), func(b *testing.B) {
			var sinks [2]*counter
			var meshes [2]*gossip.Mesh
			for i := range meshes {
				sinks[i] = &counter{linked: make(chan struct{}), arrived: make(chan struct{}, row.together)}
				cfg := gossip.Config{Gateway: ring.GatewayID(fmt.Sprintf("gw-%d", i)), Incarnation: 1, Bind: "127.0.0.1:0"}
				if i > 0 {
					cfg.Seeds = []string{meshes[0].Addr()}
				}
				ctx, cancel := context.WithTimeout(b.Context(), 10*time.Second)
				defer cancel()
				mesh, err := gossip.Join(ctx, cfg, sinks[i])
				require.NoError(b, err)
				defer mesh.Close()
				meshes[i] = mesh
			}
			<-sinks[0].linked
			page := roster.Snapshot{Origin: roster.Origin{Gateway: "gw-0"}, Pages: 1}
			page.Counts = placement.Counts{Incarnation: 1, Sequence: 1}
			for range row.members {
				page.Entries = append(page.Entries, entry)
			}
			message := roster.Append(nil, page)
			b.SetBytes(int64(len(message) * row.together))
			b.ReportAllocs()
			for b.Loop() {
				for range row.together {
					require.NoError(b, meshes[0].Send("gw-1", message))
				}
				for range row.together {
					<-sinks[1].arrived
				}
			}
		})
	}
}
