// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// gateways makes ready gateways A, B, C, ... with these loads.
func gateways(loads ...int) []placement.Gateway {
	all := make([]placement.Gateway, len(loads))
	for i, n := range loads {
		id := ring.GatewayID(rune('A' + i))
		all[i] = placement.Gateway{
			ID: id, Endpoint: string(id) + ":1", State: placement.Ready, Known: true,
			Counts: placement.Counts{Incarnation: placement.Incarnation(i + 1), Sequence: 1, Attached: n},
		}
	}
	return all
}

var circles sync.Map // rings by their gateways: building one costs milliseconds

// circle is the ring of these gateways.
func circle(t testing.TB, all []placement.Gateway) *ring.Ring {
	t.Helper()
	ids := make([]ring.GatewayID, len(all))
	for i, g := range all {
		ids[i] = g.ID
	}
	slices.Sort(ids)
	key := fmt.Sprint(ids)
	if r, ok := circles.Load(key); ok {
		return r.(*ring.Ring)
	}
	r, err := ring.New(ring.Config{}, ids...)
	require.NoError(t, err)
	circles.Store(key, r)
	return r
}

// view freezes them; live is the sum of the loads.
func view(t testing.TB, all []placement.Gateway, change ...func(*placement.Picture)) *placement.View {
	t.Helper()
	p := placement.Picture{Self: "A", Gateways: all, Ring: circle(t, all)}
	for _, g := range all {
		p.Live += g.Load()
	}
	for _, f := range change {
		f(&p)
	}
	return placement.NewView(p)
}

// ownedBy finds a member whose owner is g.
func ownedBy(t testing.TB, g ring.GatewayID, all []placement.Gateway) ring.MemberID {
	t.Helper()
	r := circle(t, all)
	for i := range 10_000 {
		m := ring.MemberID(fmt.Sprint("m", i))
		if owner, _ := r.Owner(m); owner == g {
			return m
		}
	}
	t.Fatalf("no member is owned by %s", g)
	return ""
}

func TestPlace(t *testing.T) {
	set := func(i int, f func(*placement.Gateway)) func([]placement.Gateway) {
		return func(all []placement.Gateway) { f(&all[i]) }
	}
	for _, c := range []struct {
		name   string
		loads  []int
		change []func([]placement.Gateway)
		owner  ring.GatewayID // of the member
		home   ring.GatewayID
		prefer ring.GatewayID
		avoid  []ring.GatewayID
		want   ring.GatewayID // empty: any
		reason placement.Reason
		cap    int
	}{
		{name: "S1: everybody at 10, a 31st is placed under a cap of 11", loads: []int{10, 10, 10}, owner: "B", want: "B", reason: placement.Owner, cap: 11},
		{name: "the owner is full, the next has room", loads: []int{5, 9, 4}, owner: "B", want: "C", reason: placement.Overflow, cap: 7},
		{name: "all are full after a stale count: the owner", loads: []int{4, 4, 4}, home: "?", owner: "C", want: "C", reason: placement.Full, cap: 4},
		{name: "below the share goes before below the cap", loads: []int{4, 4, 2}, owner: "A", want: "C", reason: placement.Overflow, cap: 4},
		{name: "its home has room", loads: []int{4, 4, 4}, owner: "A", home: "B", want: "B", reason: placement.Preferred, cap: 4},
		{name: "its home has too many", loads: []int{15, 15, 0}, owner: "A", home: "A", want: "C", reason: placement.Overflow, cap: 10},
		{name: "W4: the next one goes to the gateway that joined", loads: []int{15, 15, 0}, owner: "B", want: "C", reason: placement.Overflow, cap: 11},
		{name: "S14: a dead gateway is avoided, and carries none of the load", loads: []int{10, 10, 10}, owner: "A", home: "A", avoid: []ring.GatewayID{"A"}, reason: placement.Overflow, cap: 15},
		{name: "a preferred gateway below the share", loads: []int{5, 4, 0}, owner: "B", home: "A", prefer: "C", avoid: []ring.GatewayID{"A"}, want: "C", reason: placement.Preferred, cap: 5},
		{name: "suspect", loads: []int{0, 0}, change: []func([]placement.Gateway){set(0, func(g *placement.Gateway) { g.Suspect = true })}, owner: "A", want: "B", reason: placement.Overflow, cap: 1},
		{name: "draining", loads: []int{0, 0}, change: []func([]placement.Gateway){set(0, func(g *placement.Gateway) { g.State = placement.Draining })}, owner: "A", want: "B", reason: placement.Overflow, cap: 1},
		{name: "unknown is not zero", loads: []int{3, 0}, change: []func([]placement.Gateway){set(1, func(g *placement.Gateway) { g.Known = false })}, owner: "B", want: "A", reason: placement.Overflow, cap: 4},
		{name: "S33: no endpoint, never a target", loads: []int{3, 0}, change: []func([]placement.Gateway){set(1, func(g *placement.Gateway) { g.Endpoint = "" })}, owner: "B", want: "A", reason: placement.Full, cap: 2},
		{name: "the one who looks needs no endpoint", loads: []int{0, 3}, change: []func([]placement.Gateway){set(0, func(g *placement.Gateway) { g.Endpoint = "" })}, owner: "B", want: "A", reason: placement.Overflow, cap: 2},
		{name: "only placeable gateways divide, everybody who is live counts", loads: []int{2, 2, 2}, change: []func([]placement.Gateway){set(2, func(g *placement.Gateway) { g.State = placement.Draining })}, owner: "A", want: "A", reason: placement.Owner, cap: 4},
		{name: "S9: nobody at all", loads: nil, reason: placement.Nowhere},
		{name: "S8: only one, and it is to be avoided", loads: []int{0}, owner: "A", avoid: []ring.GatewayID{"A", "A", "stranger"}, reason: placement.Nowhere},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := gateways(c.loads...)
			member := ring.MemberID("m")
			if c.owner != "" {
				member = ownedBy(t, c.owner, all)
			}
			for _, f := range c.change {
				f(all)
			}
			v := view(t, all)
			r := placement.Request{Member: member, Home: c.home, Prefer: c.prefer, Avoid: c.avoid}
			d := v.Place(r)
			require.Equal(t, c.reason, d.Reason, "%+v", d)
			require.Equal(t, c.cap, d.Cap)
			if c.want != "" {
				require.Equal(t, c.want, d.Gateway)
			}
			require.NotContains(t, c.avoid, d.Gateway)
			require.Equal(t, c.reason == placement.Nowhere, d.Gateway == "")
			require.Equal(t, d, v.Explain(r).Decision)
		})
	}
}

