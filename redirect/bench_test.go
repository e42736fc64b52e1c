// SPDX-License-Identifier: Apache-2.0

package redirect_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// BenchmarkAdmission takes a hello that stays and lets its stream end again: one supervisor in and out.
func BenchmarkAdmission(b *testing.B) {
	for _, n := range []int{3, 16, 128} {
		b.Run(fmt.Sprintf("gateways=%d", n), func(b *testing.B) {
			a, err := redirect.NewAdmission(start, redirect.Config{Gateway: "gw-0", Incarnation: 1, Endpoint: "gw-0", Peers: silent{}})
			require.NoError(b, err)
			a.Serve(start)
			for i := 1; i < n; i++ {
				id := ring.GatewayID(fmt.Sprint("gw-", i))
				a.Step(start, roster.Received{From: id, Message: roster.Heartbeat{Origin: roster.Origin{
					Gateway: id, Endpoint: string(id), State: placement.Ready, Counts: placement.Counts{Incarnation: 1}}}})
			}
			members := make([]ring.MemberID, 1024)
			for i := range members {
				members[i] = ring.MemberID(fmt.Sprint("member-", i))
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				p := a.Hello(start, redirect.Hello{Member: members[i%len(members)], Generation: placement.Generation(i + 1), Stay: true, CanRedirect: true})
				a.Leave(start, p.Key, true)
				a.Take()
			}
		})
	}
}
