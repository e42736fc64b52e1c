// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

func TestBookKeepsPlaces(t *testing.T) {
	now := time.Unix(100, 0)
	all := gateways(0, 0, 0)
	b := placement.NewBook(placement.Picture{Self: "A", Ring: circle(t, all), Gateways: all})

	var wait sync.WaitGroup
	for w := range 4 { // none of them knows of the others
		wait.Go(func() {
			for i := range 25 {
				m := ring.MemberID(fmt.Sprintf("m%d-%d", w, i))
				d := b.Reserve(placement.Request{Member: m}, now.Add(time.Duration(1+i)*time.Second))
				if again := b.Reserve(placement.Request{Member: m}, now.Add(time.Duration(1+i)*time.Second)); again.Gateway != d.Gateway {
					// Its place may have been the one too many by now.
					if again.Reason == placement.Preferred {
						t.Errorf("%s had a place at %s and has it at %s", m, d.Gateway, again.Gateway)
					}
				}
			}
		})
	}
	wait.Wait()
	loads := func() []int {
		var n []int
		for g := range b.View().Gateways() {
			n = append(n, g.Promised+g.Load())
		}
		slices.Sort(n)
		return n
	}
	require.Equal(t, []int{33, 33, 34}, loads(), "all of them reserved at once, and nobody is one too many")
	require.Equal(t, 100, b.View().Live())

	require.True(t, b.End("m0-0"))
	require.False(t, b.End("m0-0"))
	require.Equal(t, 99, b.View().Live())
	require.Zero(t, b.Expire(now))
	require.Equal(t, 3, b.Expire(now.Add(time.Second)))
	require.Equal(t, 96, b.Expire(now.Add(time.Hour)))
	require.Equal(t, []int{0, 0, 0}, loads())

	b.SetLive(9)
	b.Set(placement.Gateway{ID: "A", Endpoint: "A:1", State: placement.Ready, Known: true, Counts: placement.Counts{Attached: 9}})
	require.NotEqual(t, ring.GatewayID("A"), b.Reserve(placement.Request{Member: "m"}, now).Gateway)
	require.Equal(t, 10, b.View().Live())
	var nobody placement.Picture
	require.Equal(t, placement.Nowhere, placement.NewBook(nobody).Reserve(placement.Request{Member: "m"}, now).Reason)
}

// Who is placed again has a place already: it does not stand in its own way, whether it is counted
// somewhere or not.
func TestBookPlacesAgain(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		loads := make([]int, 2+rnd.IntN(4))
		for i := range loads {
			loads[i] = rnd.IntN(4)
		}
		all := gateways(loads...)
		live := 0
		for _, n := range loads {
			live += n
		}
		b := placement.NewBook(placement.Picture{Self: "A", Ring: circle(t, all), Gateways: all, Live: live, Rivals: 1 + rnd.IntN(3)})
		for i := range 30 {
			q := placement.Request{Member: ring.MemberID(fmt.Sprint("m", i))}
			if home := rnd.IntN(len(all)); rnd.IntN(2) == 0 && loads[home] > 0 {
				q.Home = all[home].ID
			}
			first := b.Reserve(q, time.Unix(1, 0))
			shown := b.View()
			for range 3 {
				again := b.Reserve(q, time.Unix(1, 0))
				require.Equal(t, first.Gateway, again.Gateway, "seed %d: %+v, then %+v", seed, first, again)
				require.Equal(t, first.Cap, again.Cap, "it counts among the live once")
			}
			require.Equal(t, slices.Collect(shown.Gateways()), slices.Collect(b.View().Gateways()), "and at its gateway once")
		}
	}

	// It was promised a place as a newcomer, and by now it is counted there.
	all := gateways(0, 2)
	b := placement.NewBook(placement.Picture{Self: "A", Ring: circle(t, all), Gateways: all, Live: 2})
	m := ownedBy(t, "A", all)
	require.Equal(t, ring.GatewayID("A"), b.Reserve(placement.Request{Member: m}, time.Unix(1, 0)).Gateway)
	b.Set(gateways(1, 2)[0])
	b.SetLive(3)
	d := b.Reserve(placement.Request{Member: m, Home: "A"}, time.Unix(1, 0))
	require.Equal(t, ring.GatewayID("A"), d.Gateway)
	require.Equal(t, 2, d.Cap)
	require.Zero(t, d.Load)
	require.Equal(t, 3, b.View().Live())
}

func ExampleBook() {
	circle, err := ring.New(ring.Config{}, "gw-1", "gw-2")
	if err != nil {
		fmt.Println(err)
		return
	}
	book := placement.NewBook(placement.Picture{Self: "gw-1", Ring: circle, Live: 2, Gateways: []placement.Gateway{
		{ID: "gw-1", State: placement.Ready, Known: true, Counts: placement.Counts{Attached: 2}},
		{ID: "gw-2", State: placement.Ready, Known: true, Endpoint: "10.0.0.2:7000"},
	}})
	now := time.Unix(0, 0)
	for _, m := range []ring.MemberID{"edge-1", "edge-2", "edge-3"} {
		d := book.Reserve(placement.Request{Member: m}, now.Add(10*time.Second))
		fmt.Println(m, d.Gateway, d.Load+1, "of", d.Cap)
	}
	fmt.Println("expired:", book.Expire(now.Add(time.Minute)))
	// Output:
	// edge-1 gw-2 1 of 2
	// edge-2 gw-2 2 of 2
	// edge-3 gw-1 3 of 3
	// expired: 3
}