// oracle is the rule once more, with nothing clever in it.
func oracle(all []placement.Gateway, order []ring.GatewayID, r placement.Request, self ring.GatewayID, live int) ring.GatewayID {
	load := map[ring.GatewayID]int{}
	var targets []ring.GatewayID
	denominator := 0
	for _, g := range all {
		if g.State != placement.Ready || g.Suspect || !g.Known || slices.Contains(r.Avoid, g.ID) {
			continue
		}
		denominator++
		load[g.ID] = g.Attached + g.Held + g.Reserved
		if g.ID == r.Home {
			load[g.ID]--
		}
		if g.Endpoint != "" || g.ID == self {
			targets = append(targets, g.ID)
		}
	}
	if len(targets) == 0 {
		return ""
	}
	if r.Home == "" {
		live++
	}
	first := r.Prefer
	if first == "" {
		first = r.Home
	}
	walk := append([]ring.GatewayID{first}, order...)
	for _, limit := range []int{live / denominator, (live + denominator - 1) / denominator} {
		for _, id := range walk {
			if slices.Contains(targets, id) && load[id] < limit {
				return id
			}
		}
	}
	for _, id := range order {
		if slices.Contains(targets, id) {
			return id
		}
	}
	return ""
}

func TestPlaceAgainstOracle(t *testing.T) {
	for seed := range uint64(3000) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		loads := make([]int, 1+rnd.IntN(8))
		for i := range loads {
			loads[i] = rnd.IntN(6)
		}
		all := gateways(loads...)
		live := 0
		for i := range all {
			all[i].Held, all[i].Reserved = rnd.IntN(2), rnd.IntN(2)
			live += all[i].Load()
			all[i].State = placement.State(max(1, rnd.IntN(6)-3))
			all[i].Suspect = rnd.IntN(6) == 0
			all[i].Known = rnd.IntN(8) != 0
			if rnd.IntN(6) == 0 {
				all[i].Endpoint = ""
			}
		}
		pick := func() ring.GatewayID { return all[rnd.IntN(len(all))].ID }
		r := placement.Request{Member: ring.MemberID(fmt.Sprint(rnd.Uint64()))}
		if rnd.IntN(2) == 0 {
			if g := all[rnd.IntN(len(all))]; g.Load() > 0 {
				r.Home = g.ID
			}
		}
		if rnd.IntN(3) == 0 {
			r.Avoid = append(r.Avoid, pick())
		}
		if rnd.IntN(3) == 0 {
			r.Prefer = pick()
		}
		v := view(t, all)
		want := oracle(all, slices.Collect(circle(t, all).Clockwise(r.Member)), r, "A", live)
		require.Equal(t, want, v.Place(r).Gateway, "seed %d: %s", seed, v.Explain(r))

		rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		require.Equal(t, v.Place(r), view(t, all).Place(r), "seed %d: order of input", seed)
	}
}

