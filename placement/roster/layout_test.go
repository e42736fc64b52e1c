// SPDX-License-Identifier: Apache-2.0

package roster

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

func disagreeing(r *Roster) []ring.GatewayID { return slices.Collect(r.Disagreeing()) }

// rings makes a fleet whose gateways have these rings. One that is not named has the default.
func rings(t *testing.T, of map[ring.GatewayID]ring.Config, ids ...ring.GatewayID) *fleet {
	f := newFleet(t)
	f.change = func(c *Config) { c.Ring = of[c.Gateway] }
	for _, id := range ids {
		f.start(id, 1)
	}
	return f
}

func TestDisagreeing(t *testing.T) {
	for _, c := range []struct {
		name string
		b    ring.Config
		want bool
	}{
		{"alike", ring.Config{}, false},
		{"the defaults by name", ring.Config{Slots: ring.DefaultSlots, Load: ring.DefaultLoad}, false},
		{"other slots", ring.Config{Slots: 4093}, true},
		{"another load", ring.Config{Load: 1.1}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := rings(t, map[ring.GatewayID]ring.Config{"b": c.b}, "a", "b")
			f.run(time.Second)
			for id, other := range map[ring.GatewayID]ring.GatewayID{"a": "b", "b": "a"} {
				r := f.nodes[id]
				require.Equal(t, c.want, r.Ring().Fingerprint() != f.nodes[other].Ring().Fingerprint(), "or the test is wrong")
				if !c.want {
					require.Empty(t, disagreeing(r))
					require.Empty(t, took[Disagrees](f, id))
					continue
				}
				require.Equal(t, []ring.GatewayID{other}, disagreeing(r))
				require.Equal(t, []Disagrees{{other}}, took[Disagrees](f, id))
			}
			f.run(time.Minute)
			require.Empty(t, took[Disagrees](f, "a"), "it is said once")
		})
	}
}

// Who knows other gateways has another ring, and is right for all that.
func TestOtherMembersAreNoDisagreement(t *testing.T) {
	f := rings(t, nil, "a", "b")
	f.run(time.Second)
	f.step("a", Received{Message: Heartbeat{
		Origin: Origin{Gateway: "c", Counts: placement.Counts{Incarnation: 1}},
		Layout: f.nodes["a"].self.layout,
	}})
	f.run(defaultHeartbeat)
	require.NotEqual(t, f.nodes["a"].Ring().Fingerprint(), f.nodes["b"].Ring().Fingerprint())
	for _, id := range f.ids() {
		require.Empty(t, disagreeing(f.nodes[id]))
		require.Empty(t, took[Disagrees](f, id))
	}
}

// A gateway of an earlier version says nothing of its ring, and nothing is made of that.
func TestEarlierVersionDoesNotDisagree(t *testing.T) {
	f := rings(t, map[ring.GatewayID]ring.Config{"b": {Slots: 4093}}, "a")
	beat := func(inc placement.Incarnation, layout uint64) {
		b := Append(nil, Heartbeat{Origin: Origin{Gateway: "b", Counts: placement.Counts{Incarnation: inc}}, Layout: layout})
		f.hand(envelope{from: "b", to: "a", bytes: b})
	}
	a := f.nodes["a"]
	beat(1, 0)
	require.Empty(t, disagreeing(a))
	require.Empty(t, took[Disagrees](f, "a"))

	// It is replaced by one that says, and then by an earlier one again.
	beat(2, a.self.layout+1)
	require.Equal(t, []ring.GatewayID{"b"}, disagreeing(a))
	require.Equal(t, []Disagrees{{"b"}}, took[Disagrees](f, "a"))
	beat(2, 0)
	require.Equal(t, []ring.GatewayID{"b"}, disagreeing(a), "a process does not take its word back")
	beat(3, 0)
	require.Empty(t, disagreeing(a))
	require.Empty(t, took[Disagrees](f, "a"))
}

