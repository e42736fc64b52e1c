// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

var (
	sinkID   ring.GatewayID
	sinkView *placement.View
)

var (
	fleetSizes = []int{3, 16, 128, 1024}
	fills      = []int{0, 90, 99, 100} // percent of the gateways that are full
)

// crowd is who is placed.
func crowd() []ring.MemberID {
	members := make([]ring.MemberID, 1024)
	for i := range members {
		members[i] = ring.MemberID(fmt.Sprint("member-", i))
	}
	return members
}

// full makes n gateways at a cap of 100, of which percent have no room left: one has, except at 100.
func full(n, percent int) []placement.Gateway {
	all := make([]placement.Gateway, n)
	for i := range all {
		all[i] = placement.Gateway{
			ID: ring.GatewayID(fmt.Sprint("gw-", i)), Endpoint: fmt.Sprint("gw-", i, ":1"), State: placement.Ready, Known: true,
			Counts: placement.Counts{Attached: 100},
		}
		if i*100 >= percent*n || percent < 100 && i == n-1 {
			all[i].Attached = 99
		}
	}
	return all
}

// nearLimit is the picture of that fleet: one more is placed under a cap of 100.
func nearLimit(b *testing.B, n, percent int) placement.Picture {
	all := full(n, percent)
	return placement.Picture{Self: "gw-0", Ring: circle(b, all), Gateways: all, Live: 100*n - 1}
}

// BenchmarkFloor is what no placement can go below: op=lookup, a hash, a remainder
// and a read of an array; op=count, that and an atomic addition and an atomic
// subtraction, as counting somebody in and out takes.
func BenchmarkFloor(b *testing.B) {
	members := crowd()
	table := make([]uint16, ring.DefaultSlots)
	ids := make([]ring.GatewayID, 16)
	counts := make([]atomic.Int64, len(ids))
	for i := range ids {
		ids[i] = ring.GatewayID(fmt.Sprint("gw-", i))
	}
	for slot := range table {
		table[slot] = uint16(slot % len(ids))
	}
	b.Run("op=lookup", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			sinkID = ids[table[xxhash.Sum64String(string(members[i%len(members)]))%uint64(len(table))]]
		}
	})
	b.Run("op=count", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			owner := table[xxhash.Sum64String(string(members[i%len(members)]))%uint64(len(table))]
			counts[owner].Add(1)
			counts[owner].Add(-1)
		}
	})
}

func BenchmarkPlace(b *testing.B) {
	members := crowd()
	for _, n := range fleetSizes {
		for _, percent := range fills {
			b.Run(fmt.Sprintf("gateways=%d/full=%d", n, percent), func(b *testing.B) {
				v := placement.NewView(nearLimit(b, n, percent))
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					sinkID = v.Place(placement.Request{Member: members[i%len(members)]}).Gateway
				}
			})
		}
	}
}

// BenchmarkReserve decides, keeps the place, and gives it up again.
func BenchmarkReserve(b *testing.B) {
	members := crowd()
	expires := time.Unix(1_000_000_000, 0)
	for _, n := range fleetSizes {
		for _, percent := range fills {
			b.Run(fmt.Sprintf("gateways=%d/full=%d", n, percent), func(b *testing.B) {
				book := placement.NewBook(nearLimit(b, n, percent))
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					m := members[i%len(members)]
					sinkID = book.Reserve(placement.Request{Member: m}, expires).Gateway
					book.End(m)
				}
			})
		}
	}
}

// BenchmarkReserveParallel does the same from every processor at once, on one book.
func BenchmarkReserveParallel(b *testing.B) {
	members := crowd()
	expires := time.Unix(1_000_000_000, 0)
	for _, n := range fleetSizes {
		b.Run(fmt.Sprintf("gateways=%d/full=90", n), func(b *testing.B) {
			book := placement.NewBook(nearLimit(b, n, 90))
			var worker atomic.Int64
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for i := 100 * int(worker.Add(1)); pb.Next(); i++ {
					m := members[i%len(members)]
					if d := book.Reserve(placement.Request{Member: m}, expires); d.Gateway == "" {
						b.Error("nowhere")
					}
					book.End(m)
				}
			})
		})
	}
}

// BenchmarkView changes one count: a gateway counts one more, and then one less.
func BenchmarkView(b *testing.B) {
	for _, n := range fleetSizes {
		b.Run(fmt.Sprintf("gateways=%d", n), func(b *testing.B) {
			p := nearLimit(b, n, 0)
			v := placement.NewView(p)
			g := p.Gateways[n/2]
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				g.Attached = 99 + i%2
				g.Sequence++
				v.Set(g)
				v.SetLive(100*n - 1 + i%2)
			}
		})
	}
}

// BenchmarkNewView makes a view from a picture, as after a change of the ring.
func BenchmarkNewView(b *testing.B) {
	for _, n := range fleetSizes {
		b.Run(fmt.Sprintf("gateways=%d", n), func(b *testing.B) {
			p := nearLimit(b, n, 0)
			b.ReportAllocs()
			for b.Loop() {
				sinkView = placement.NewView(p)
			}
		})
	}
}