// Arrivals, departures, joins and hand-overs in any order, with fresh counts:
// once everybody could have been placed anew the spread is at most 1, and a hand-over in a rolling restart
// moves everybody once.
func TestSpreadStaysBelowTwo(t *testing.T) {
	for seed := range uint64(500) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		all := gateways(make([]int, 2+rnd.IntN(6))...)
		for i := range rnd.IntN(60) {
			d := view(t, all).Place(placement.Request{Member: ring.MemberID(fmt.Sprint("s", i))})
			for j := range all {
				if all[j].ID == d.Gateway {
					all[j].Attached++
				}
			}
			require.True(t, view(t, all).Balance().Even(), "seed %d: %v", seed, all)
		}
		// A rolling restart with surge: one joins, one hands over.
		moves := map[string]int{}
		served := map[ring.GatewayID][]string{}
		n := 0
		for i := range all {
			for range all[i].Attached {
				served[all[i].ID] = append(served[all[i].ID], fmt.Sprint("s", n))
				n++
			}
		}
		before := len(all)
		for i := range before {
			joined := gateways(0)[0]
			joined.ID = ring.GatewayID(fmt.Sprint("new-", i))
			joined.Incarnation = placement.Incarnation(100 + i)
			all = append(all, joined)
			all[i].State = placement.Draining
			for _, m := range served[all[i].ID] {
				d := view(t, all).Place(placement.Request{
					Member: ring.MemberID(m), Home: all[i].ID, Prefer: joined.ID, Avoid: []ring.GatewayID{all[i].ID},
				})
				moves[m]++
				for j := range all {
					if all[j].ID == d.Gateway {
						all[j].Attached++
						served[d.Gateway] = append(served[d.Gateway], m)
					}
				}
				all[i].Attached--
			}
			require.True(t, view(t, all).Balance().Even(), "seed %d, after stop %d: %v", seed, i, all)
		}
		for m, k := range moves {
			require.Equal(t, 1, k, "seed %d: %s", seed, m)
		}
	}
}

func TestOneByOneS8(t *testing.T) {
	for _, c := range []struct {
		gateways, supervisors int
		want                  []int
	}{{2, 5, []int{2, 3}}, {7, 3, []int{0, 0, 0, 0, 1, 1, 1}}, {3, 30, []int{10, 10, 10}}} {
		all := gateways(make([]int, c.gateways)...)
		for i := range c.supervisors {
			d := view(t, all).Place(placement.Request{Member: ring.MemberID(fmt.Sprint("s", i))})
			all[d.Gateway[0]-'A'].Attached++
		}
		got := make([]int, 0, len(all))
		for _, g := range all {
			got = append(got, g.Attached)
		}
		slices.Sort(got)
		require.Equal(t, c.want, got)
	}
}

func TestPromisesWeighAsOftenAsThereAreRivals(t *testing.T) {
	all := gateways(0, 0, 3)
	all[0].Promised = 1
	m := ownedBy(t, "A", all)
	alone := view(t, all, func(p *placement.Picture) { p.Live = 5 })
	require.Equal(t, ring.GatewayID("A"), alone.Place(placement.Request{Member: m}).Gateway)
	three := view(t, all, func(p *placement.Picture) { p.Live = 5; p.Rivals = 3 })
	require.Equal(t, ring.GatewayID("B"), three.Place(placement.Request{Member: m}).Gateway, "one promise fills A if two others promise as much")

	home := three.Explain(placement.Request{Member: m, Home: "A", Promised: true})
	require.Equal(t, ring.GatewayID("A"), home.Decision.Gateway, "its own promise is no obstacle: %s", home)
	require.Zero(t, home.Decision.Load)
}

func TestUnlistedGatewayIsUnknownAndUnringedComesLast(t *testing.T) {
	all := gateways(1, 0)
	rg, err := ring.New(ring.Config{}, "A", "Z")
	require.NoError(t, err)
	v := placement.NewView(placement.Picture{Self: "A", Ring: rg, Gateways: all, Live: 1})
	require.Equal(t, 2, v.Placeable())
	for i := range 100 {
		require.Equal(t, ring.GatewayID("B"), v.Place(placement.Request{Member: ring.MemberID(fmt.Sprint(i))}).Gateway)
	}
	walk := v.Explain(placement.Request{Member: "m"}).Walk
	require.Equal(t, ring.GatewayID("B"), walk[len(walk)-1].Gateway.ID)
	require.Len(t, walk, 3)
}

func TestReasonsHaveTheirOwnText(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range placement.Reasons() {
		require.NotEmpty(t, r.String())
		require.NotEqual(t, "unknown", r.String())
		require.False(t, seen[r.String()])
		seen[r.String()] = true
	}
	require.Equal(t, "unknown", placement.Reason(200).String())
	require.Equal(t, "state(9)", placement.State(9).String())
	for _, s := range []placement.State{placement.Starting, placement.Ready, placement.Draining} {
		require.Equal(t, s, placement.ParseState(s.String()))
	}
	require.Equal(t, placement.Starting, placement.ParseState("from a newer peer"))
}