func TestDisagreementEnds(t *testing.T) {
	of := map[ring.GatewayID]ring.Config{"b": {Slots: 4093}}
	for name, end := range map[string]func(*fleet){
		"it starts with the right ring": func(f *fleet) {
			of["b"] = ring.Config{}
			f.start("b", 2)
			f.run(time.Second)
			require.Len(f.t, known(f.nodes["a"]), 3)
		},
		"it leaves": func(f *fleet) {
			delete(f.nodes, "b")
			f.step("a", Departed{Gateway: "b"})
		},
		"it is purged": func(f *fleet) {
			delete(f.nodes, "b")
			f.run(defaultTimeToLive + time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			of["b"] = ring.Config{Slots: 4093}
			f := rings(t, of, "a", "b", "c")
			before := f.nodes["a"].Version()
			f.run(time.Second)
			a := f.nodes["a"]
			require.Equal(t, []ring.GatewayID{"b"}, disagreeing(a))
			require.Greater(t, a.Version(), before)
			require.Equal(t, []Disagrees{{"b"}}, took[Disagrees](f, "a"))

			before = a.Version()
			end(f)
			require.Empty(t, disagreeing(a))
			require.Greater(t, a.Version(), before)
			require.Empty(t, took[Disagrees](f, "a"))

			of["b"] = ring.Config{Slots: 4093}
			f.start("b", 3)
			f.run(time.Second)
			require.Equal(t, []Disagrees{{"b"}}, took[Disagrees](f, "a"), "a new process with the old fault is a new fault")
		})
	}
}

// The version moves when what is read does, and not before.
func TestVersionOfADisagreement(t *testing.T) {
	a := rings(t, nil, "a").nodes["a"]
	origin := Origin{Gateway: "b", Counts: placement.Counts{Incarnation: 1}}
	a.Step(epoch, Received{Message: Heartbeat{Origin: origin}})
	before := a.Version()
	require.Empty(t, a.Step(epoch, Received{Message: Heartbeat{Origin: origin}}))
	require.Equal(t, before, a.Version())
	require.Equal(t, []Action{Disagrees{"b"}}, a.Step(epoch, Received{Message: Heartbeat{Origin: origin, Layout: 1}}))
	require.Greater(t, a.Version(), before)
	before = a.Version()
	require.Empty(t, a.Step(epoch, Received{Message: Heartbeat{Origin: origin, Layout: 1}}))
	require.Equal(t, before, a.Version())
}

func TestDisagreeingIsInOrderAndMayBeLeft(t *testing.T) {
	a := rings(t, nil, "a").nodes["a"]
	for _, id := range []ring.GatewayID{"d", "b", "e", "c"} {
		layout := a.self.layout
		if id != "c" {
			layout++
		}
		a.Step(epoch, Received{Message: Heartbeat{Origin: Origin{Gateway: id, Counts: placement.Counts{Incarnation: 1}}, Layout: layout}})
	}
	require.Equal(t, []ring.GatewayID{"b", "d", "e"}, disagreeing(a))
	for id := range a.Disagreeing() {
		require.Equal(t, ring.GatewayID("b"), id)
		break
	}
	require.Equal(t, []ring.GatewayID{"b", "d", "e"}, disagreeing(a))
}

// The number is compared with that of other builds: if it changes, every gateway of
// an earlier build is reported. It does with [ring.Format], and if the hashing library computes another table.
func TestLayoutIsAPromise(t *testing.T) {
	layout, err := layoutOf(ring.Config{})
	require.NoError(t, err)
	require.Equal(t, "dd8ef82673f33d9d", fmt.Sprintf("%016x", layout))
}

// Every Config that is valid has a layout, also one with fewer slots than the reference has gateways.
func TestEveryConfigHasALayout(t *testing.T) {
	seen := make(map[uint64]ring.Config)
	for _, cfg := range []ring.Config{{Slots: 2}, {Slots: 3}, {Slots: 7}, {Slots: 11}, {}, {Load: 1.0001}, {Load: 1e300}, {Slots: ring.MaxSlots}} {
		r, err := New(epoch, Config{Gateway: "a", Incarnation: 1, Ring: cfg})
		require.NoError(t, err)
		require.NotZero(t, r.self.layout)
		require.NotContains(t, seen, r.self.layout, "%v", cfg)
		seen[r.self.layout] = cfg
	}
}
