// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func newRing(t testing.TB, cfg Config, gateways ...GatewayID) *Ring {
	t.Helper()
	r, err := New(cfg, gateways...)
	require.NoError(t, err)
	return r
}

func TestConfigValidate(t *testing.T) {
	for _, tc := range []struct {
		name   string
		cfg    Config
		faults []string
	}{
		{"zero", Config{}, nil},
		{"smallest", Config{Slots: 2, Load: math.Nextafter(1, 2)}, nil},
		{"largest", Config{Slots: MaxSlots, Load: math.MaxFloat64}, nil},
		{"slots=1", Config{Slots: 1}, []string{"Config.Slots is 1"}},
		{"slots=4", Config{Slots: 4}, []string{"Config.Slots is 4"}},
		{"slots=4097", Config{Slots: 4097}, []string{"Config.Slots is 4097"}},
		{"slots=square", Config{Slots: 251 * 251}, []string{"Config.Slots is 63001"}},
		{"slots=negative", Config{Slots: -3}, []string{"Config.Slots is -3"}},
		{"slots=next prime", Config{Slots: 65537}, []string{"Config.Slots is 65537"}},
		{"slots=huge", Config{Slots: math.MaxInt}, []string{"Config.Slots is 9223372036854775807"}},
		{"load=1", Config{Load: 1}, []string{"Config.Load is 1"}},
		{"load=negative", Config{Load: -2}, []string{"Config.Load is -2"}},
		{"load=NaN", Config{Load: math.NaN()}, []string{"Config.Load is NaN"}},
		{"load=+Inf", Config{Load: math.Inf(1)}, []string{"Config.Load is +Inf"}},
		{"load=-Inf", Config{Load: math.Inf(-1)}, []string{"Config.Load is -Inf"}},
		{"both", Config{Slots: 6, Load: 0.5}, []string{"Config.Slots is 6", "Config.Load is 0.5"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := tc.cfg.Validate()
			if len(tc.faults) == 0 {
				require.NoError(t, err)
			}
			for _, fault := range tc.faults {
				require.ErrorContains(t, err, fault)
			}
			r, newErr := New(tc.cfg, "a")
			require.Equal(t, err == nil, newErr == nil)
			require.Equal(t, err == nil, r != nil)
		})
	}
}

func TestMaxSlotsIsThePrimeBelow16Bits(t *testing.T) {
	require.True(t, prime(MaxSlots))
	for n := MaxSlots + 1; n < 1<<16; n++ {
		require.False(t, prime(n), "%d", n)
	}
	require.True(t, prime(DefaultSlots))
}

func TestNewNamesEveryFault(t *testing.T) {
	_, err := New(Config{Slots: 9}, "a", "", "b", "")
	require.ErrorContains(t, err, "Config.Slots is 9")
	require.ErrorContains(t, err, "gateways[1] is empty")
	require.ErrorContains(t, err, "gateways[3] is empty")

	_, err = New(Config{}, statefulSet(MaxGateways+1)...)
	require.ErrorContains(t, err, "65537 gateways")
	repeated := slices.Repeat([]GatewayID{"a", "b"}, MaxGateways)
	require.Equal(t, 2, newRing(t, Config{}, repeated...).Len())
}

