// SPDX-License-Identifier: Apache-2.0

package roster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// routed is a route on one line: where, and the holders with their generations.
func routed(r *Roster, now time.Time, m ring.MemberID) string {
	route := r.Route(now, m)
	text := route.Where.String()
	for _, h := range route.Holders {
		text += fmt.Sprintf(" %s/%d", h.ID, h.Generation)
		if h.Expected {
			text += "?"
		}
	}
	return text
}

func TestRoute(t *testing.T) {
	for _, row := range []struct {
		name   string
		events func(f *fleet)
		a, c   string // what the two gateways say
	}{
		{"nobody", func(*fleet) {}, "nobody", "nobody"},
		{"one", func(f *fleet) { f.step("a", Attached{"s", 5}) }, "here a/5", "elsewhere a/5"},
		{"two, in their order", func(f *fleet) {
			f.step("a", Attached{"s", 5})
			f.step("b", Attached{"s", 6})
		}, "elsewhere b/6 a/5", "elsewhere b/6 a/5"},
		{"two, in the other order", func(f *fleet) {
			f.step("b", Attached{"s", 6})
			f.run(time.Second)
			f.step("a", Attached{"s", 5})
		}, "elsewhere b/6 a/5", "elsewhere b/6 a/5"},
		{"the newer one drains", func(f *fleet) {
			f.step("a", Attached{"s", 5})
			f.step("b", Attached{"s", 6})
			f.step("b", StateChanged{placement.Draining})
		}, "here a/5 b/6", "elsewhere a/5 b/6"},
		{"it drains itself", func(f *fleet) {
			f.step("b", Attached{"s", 5})
			f.step("a", Attached{"s", 6})
			f.step("a", StateChanged{placement.Draining})
		}, "here a/6 b/5", "elsewhere b/5 a/6"},
		{"the newer one is suspect", func(f *fleet) {
			f.step("a", Attached{"s", 5})
			f.step("b", Attached{"s", 6})
			f.run(time.Second)
			f.step("c", LinkLost{"b"})
		}, "elsewhere b/6 a/5", "elsewhere a/5 b/6"},
		{"suspect is worse than draining", func(f *fleet) {
			f.step("a", Attached{"s", 5})
			f.step("b", Attached{"s", 6})
			f.step("a", StateChanged{placement.Draining})
			f.run(time.Second)
			f.step("c", LinkLost{"b"})
		}, "elsewhere b/6 a/5", "elsewhere a/5 b/6"},
		{"the only one is suspect", func(f *fleet) {
			f.step("b", Attached{"s", 6})
			f.run(time.Second)
			f.step("c", LinkLost{"b"})
		}, "elsewhere b/6", "elsewhere b/6"},
		{"its stream broke", func(f *fleet) { f.step("a", Held{"s", 5}) }, "here a/5?", "elsewhere a/5?"},
		{"its newer stream broke", func(f *fleet) {
			f.step("a", Attached{"s", 5})
			f.step("b", Held{"s", 6})
		}, "here a/5 b/6?", "elsewhere a/5 b/6?"},
		{"it left", func(f *fleet) {
			f.step("a", Attached{"s", 5})
			f.run(time.Second)
			f.step("a", Left{"s", 5})
		}, "nobody", "nobody"},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := readyFleet(t, "a", "b", "c")
			row.events(f)
			f.run(time.Second)
			require.Equal(t, row.a, routed(f.nodes["a"], f.now, "s"))
			require.Equal(t, row.c, routed(f.nodes["c"], f.now, "s"))
		})
	}
}

func TestRouteIsTheReaders(t *testing.T) {
	f := readyFleet(t, "a", "b")
	f.step("a", Attached{"s", 5})
	first := f.nodes["a"].Route(f.now, "s")
	clear(first.Holders)
	require.Equal(t, "a.1:443", f.nodes["a"].Route(f.now, "s").Holders[0].Endpoint)
}

