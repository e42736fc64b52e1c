// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// deal returns the first acts of a plan, without what to do.
func deal(seed uint64, n int) []act {
	p := newPlan(seed, kinds, 4, 16)
	all := make([]act, n)
	for i := range all {
		all[i] = p.next()
		all[i].do = nil
	}
	return all
}

func TestPlanIsTheSeedsAlone(t *testing.T) {
	require.Equal(t, deal(7, 100), deal(7, 100))
	require.NotEqual(t, deal(7, 100), deal(8, 100))
}

// Each deal has every kind as often as it says, and the next deal is in another order.
func TestPlanDealsEveryKind(t *testing.T) {
	size := 0
	want := make(map[string]int)
	for _, k := range kinds {
		require.Zero(t, want[k.name], "%s is there twice", k.name)
		want[k.name] = max(1, k.often)
		size += want[k.name]
	}
	all := deal(1, 2*size)
	var orders [2][]string
	for i := range orders {
		got := make(map[string]int)
		for _, a := range all[i*size : (i+1)*size] {
			got[a.name]++
			orders[i] = append(orders[i], a.name)
		}
		require.Equal(t, want, got)
	}
	require.NotEqual(t, orders[0], orders[1])
}

func TestPlanStrikesWhatThereIs(t *testing.T) {
	for i, a := range deal(3, 1000) {
		require.Equal(t, i+1, a.number)
		for _, row := range []struct {
			got         []int
			want, there int
		}{{a.victims, a.gateways, 4}, {a.hosts, a.kind.hosts, 16}} {
			n := row.want
			if n == every {
				n = row.there
			}
			require.Len(t, row.got, n, a.name)
			sorted := slices.Sorted(slices.Values(row.got))
			require.Len(t, slices.Compact(sorted), n, "each once")
			for _, at := range row.got {
				require.GreaterOrEqual(t, at, 0)
				require.Less(t, at, row.there)
			}
		}
		require.GreaterOrEqual(t, a.lasts, a.least, a.name)
		require.LessOrEqual(t, a.lasts, a.most, a.name)
		require.Positive(t, a.share)
		require.Less(t, a.share, 1.0)
	}
}

func TestPlanOfFewHosts(t *testing.T) {
	p := newPlan(1, []kind{{name: "many", hosts: 3}}, chaosGateways, 2)
	require.Len(t, p.next().hosts, 2, "there are no more")
}

// No kind leaves the smallest fleet without anybody to take whom it strikes, unless it strikes all.
func TestKindsLeaveAGateway(t *testing.T) {
	for _, k := range kinds {
		require.Less(t, k.gateways, chaosGateways, k.name)
		require.NotNil(t, k.do, k.name)
		require.LessOrEqual(t, k.least, k.most, k.name)
		require.False(t, k.smooth && k.loses, k.name)
	}
}