func TestEmptyRing(t *testing.T) {
	for name, r := range map[string]*Ring{
		"nil":          nil,
		"zero":         {},
		"no gateways":  newRing(t, Config{}),
		"empty slice":  newRing(t, Config{}, []GatewayID{}...),
		"all taken":    newRing(t, Config{}, "a", "b").Without("b", "a"),
		"nil, without": (*Ring)(nil).Without("a"),
		"of an empty":  newRing(t, Config{}).Without("a"),
	} {
		t.Run(name, func(t *testing.T) {
			owner, ok := r.Owner("s")
			require.False(t, ok)
			require.Empty(t, owner)
			require.Empty(t, slices.Collect(r.Clockwise("s")))
			require.Empty(t, slices.Collect(r.Walk("s")))
			for range r.Gateways() {
				require.Fail(t, "a gateway in an empty ring")
			}
			require.Zero(t, r.Len())
			require.Equal(t, DefaultSlots, r.Slots())
			require.Equal(t, newRing(t, Config{}, "a").Slot("s"), r.Slot("s"))
			require.Empty(t, r.Gateway(0))
			slot, position := r.Locate("s")
			require.Equal(t, r.Slot("s"), slot)
			require.Equal(t, -1, position)
			require.Equal(t, -1, r.At(slot))
			_, ok = r.Index("a")
			require.False(t, ok)
			_, ok = r.Index("")
			require.False(t, ok)
			require.Zero(t, r.Share("a"))
			require.Zero(t, r.LargestShare(), "never NaN")
			require.Equal(t, newRing(t, Config{}).Fingerprint(), r.Fingerprint())
			require.Zero(t, r.Without("a", "b").Len())
		})
	}
	require.Equal(t, 13, newRing(t, Config{Slots: 13}).Slots())
	require.NotEqual(t, newRing(t, Config{}).Fingerprint(), newRing(t, Config{Slots: 13}).Fingerprint())
}

func TestOwnerIsTheOwnerOfTheSlot(t *testing.T) {
	r := newRing(t, Config{}, statefulSet(16)...)
	table := owners(r)
	for _, m := range append(members(5000), "", "ü", MemberID(make([]byte, 10_000))) {
		owner, ok := r.Owner(m)
		require.True(t, ok)
		require.Equal(t, table[r.Slot(m)], owner)
		slot, position := r.Locate(m)
		require.Equal(t, r.Slot(m), slot)
		require.Equal(t, owner, r.Gateway(position))
		require.Equal(t, position, r.At(slot))
		for first := range r.Clockwise(m) {
			require.Equal(t, owner, first)
			break
		}
	}
}

func TestAtOfNoSlot(t *testing.T) {
	r := newRing(t, Config{}, "a", "b")
	require.Equal(t, -1, r.At(-1))
	require.Equal(t, -1, r.At(r.Slots()))
	require.Equal(t, -1, r.At(math.MaxInt))
}

func TestNeitherOrderNorDuplicatesMatter(t *testing.T) {
	rnd := random(t)
	ids := statefulSet(20)
	want := newRing(t, Config{}, ids...)
	for range 20 {
		rnd.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		require.Equal(t, want, newRing(t, Config{}, slices.Concat(ids, ids[:7])...))
	}
}

func TestNewLeavesTheCallersSliceAlone(t *testing.T) {
	ids := []GatewayID{"c", "a", "b", "a"}
	r := newRing(t, Config{}, ids...)
	require.Equal(t, []GatewayID{"c", "a", "b", "a"}, ids)
	ids[1] = "z"
	require.Equal(t, newRing(t, Config{}, "a", "b", "c"), r)
}

func TestWithoutEqualsTheRingOfTheRest(t *testing.T) {
	rnd := random(t)
	for range 60 {
		cfg := Config{Slots: someSlots[rnd.IntN(len(someSlots))], Load: someLoads[rnd.IntN(len(someLoads))]}
		ids := randomIDs(rnd, rnd.IntN(40))
		r := newRing(t, cfg, ids...)
		rnd.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		gone := append(slices.Clone(ids[:rnd.IntN(len(ids)+1)]), "stranger", "")
		rest := slices.DeleteFunc(slices.Clone(ids), func(id GatewayID) bool { return slices.Contains(gone, id) })
		before := r.Fingerprint()
		got, want := r.Without(gone...), newRing(t, cfg, rest...)
		require.Equal(t, want.Fingerprint(), got.Fingerprint(), "%v %q without %q", cfg, ids, gone)
		require.Equal(t, owners(want), owners(got))
		require.Equal(t, before, r.sum(), "the ring itself has changed")
	}
	r := newRing(t, Config{}, "a", "b")
	require.Same(t, r, r.Without())
	require.Same(t, r, r.Without("c", ""))
}

