// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/cespare/xxhash/v2"
)

var fleetSizes = []int{3, 16, 128, 1024}

var (
	sinkID   GatewayID
	sinkInt  int
	sinkRing *Ring
)

// BenchmarkFloor is what no ring can go below: op=lookup, a hash, a remainder
// and a read of an array; op=count, that and an atomic addition and an atomic
// subtraction, as counting somebody in and out takes.
func BenchmarkFloor(b *testing.B) {
	keys := members(1024)
	table := make([]uint16, DefaultSlots)
	ids := statefulSet(16)
	counts := make([]atomic.Int64, len(ids))
	for slot := range table {
		table[slot] = uint16(slot % len(ids))
	}
	b.Run("op=lookup", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			sinkID = ids[table[xxhash.Sum64String(string(keys[i%len(keys)]))%uint64(len(table))]]
		}
	})
	b.Run("op=count", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			owner := table[xxhash.Sum64String(string(keys[i%len(keys)]))%uint64(len(table))]
			counts[owner].Add(1)
			counts[owner].Add(-1)
		}
	})
}

func BenchmarkOwner(b *testing.B) {
	keys := members(1024)
	for _, n := range fleetSizes {
		b.Run(fmt.Sprintf("gateways=%d", n), func(b *testing.B) {
			r := newRing(b, Config{}, statefulSet(n)...)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				sinkID, _ = r.Owner(keys[i%len(keys)])
			}
		})
	}
}

// BenchmarkWalk goes all the way round.
func BenchmarkWalk(b *testing.B) {
	keys := members(1024)
	for _, n := range fleetSizes {
		b.Run(fmt.Sprintf("gateways=%d", n), func(b *testing.B) {
			r := newRing(b, Config{}, statefulSet(n)...)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				for position := range r.Walk(keys[i%len(keys)]) {
					sinkInt = position
				}
			}
		})
	}
}

func BenchmarkRing(b *testing.B) {
	for _, n := range fleetSizes {
		b.Run(fmt.Sprintf("gateways=%d", n), func(b *testing.B) {
			ids := statefulSet(n)
			b.ReportAllocs()
			for b.Loop() {
				sinkRing = newRing(b, Config{}, ids...)
			}
		})
	}
}

func BenchmarkRingWithout(b *testing.B) {
	for _, n := range fleetSizes {
		b.Run(fmt.Sprintf("gateways=%d", n), func(b *testing.B) {
			r := newRing(b, Config{}, statefulSet(n)...)
			b.ReportAllocs()
			for b.Loop() {
				sinkRing = r.Without("gw-1")
			}
		})
	}
}
