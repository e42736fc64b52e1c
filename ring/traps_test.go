// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/buraksezer/consistent"
	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"
)

// plain is a member of consistent as its manual shows it.
type plain string

func (p plain) String() string { return string(p) }

// plainUse uses consistent as its manual shows it.
func plainUse(cfg Config, nodes int, ids ...GatewayID) *consistent.Consistent {
	var members []consistent.Member
	for _, id := range ids {
		members = append(members, plain(id))
	}
	return consistent.New(members, consistent.Config{
		Hasher: hasher(xxhash.Sum64), PartitionCount: cfg.Slots, ReplicationFactor: nodes, Load: cfg.Load,
	})
}

// The table is what consistent says, given names that end in a slash.
func TestTableIsConsistents(t *testing.T) {
	rnd := random(t)
	for _, cfg := range []Config{{}, {Slots: 271, Load: 1.25}, {Slots: 31, Load: 1.5}, {Slots: 8191, Load: 1.1}} {
		for _, n := range []int{1, 2, 3, 7, 16, 31} {
			ids := statefulSet(n)
			r := newRing(t, cfg, ids...)
			named := make([]GatewayID, n)
			for i, id := range ids {
				named[i] = id + "/"
			}
			rnd.Shuffle(n, func(i, j int) { named[i], named[j] = named[j], named[i] })
			c := plainUse(cfg.withDefaults(), 20, named...)
			for slot, id := range owners(r) {
				require.Equal(t, string(id)+"/", c.GetPartitionOwner(slot).String(), "%+v, %d gateways, slot %d", cfg, n, slot)
			}
		}
	}
}

// TestTraps shows each trap of consistent v0.10.0 in a plain use of it, and
// that no ring falls into it.
func TestTraps(t *testing.T) {
	for _, trap := range []struct {
		name  string
		plain func(*testing.T)
		ring  func(*testing.T)
	}{
		{
			name: "keys of virtual nodes without a separator",
			plain: func(t *testing.T) {
				require.Panics(t, func() {
					c := plainUse(Config{Slots: 4099, Load: 1.25}, 20, statefulSet(20)...)
					c.Remove("gw-1") // takes nodes of gw-10 to gw-19 with it
				})
			},
			ring: func(t *testing.T) {
				r := newRing(t, Config{}, statefulSet(20)...).Without("gw-1")
				require.Equal(t, 19, r.Len())
				for _, id := range r.Gateways() {
					require.Positive(t, r.Share(id))
				}
			},
		},
		{
			name: "more gateways than slots",
			plain: func(t *testing.T) {
				require.Panics(t, func() { plainUse(Config{Slots: 7, Load: 1.25}, 20, statefulSet(8)...) })
			},
			ring: func(t *testing.T) {
				r := newRing(t, Config{Slots: 7, Load: 1.25}, statefulSet(8)...)
				requireSound(t, r)
				require.Equal(t, statefulSet(8), slices.Sorted(r.Clockwise("s")))
			},
		},
		{
			name: "a load that leaves no room",
			plain: func(t *testing.T) {
				require.Panics(t, func() { plainUse(Config{Slots: 7, Load: 0.9}, 20, "a", "b") })
				// The average is rounded down before the load is applied.
				require.Panics(t, func() { plainUse(Config{Slots: 7, Load: 1}, 20, "a", "b") })
			},
			ring: func(t *testing.T) {
				for _, load := range []float64{0.9, 1} {
					_, err := New(Config{Slots: 7, Load: load}, "a", "b")
					require.ErrorContains(t, err, "Config.Load")
				}
				for _, load := range someLoads {
					for n := range 16 {
						requireSound(t, newRing(t, Config{Slots: 7, Load: load}, statefulSet(n)...))
					}
				}
			},
		},
		{
			name: "the last virtual node is not searched",
			plain: func(t *testing.T) {
				require.Panics(t, func() { plainUse(Config{Slots: 7, Load: 1.25}, 1, "a") })
			},
			ring: func(t *testing.T) {
				for n := 1; n <= 3*MaxSlots; n += 1 + n/8 {
					require.Greater(t, virtualNodes(n), 1, "%d owners", n)
				}
				requireSound(t, newRing(t, Config{Slots: 7, Load: 1.25}, "a"))
			},
		},
		{
			name: "what is left after removes",
			plain: func(t *testing.T) {
				c := plainUse(Config{Slots: 7, Load: 1.25}, 20, "a")
				c.Remove("a")
				require.NotEmpty(t, c.LoadDistribution(), "a gateway that is gone still has a load")
			},
			ring: func(t *testing.T) {
				r := newRing(t, Config{}, "a", "b", "c")
				require.Equal(t, newRing(t, Config{}, "b"), r.Without("a").Without("c"))
				require.Zero(t, r.Without("a").Share("a"))
				require.Equal(t, newRing(t, Config{}), r.Without("a", "b", "c"))
				require.Equal(t, newRing(t, Config{}), r.Without("a").Without("b").Without("c"))
			},
		},
		{
			name: "no members, in a slice that is not nil",
			plain: func(t *testing.T) {
				require.Panics(t, func() {
					consistent.New([]consistent.Member{}, consistent.Config{Hasher: hasher(xxhash.Sum64)})
				})
			},
			ring: func(t *testing.T) {
				require.Zero(t, newRing(t, Config{}, []GatewayID{}...).Len())
				require.Zero(t, newRing(t, Config{}, []GatewayID(nil)...).Len())
			},
		},
		{
			name: "asking for the owner in no members",
			plain: func(t *testing.T) {
				c := plainUse(Config{Slots: 7, Load: 1.25}, 20)
				require.Nil(t, c.LocateKey([]byte("s")))
				require.Panics(t, func() { _ = c.LocateKey([]byte("s")).String() })
			},
			ring: func(t *testing.T) {
				_, ok := newRing(t, Config{}).Owner("s")
				require.False(t, ok)
			},
		},
		{
			name: "equal points",
			plain: func(t *testing.T) {
				config := consistent.Config{
					Hasher:         hasher(func([]byte) uint64 { return 42 }),
					PartitionCount: 7, ReplicationFactor: 20, Load: 1.25,
				}
				require.Panics(t, func() { consistent.New([]consistent.Member{plain("a"), plain("b")}, config) })
			},
			ring: func(t *testing.T) {
				for _, h := range hashes {
					for n := range 20 {
						requireSound(t, forced(t, Config{Slots: 7, Load: 1.25}, h.hash, statefulSet(n)...))
					}
				}
			},
		},
	} {
		t.Run(trap.name, func(t *testing.T) {
			trap.plain(t)
			trap.ring(t)
		})
	}
}