func TestWithEqualsTheRingOfAll(t *testing.T) {
	rnd := random(t)
	for range 60 {
		cfg := Config{Slots: someSlots[rnd.IntN(len(someSlots))], Load: someLoads[rnd.IntN(len(someLoads))]}
		ids := randomIDs(rnd, rnd.IntN(40))
		want := newRing(t, cfg, ids...)
		rnd.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		n := rnd.IntN(len(ids) + 1)
		r := newRing(t, cfg, ids[:n]...)
		before := r.Fingerprint()
		more := slices.Concat(ids[n:], ids[:n/2]) // some that it has already
		added := slices.Clone(more)
		got, err := r.With(more...)
		require.NoError(t, err)
		require.Equal(t, want.Fingerprint(), got.Fingerprint(), "%v %q with %q", cfg, ids[:n], more)
		require.Equal(t, owners(want), owners(got))
		require.Equal(t, before, r.sum(), "the ring itself has changed")
		require.Equal(t, added, more, "the slice remains the caller's")
	}
	r := newRing(t, Config{}, "a", "b")
	for _, ids := range [][]GatewayID{nil, {"b"}, {"a", "b", "a"}} {
		got, err := r.With(ids...)
		require.NoError(t, err)
		require.Same(t, r, got)
	}
	for _, empty := range []*Ring{nil, {}, newRing(t, Config{})} {
		got, err := empty.With("b", "a")
		require.NoError(t, err)
		require.Equal(t, r, got)
	}
	none, err := (*Ring)(nil).With()
	require.NoError(t, err)
	require.Nil(t, none)

	_, err = r.With("c", "")
	require.ErrorContains(t, err, "gateways[1] is empty")
	_, err = r.With(statefulSet(MaxGateways)...)
	require.ErrorContains(t, err, "65538 gateways")
}

func TestGatewaysAreInIDOrder(t *testing.T) {
	r := newRing(t, Config{}, "gw-10", "gw-2", "a", "gw-2")
	want := []GatewayID{"a", "gw-10", "gw-2"}
	for range 2 { // twice: the sequence may be ranged again
		var got []GatewayID
		for i, id := range r.Gateways() {
			require.Equal(t, id, r.Gateway(i))
			at, ok := r.Index(id)
			require.True(t, ok)
			require.Equal(t, i, at)
			got = append(got, id)
		}
		require.Equal(t, want, got)
	}
	require.Empty(t, r.Gateway(-1))
	require.Empty(t, r.Gateway(3))
	_, ok := r.Index("gw-1")
	require.False(t, ok)
	require.Zero(t, r.Share("gw-1"))
}

func TestWalksMayBeRangedTwiceAndLeft(t *testing.T) {
	for _, n := range []int{1, 3, 16, 1024, 1025} {
		r := newRing(t, Config{}, statefulSet(n)...)
		clockwise, walk := r.Clockwise("s"), r.Walk("s")
		first := slices.Collect(clockwise)
		require.Len(t, first, n)
		require.Equal(t, first, slices.Collect(clockwise))
		require.Equal(t, slices.Collect(walk), slices.Collect(walk))
		for stop := 1; stop <= n; stop += 1 + n/8 {
			var ids []GatewayID
			for id := range clockwise {
				if ids = append(ids, id); len(ids) == stop {
					break
				}
			}
			require.Equal(t, first[:stop], ids)
		}
	}
}

// A full gateway's overflow spreads: everybody else is next for some of its
// members, and nobody for a third of them. (On a circle of gateways, one
// neighbour would be next for all.)
func TestOverflowSpreads(t *testing.T) {
	const gateways = 16
	r := newRing(t, Config{}, statefulSet(gateways)...)
	next := make(map[GatewayID]map[GatewayID]int)
	for _, m := range members(50_000) {
		order := slices.Collect(r.Clockwise(m))
		if next[order[0]] == nil {
			next[order[0]] = make(map[GatewayID]int)
		}
		next[order[0]][order[1]]++
	}
	for owner, counts := range next {
		total, most := 0, 0
		for _, n := range counts {
			total, most = total+n, max(most, n)
		}
		require.Len(t, counts, gateways-1, "overflow of %s reaches everybody", owner)
		require.Less(t, float64(most)/float64(total), 1.0/3, "overflow of %s", owner)
	}
}

