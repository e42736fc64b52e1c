// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"testing"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

var (
	sinkDecision placement.Decision
	sinkView     *placement.View
)

// full makes n gateways at a cap of 100, of which percent have no room left.
func full(n, percent int) []placement.Gateway {
	all := make([]placement.Gateway, n)
	for i := range all {
		all[i] = placement.Gateway{
			ID: ring.GatewayID(fmt.Sprint("gw-", i)), Endpoint: fmt.Sprint("gw-", i, ":1"), State: placement.Ready, Known: true,
			Counts: placement.Counts{Attached: 100},
		}
		if i*100 >= percent*n {
			all[i].Attached = 99
		}
	}
	return all
}

func BenchmarkPlace(b *testing.B) {
	members := make([]ring.MemberID, 1024)
	for i := range members {
		members[i] = ring.MemberID(fmt.Sprint("member-", i))
	}
	for _, n := range []int{3, 16, 128, 1024} {
		for _, percent := range []int{0, 90, 99, 100} {
			b.Run(fmt.Sprintf("gateways=%d/full=%d", n, percent), func(b *testing.B) {
				v := view(b, full(n, percent), func(p *placement.Picture) { p.Live = 100*n - 1 })
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					sinkDecision = v.Place(placement.Request{Member: members[i%len(members)]})
				}
			})
		}
	}
}

// BenchmarkView freezes a picture whose ring has not changed.
func BenchmarkView(b *testing.B) {
	for _, n := range []int{3, 16, 128, 1024} {
		b.Run(fmt.Sprintf("gateways=%d", n), func(b *testing.B) {
			p := placement.Picture{Self: "gw-0", Gateways: full(n, 0), Live: n}
			p.Ring = circle(b, p.Gateways)
			b.ReportAllocs()
			for b.Loop() {
				sinkView = placement.NewView(p)
			}
		})
	}
}