// Nobody has it, and: I cannot know.
func TestS21(t *testing.T) {
	require.Zero(t, Unknown)
	t.Run("before discovery", func(t *testing.T) {
		f := newFleet(t, "a")
		require.Equal(t, "unknown", routed(f.nodes["a"], f.now, "s"))
		f.step("a", Discovered{Gateways: []ring.GatewayID{"a"}})
		require.Equal(t, "nobody", routed(f.nodes["a"], f.now, "s"))
	})
	t.Run("after the grace", func(t *testing.T) {
		f := newFleet(t, "a")
		require.Equal(t, "unknown", routed(f.nodes["a"], at(defaultGrace-1), "s"))
		require.Equal(t, "nobody", routed(f.nodes["a"], at(defaultGrace), "s"))
	})
	t.Run("before the first snapshot", func(t *testing.T) {
		f := newFleet(t, "a", "b")
		f.step("a", Attached{"s", 5})
		f.step("b", Discovered{Gateways: f.ids()})
		require.Equal(t, "unknown", routed(f.nodes["b"], f.now, "s"))
		f.run(time.Second)
		require.Equal(t, "elsewhere a/5", routed(f.nodes["b"], f.now, "s"))
		require.Equal(t, "nobody", routed(f.nodes["b"], f.now, "t"))
	})
	t.Run("a newcomer that callers need not wait for", func(t *testing.T) {
		f := readyFleet(t, "a", "b")
		f.step("a", Received{From: "z", Message: Heartbeat{Origin: Origin{Gateway: "z", Counts: placement.Counts{Incarnation: 1, Sequence: 7, Attached: 3}}}})
		require.True(t, f.nodes["a"].Ready(f.now).Callers.OK)
		require.Equal(t, "unknown", routed(f.nodes["a"], f.now, "s"))
	})
	t.Run("a gap", func(t *testing.T) {
		f := readyFleet(t, "a", "b")
		f.step("a", Attached{"s", 5})
		f.run(defaultBatch / 2)
		require.Equal(t, "nobody", routed(f.nodes["b"], f.now, "s"), "nobody has told b")
		f.loss = 1
		f.run(defaultBatch)
		f.loss = 0
		f.step("a", Attached{"t", 6})
		f.now = f.now.Add(defaultBatch)
		f.step("a", Tick{})
		f.deliver(0)
		require.Equal(t, "unknown", routed(f.nodes["b"], f.now, "s"))
		f.run(time.Second)
		require.Equal(t, "elsewhere a/5", routed(f.nodes["b"], f.now, "s"))
	})
	t.Run("more is counted than is listed", func(t *testing.T) {
		f := readyFleet(t, "a", "b")
		counts := gateway(t, f.nodes["b"], "a").Counts
		counts.Sequence++
		counts.Attached++
		f.step("b", Hinted{Reports: []placement.Report{{Gateway: "a", Counts: counts}}})
		require.Equal(t, "unknown", routed(f.nodes["b"], f.now, "s"))
	})
	t.Run("stale", func(t *testing.T) {
		f := readyFleet(t, "a", "b")
		f.step("a", Attached{"s", 5})
		f.run(time.Second)
		f.step("b", DiscoveryFailed{})
		require.Equal(t, "unknown", routed(f.nodes["b"], f.now, "t"))
		require.Equal(t, "elsewhere a/5", routed(f.nodes["b"], f.now, "s"), "what is known is known")
	})
}

// Whatever happened, a route names each gateway that lists the member, once.
func TestRouteNamesAllHolders(t *testing.T) {
	for seed := range uint64(200) {
		f := readyFleet(t, "a", "b", "c")
		rng := rand.New(rand.NewPCG(seed, 3))
		for i := range 60 {
			fuzzed(f, byte(rng.Uint32()), placement.Generation(i/3+1))
		}
		for _, r := range f.nodes {
			for c := 'a'; c <= 'h'; c++ {
				m := ring.MemberID(c)
				var listed, named []ring.GatewayID
				for id := range r.Holders(m) {
					listed = append(listed, id)
				}
				route := r.Route(f.now, m)
				for _, h := range route.Holders {
					named = append(named, h.ID)
				}
				slices.Sort(listed)
				sorted := slices.Sorted(slices.Values(named))
				require.Equal(t, listed, sorted, "seed %d", seed)
				switch {
				case len(named) == 0:
					require.Contains(t, []Where{Unknown, Nobody}, route.Where)
				case named[0] == r.Self():
					require.Equal(t, Here, route.Where)
				default:
					require.Equal(t, Elsewhere, route.Where)
				}
			}
		}
	}
}