func TestFingerprint(t *testing.T) {
	r := newRing(t, Config{}, "a", "b", "c")
	require.Equal(t, r.Fingerprint(), newRing(t, Config{Slots: DefaultSlots, Load: DefaultLoad}, "c", "b", "a").Fingerprint())
	seen := map[uint64]string{r.Fingerprint(): "a b c"}
	for name, other := range map[string]*Ring{
		"empty": newRing(t, Config{}),
		"fewer": r.Without("b"),
		"more":  newRing(t, Config{}, "a", "b", "c", "d"),
		"other": newRing(t, Config{}, "a", "b", "d"),
		"split": newRing(t, Config{}, "ab", "c"),
		"slots": newRing(t, Config{Slots: 4093}, "a", "b", "c"),
		"load":  newRing(t, Config{Load: 1.03}, "a", "b", "c"),
	} {
		require.NotContains(t, seen, other.Fingerprint(), name)
		seen[other.Fingerprint()] = name
	}

	// One slot of another owner, and all else the same.
	for _, slot := range []int{0, 1234, DefaultSlots - 1} {
		moved := *r
		moved.table = slices.Clone(r.table)
		moved.table[slot] = (moved.table[slot] + 1) % 3
		require.NotEqual(t, r.Fingerprint(), moved.sum(), "slot %d", slot)
	}
}

func TestReadersShareARing(t *testing.T) {
	r := newRing(t, Config{}, statefulSet(16)...)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for _, m := range members(200) {
				owner, _ := r.Owner(m)
				for first := range r.Clockwise(m) {
					if first != owner {
						t.Errorf("%s is owned by %s, the walk starts at %s", m, owner, first)
					}
					break
				}
			}
			_ = r.Without("gw-3").Fingerprint()
		})
	}
	wg.Wait()
}

func TestNothingIsAllocatedToRead(t *testing.T) {
	for _, n := range []int{3, 1024} {
		r := newRing(t, Config{}, statefulSet(n)...)
		sum := 0
		for name, read := range map[string]func(){
			"Owner": func() { g, _ := r.Owner("supervisor-17"); sum += len(g) },
			"Slot":  func() { sum += r.Slot("supervisor-17") },
			"At":    func() { sum += r.At(17) },
			"Locate": func() {
				slot, position := r.Locate("supervisor-17")
				sum += slot + position
			},
			"Index": func() { i, _ := r.Index("gw-2"); sum += i },
			"Share": func() { sum += r.Share("gw-2") },
			"Walk": func() {
				for i := range r.Walk("supervisor-17") {
					sum += i
				}
			},
			"Clockwise": func() {
				for g := range r.Clockwise("supervisor-17") {
					sum += len(g)
				}
			},
			"Fingerprint": func() { sum += int(r.Fingerprint() & 1) },
		} {
			require.Zero(t, testing.AllocsPerRun(10, read), "%s, gateways=%d", name, n)
		}
	}
}

func TestRingFitsIn64KiB(t *testing.T) {
	ids := make([]GatewayID, 128)
	for i := range ids {
		ids[i] = GatewayID(fmt.Sprintf("gateway-%d.gateways.some-namespace.svc.cluster.local", i))
	}
	r := newRing(t, Config{}, ids...)
	size := int(unsafe.Sizeof(*r)) + cap(r.ids)*int(unsafe.Sizeof(r.ids[0])) + 2*cap(r.shares) + 2*cap(r.table)
	for _, id := range r.Gateways() {
		size += len(id)
	}
	t.Logf("%d bytes", size)
	require.LessOrEqual(t, size, 64<<10)
}
