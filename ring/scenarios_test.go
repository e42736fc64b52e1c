// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// The ring's part: a walk never gives up early, and never panics.
func TestS8(t *testing.T) {
	t.Run("2 gateways, 5 supervisors", func(t *testing.T) {
		r := newRing(t, Config{}, "A", "B")
		served := make(map[GatewayID]int)
		for live, m := range members(5) {
			limit := (live + 2) / 2 // ceil(live/2), the newcomer included
			placed := false
			for g := range r.Clockwise(m) {
				if served[g] < limit {
					served[g]++
					placed = true
					break
				}
			}
			require.True(t, placed, "%s found no room", m)
		}
		require.ElementsMatch(t, []int{3, 2}, []int{served["A"], served["B"]})
	})
	t.Run("7 gateways, 3 supervisors", func(t *testing.T) {
		r := newRing(t, Config{}, statefulSet(7)...)
		for _, m := range members(3) {
			require.ElementsMatch(t, statefulSet(7), slices.Collect(r.Clockwise(m)))
		}
	})
	t.Run("0 gateways", func(t *testing.T) {
		r := newRing(t, Config{})
		_, ok := r.Owner("s")
		require.False(t, ok)
		require.Empty(t, slices.Collect(r.Clockwise("s")))
	})
}

func TestS10(t *testing.T) {
	rnd := random(t)
	keys := members(10_000)
	for _, h := range hashes {
		for _, cfg := range []Config{{}, {Slots: 5}} {
			name := h.name
			if cfg.Slots != 0 {
				name += " slots=5"
			}
			t.Run(name, func(t *testing.T) {
				ids := statefulSet(8)
				want := forced(t, cfg, h.hash, ids...)
				requireSound(t, want)
				for range 5 {
					rnd.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
					got := forced(t, cfg, h.hash, ids...)
					for _, m := range keys {
						a, _ := want.Owner(m)
						b, _ := got.Owner(m)
						if a != b {
							t.Fatalf("%s: owner %s, and %s under %q", m, a, b, ids)
						}
					}
				}
			})
		}
	}
}

// S11: no gateway without a slot, and no share above what is published.
func TestS11(t *testing.T) {
	for _, tc := range []struct {
		gateways int
		least    float64 // smallest share in even shares, over all names below
	}{
		{2, 0.97}, {3, 0.95}, {4, 0.93}, {5, 0.91}, {6, 0.89}, {7, 0.87}, {8, 0.84}, {9, 0.82}, {10, 0.81}, {16, 0.65}, {128, 0.3},
	} {
		for _, prefix := range []GatewayID{"gw-", "gateway-", "pod/", "10.0.0.", ""} {
			ids := statefulSet(tc.gateways)
			for i := range ids {
				ids[i] = prefix + ids[i][len("gw-"):]
			}
			r := newRing(t, Config{}, ids...)
			requireSound(t, r)
			even := float64(DefaultSlots) / float64(tc.gateways)
			limit := math.Ceil(float64(DefaultSlots/tc.gateways) * DefaultLoad)
			require.LessOrEqual(t, r.LargestShare(), limit/even)
			require.LessOrEqual(t, r.LargestShare(), 1.031)
			for _, id := range ids {
				require.GreaterOrEqual(t, float64(r.Share(id)), tc.least*even, "%s of %d", id, tc.gateways)
			}
		}
	}
}

// The bound that LargestShare publishes, for every size of fleet.
func TestLargestShareOfTheDefaultConfig(t *testing.T) {
	for n := 1; n <= 128; n++ {
		bound := 1.025
		if n > 32 {
			bound = 1.035
		}
		require.Less(t, newRing(t, Config{}, statefulSet(n)...).LargestShare(), bound, "%d gateways", n)
	}
}
