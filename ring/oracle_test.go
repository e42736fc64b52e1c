// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"
)

// oracle is the ring as testdata/README.md tells it, written to be read and
// not to be fast, and without the library that the ring takes its table from.
type oracle struct {
	slots int
	ids   []GatewayID // ascending, distinct
	table []GatewayID
}

func newOracle(cfg Config, hash hasher, gateways ...GatewayID) oracle {
	cfg = cfg.withDefaults()
	ids := slices.Compact(slices.Sorted(slices.Values(gateways)))
	o := oracle{slots: cfg.Slots, ids: ids}
	if len(ids) == 0 {
		return o
	}

	owners := slices.Clone(ids)
	slices.SortStableFunc(owners, func(a, b GatewayID) int { return cmp.Compare(hash([]byte(a)), hash([]byte(b))) })
	owners = owners[:min(len(owners), cfg.Slots)]
	slices.Sort(owners)

	nodes := min(20, max(4, 2048/len(owners)))
	type point struct {
		at    uint64
		owner GatewayID
	}
	var points []point
	for _, id := range owners {
		for i := range nodes {
			points = append(points, point{hash(fmt.Appendf(nil, "%s/%d", id, i)), id})
		}
	}
	slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(a.at, b.at) })
	for i := 1; i < len(points); i++ {
		if points[i].at <= points[i-1].at && points[i-1].at != math.MaxUint64 {
			points[i].at = points[i-1].at + 1
		}
	}
	for i := len(points) - 2; i >= 0; i-- {
		points[i].at = min(points[i].at, points[i+1].at-1)
	}

	limit := math.Ceil(float64(cfg.Slots/len(owners)) * cfg.Load)
	owned := make(map[GatewayID]float64)
	for slot := range cfg.Slots {
		key := hash(binary.LittleEndian.AppendUint64(nil, uint64(slot)))
		i := 0
		for i < len(points) && points[i].at < key {
			i++
		}
		for owned[points[i%len(points)].owner] >= limit {
			i++
		}
		id := points[i%len(points)].owner
		owned[id]++
		o.table = append(o.table, id)
	}
	return o
}

func (o oracle) clockwise(m MemberID) []GatewayID {
	var order []GatewayID
	slot := int(xxhash.Sum64String(string(m)) % uint64(o.slots))
	for range o.table {
		if id := o.table[slot]; !slices.Contains(order, id) {
			order = append(order, id)
		}
		slot = (slot + 1) % o.slots
	}
	for _, id := range o.ids {
		if !slices.Contains(order, id) {
			order = append(order, id)
		}
	}
	return order
}

// forced is New with another hash on the circle.
func forced(t testing.TB, cfg Config, hash hasher, gateways ...GatewayID) *Ring {
	t.Helper()
	require.NoError(t, cfg.Validate())
	ids, err := distinct(gateways)
	require.NoError(t, err)
	return build(cfg.withDefaults(), ids, hash)
}

// owners returns the table in IDs.
func owners(r *Ring) []GatewayID {
	ids := make([]GatewayID, 0, len(r.table))
	for _, i := range r.table {
		ids = append(ids, r.ids[i])
	}
	return ids
}

// statefulSet returns n gateways named as a StatefulSet names its replicas.
func statefulSet(n int) []GatewayID {
	ids := make([]GatewayID, n)
	for i := range ids {
		ids[i] = GatewayID(fmt.Sprintf("gw-%d", i))
	}
	return ids
}

// members returns n member IDs.
func members(n int) []MemberID {
	ids := make([]MemberID, n)
	for i := range ids {
		ids[i] = MemberID(fmt.Sprintf("supervisor-%d", i))
	}
	return ids
}

// random returns a source and tells its seed if the test fails.
func random(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 0))
}

func randomIDs(rnd *rand.Rand, n int) []GatewayID {
	const letters = "0123456789/-ab"
	ids := make([]GatewayID, n)
	for i := range ids {
		b := make([]byte, 1+rnd.IntN(6))
		for j := range b {
			b[j] = letters[rnd.IntN(len(letters))]
		}
		ids[i] = GatewayID(b)
	}
	return ids
}

var (
	someSlots = []int{2, 3, 5, 13, 31, 101, 271}
	someLoads = []float64{1.0000001, 1.02, 1.25, 3, 1e300}
)

// hashes are the circle's hash and some that force points to be equal.
var hashes = []struct {
	name string
	hash hasher
}{
	{"xxhash", xxhash.Sum64},
	{"all=equal", func([]byte) uint64 { return 42 }},
	{"all=first", func([]byte) uint64 { return 0 }},
	{"all=last", func([]byte) uint64 { return math.MaxUint64 }},
	{"few", func(b []byte) uint64 { return xxhash.Sum64(b) % 64 }},
	{"few=last", func(b []byte) uint64 { return math.MaxUint64 - xxhash.Sum64(b)%64 }},
	{"pairs", func(b []byte) uint64 { // gw-0 and gw-1, gw-2 and gw-3, ...: equal, node by node
		b = slices.Clone(b)
		if len(b) > 3 && string(b[:3]) == "gw-" {
			b[3] &^= 1
		}
		return xxhash.Sum64(b)
	}},
}

func TestRingIsTheOracles(t *testing.T) {
	rnd := random(t)
	for range 80 {
		cfg := Config{Slots: someSlots[rnd.IntN(len(someSlots))], Load: someLoads[rnd.IntN(len(someLoads))]}
		ids := randomIDs(rnd, rnd.IntN(40))
		for _, h := range hashes {
			want, got := newOracle(cfg, h.hash, ids...), owners(forced(t, cfg, h.hash, ids...))
			if !slices.Equal(want.table, got) {
				require.Equal(t, want.table, got, "%s %+v %q", h.name, cfg, ids)
			}
		}
	}
}

func TestWalksAreTheOracles(t *testing.T) {
	rnd := random(t)
	for range 60 {
		cfg := Config{Slots: someSlots[rnd.IntN(len(someSlots))], Load: someLoads[rnd.IntN(len(someLoads))]}
		ids := randomIDs(rnd, rnd.IntN(60))
		want := newOracle(cfg, xxhash.Sum64, ids...)
		r, err := New(cfg, ids...)
		require.NoError(t, err)
		for _, m := range members(40) {
			order := slices.Collect(r.Clockwise(m))
			require.Equal(t, want.clockwise(m), order, "%v %q", cfg, ids)
			positions := slices.Collect(r.Walk(m))
			require.Len(t, positions, len(order))
			for rank, i := range positions {
				require.Equal(t, order[rank], r.Gateway(i))
			}
		}
	}
}

// With the default Config and a fleet of any size.
func TestDefaultRingIsTheOracles(t *testing.T) {
	for _, n := range []int{1, 2, 3, 16, 102, 103, 128, 300, 1024} {
		r, err := New(Config{}, statefulSet(n)...)
		require.NoError(t, err)
		want := newOracle(Config{}, xxhash.Sum64, statefulSet(n)...)
		require.Equal(t, want.table, owners(r), "%d gateways", n)
	}
}
