// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
)

func TestBalanceS3(t *testing.T) {
	for _, c := range []struct {
		loads []int
		want  placement.Balance
		even  bool
		text  string
	}{
		{[]int{10, 0, 10, 10}, placement.Balance{Gateways: 4, Total: 30, Most: 10, Emptiest: "B", Skew: 4.0 / 3, Moves: 7}, false,
			"skewed: 30 supervisors on 4 gateways, 0 to 10 each, max/mean 1.33, emptiest B; 7 moves would make it even"},
		{[]int{1, 1, 1, 0}, placement.Balance{Gateways: 4, Total: 3, Most: 1, Emptiest: "D", Skew: 4.0 / 3}, true,
			"even: 3 supervisors on 4 gateways, 0 to 1 each, max/mean 1.33, emptiest D"},
		{[]int{}, placement.Balance{Skew: 1}, true, "even: 0 supervisors on 0 gateways"},
		{[]int{0, 0}, placement.Balance{Gateways: 2, Emptiest: "B", Skew: 1}, true, "even: 0 supervisors on 2 gateways, 0 to 0 each, max/mean 1.00, emptiest B"},
		{[]int{1}, placement.Balance{Gateways: 1, Total: 1, Most: 1, Fewest: 1, Emptiest: "A", Skew: 1}, true,
			"even: 1 supervisor on 1 gateway, 1 to 1 each, max/mean 1.00, emptiest A"},
		{[]int{2, 0}, placement.Balance{Gateways: 2, Total: 2, Most: 2, Emptiest: "B", Skew: 2, Moves: 1}, false,
			"skewed: 2 supervisors on 2 gateways, 0 to 2 each, max/mean 2.00, emptiest B; 1 move would make it even"},
		{[]int{15, 15, 0}, placement.Balance{Gateways: 3, Total: 30, Most: 15, Emptiest: "C", Skew: 1.5, Moves: 10}, false,
			"skewed: 30 supervisors on 3 gateways, 0 to 15 each, max/mean 1.50, emptiest C; 10 moves would make it even"},
	} {
		b := view(t, gateways(c.loads...)).Balance()
		require.Equal(t, c.want, b)
		require.Equal(t, c.even, b.Even())
		require.Equal(t, c.text, b.String())
		require.Equal(t, c.even, b.Moves == 0)
	}
	all := gateways(5, 1, 1)
	all[0].State = placement.Draining
	require.True(t, view(t, all).Balance().Even(), "only placeable ones count")
}

func TestBalanceJSON(t *testing.T) {
	b := view(t, gateways(10, 0, 10, 10)).Balance()
	text, err := json.Marshal(b)
	require.NoError(t, err)
	require.JSONEq(t, `{"gateways": 4, "total": 30, "most": 10, "fewest": 0, "emptiest": "B", "skew": 1.3333333333333333, "moves": 7}`, string(text))
	var back placement.Balance
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, b, back)
}

// As many moves as it says make it even, one from the fullest to the emptiest at a
// time, and one fewer does not.
func TestBalanceMovesAreTheFewest(t *testing.T) {
	for seed := range uint64(500) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		loads := make([]int, 1+rnd.IntN(6))
		for i := range loads {
			loads[i] = rnd.IntN(8)
		}
		moves := view(t, gateways(loads...)).Balance().Moves
		for n := 0; ; n++ {
			most, fewest := 0, 0
			for i, k := range loads {
				if k > loads[most] {
					most = i
				}
				if k < loads[fewest] {
					fewest = i
				}
			}
			if loads[most]-loads[fewest] <= 1 {
				require.Equal(t, n, moves, "seed %d", seed)
				break
			}
			loads[most]--
			loads[fewest]++
		}
	}
}