func TestKeysOfVirtualNodesAreInjective(t *testing.T) {
	ids := append(statefulSet(30), "gw-1/", "gw-1/1", "gw-1//", "/", "//", "1", "1/1", "gw-", "gw-1 0")
	keys := make(map[string]string)
	for _, o := range owning(Config{}.withDefaults(), ids, xxhash.Sum64) {
		for i := range 200 {
			key := string(node{owner: o, index: i}.appendKey(nil))
			require.Equal(t, fmt.Sprintf("%s%d", o, i), key, "not the key that consistent uses")
			require.Empty(t, keys[key], "%q is a key of another gateway", key)
			keys[key] = o.name
		}
	}
	require.Len(t, keys, 200*len(ids))
}

func TestMoreGatewaysThanSlots(t *testing.T) {
	for _, slots := range []int{2, 3, 7, 31} {
		for _, n := range []int{slots - 1, slots, slots + 1, 2 * slots, 10 * slots} {
			r := newRing(t, Config{Slots: slots}, statefulSet(n)...)
			requireSound(t, r)

			lowest := statefulSet(n)
			slices.SortFunc(lowest, func(a, b GatewayID) int {
				if xxhash.Sum64String(string(a)) < xxhash.Sum64String(string(b)) {
					return -1
				}
				return 1
			})
			for rank, id := range lowest {
				if rank >= slots {
					require.Zero(t, r.Share(id), "slots=%d gateways=%d", slots, n)
				}
			}

			// Who owns no slot comes last, in ID order.
			order := slices.Collect(r.Clockwise("s"))
			require.Len(t, order, n)
			idle := slices.DeleteFunc(slices.Sorted(slices.Values(order)), func(id GatewayID) bool { return r.Share(id) > 0 })
			require.Equal(t, idle, order[n-len(idle):])
		}
	}
}

func TestTiesOfGatewayIDsGoByID(t *testing.T) {
	ids := statefulSet(9)
	slices.Reverse(ids)
	r := forced(t, Config{Slots: 3}, func([]byte) uint64 { return 7 }, ids...)
	for id := range strings.FieldsSeq("gw-3 gw-4 gw-5 gw-6 gw-7 gw-8") {
		require.Zero(t, r.Share(GatewayID(id)))
	}
	requireSound(t, r)
}

// requireSound checks what holds for every ring.
func requireSound(t testing.TB, r *Ring) {
	t.Helper()
	if r.Len() == 0 {
		_, ok := r.Owner("s")
		require.False(t, ok)
		require.Zero(t, r.LargestShare())
		return
	}
	require.True(t, slices.IsSorted(r.ids))
	require.Len(t, r.table, r.Slots())

	total, most := 0, 0
	sharing := min(r.Len(), r.Slots())
	for i, id := range r.Gateways() {
		at, ok := r.Index(id)
		require.True(t, ok)
		require.Equal(t, i, at)
		total, most = total+r.Share(id), max(most, r.Share(id))
	}
	require.Equal(t, r.Slots(), total)
	require.LessOrEqual(t, float64(most), float64(r.Slots()/sharing)*r.cfg.Load+1)
	require.InEpsilon(t, float64(most*r.Len())/float64(r.Slots()), r.LargestShare(), 1e-12)

	for _, m := range []MemberID{"", "s", "supervisor-1"} {
		owner, ok := r.Owner(m)
		require.True(t, ok)
		order := slices.Collect(r.Clockwise(m))
		require.Equal(t, owner, order[0])
		slices.Sort(order)
		require.Equal(t, r.ids, order, "a walk meets everybody once")
	}
}
