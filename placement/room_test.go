// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/ring"
)

// The sets of room and the plain walk decide the same, whatever has happened to the view.
func TestSetsAgreeWithTheWalk(t *testing.T) {
	circles := map[string]*ring.Ring{}
	circle := func(slots, n int) *ring.Ring {
		key := fmt.Sprint(slots, n)
		if circles[key] == nil {
			ids := make([]ring.GatewayID, n)
			for i := range ids {
				ids[i] = ring.GatewayID(fmt.Sprint("gw-", i))
			}
			r, err := ring.New(ring.Config{Slots: slots}, ids...)
			require.NoError(t, err)
			circles[key] = r
		}
		return circles[key]
	}
	simple := 0
	for seed := range uint64(400) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		slots := []int{0, 61, 4099, 7}[rnd.IntN(4)]
		n := []int{0, 1, 2, 3, 8, 40, 90}[rnd.IntN(7)]
		r := circle(slots, n)
		known := n + rnd.IntN(3) // some are not on the ring
		id := func() ring.GatewayID { return ring.GatewayID(fmt.Sprint("gw-", rnd.IntN(known+1))) }
		mean := rnd.IntN(4) * rnd.IntN(10)
		sequence := uint64(0)
		gateway := func() Gateway {
			sequence++
			g := Gateway{ID: id(), Endpoint: "somewhere", State: Ready, Known: rnd.IntN(12) != 0, Suspect: rnd.IntN(12) == 0, Counts: Counts{
				Incarnation: 1, Sequence: sequence, Attached: mean + rnd.IntN(5) - 2, Held: rnd.IntN(2) * rnd.IntN(2), // below 0, too
			}}
			if rnd.IntN(10) == 0 {
				g.State = Draining
			}
			if rnd.IntN(10) == 0 {
				g.Endpoint = ""
			}
			return g
		}
		first := []Gateway{{State: Ready, Known: true}} // without an ID
		for range rnd.IntN(2) * 2 * known {
			first = append(first, gateway()) // some twice
		}
		v := NewView(Picture{Self: "gw-0", Ring: r, Asking: rnd.IntN(2) == 0, Live: mean * n, Gateways: first})
		var l Ledger
		l.Bind(v)
		for step := range 120 {
			switch rnd.IntN(12) {
			case 0:
				v.SetLive(v.Live() + rnd.IntN(2*n+3) - n - 1)
			case 1:
				v.SetRivals(rnd.IntN(4))
			case 2, 3:
				if g := id(); v.position(g) >= 0 {
					l.Promise(ring.MemberID(fmt.Sprint("p", rnd.IntN(9))), g, rnd.IntN(2) == 0, time.Time{})
				}
			case 4:
				l.Settle(ring.MemberID(fmt.Sprint("p", rnd.IntN(9))))
			case 5:
				w := v.Clone()
				before := fmt.Sprintf("%+v", v.gateways)
				w.SetLive(w.Live() + 1)
				w.Set(gateway())
				require.Equal(t, before, fmt.Sprintf("%+v", v.gateways), "a clone is its own")
			case 6:
				if rnd.IntN(4) == 0 { // as when the ring changes
					w := NewView(Picture{Self: v.self, Ring: r, Asking: v.asking, Live: v.live, Rivals: v.rivals, Gateways: bare(v)})
					l.Bind(w)
					require.Equal(t, v.gateways, w.gateways, "seed %d, step %d", seed, step)
					v = w
				}
			default:
				if known > 0 {
					v.Set(gateway())
				}
				v.Set(Gateway{Endpoint: "somewhere", State: Ready, Known: true})
			}
			q := Request{Member: ring.MemberID(fmt.Sprint("m", rnd.Uint64()))}
			if rnd.IntN(2) == 0 {
				q.Home, q.Held, q.Promised = id(), rnd.IntN(2) == 0, rnd.IntN(4) == 0
			}
			if rnd.IntN(4) == 0 {
				q.Prefer = id()
			}
			for range rnd.IntN(2) * rnd.IntN(3) {
				q.Avoid = append(q.Avoid, id())
			}
			for i, g := range v.gateways {
				require.Equal(t, i, v.position(g.ID), "each once, and none without an ID")
			}
			got := v.Place(q)
			if q.Prefer == "" {
				q.Prefer = q.Home
			}
			prefer := v.position(q.Prefer)
			at, reason, limit, terms := v.walked(&q, prefer)
			var want Decision
			v.write(&want, &q, at, reason, limit, terms)
			if at >= 0 {
				g := &v.gateways[at]
				require.Equal(t, Decision{Gateway: g.ID, Endpoint: g.Endpoint, Incarnation: g.Incarnation, Reason: reason,
					Cap: terms.cap, Share: terms.share, Limit: limit, Load: v.load(&q, g)}, want)
			}
			require.Equal(t, want, got, "seed %d, step %d: %+v of %+v", seed, step, q, v.gateways)
			if v.simple(&q, prefer) && got.Gateway != "" {
				simple++
			}
		}
	}
	require.Greater(t, simple, 10_000, "most were answered by the sets")
}

// bare returns the view's gateways without what was promised to them.
func bare(v *View) []Gateway {
	all := make([]Gateway, len(v.gateways))
	for i, g := range v.gateways {
		g.Promised = 0
		all[i] = g
	}
	return all
}
