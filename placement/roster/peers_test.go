// SPDX-License-Identifier: Apache-2.0

package roster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

func known(r *Roster) []ring.GatewayID {
	var ids []ring.GatewayID
	for g := range r.Gateways() {
		ids = append(ids, g.ID)
	}
	return ids
}

func TestPurge(t *testing.T) {
	f := newFleet(t, "a", "b", "c")
	f.step("b", Attached{"s", 1})
	f.run(time.Second)
	b := f.nodes["b"]
	lastHeard := f.nodes["a"].peer("b").heardAt
	delete(f.nodes, "b")
	f.run(lastHeard.Add(defaultTimeToLive).Sub(f.now))
	require.Len(t, known(f.nodes["a"]), 3)
	require.Equal(t, 1, f.nodes["a"].Live())
	f.run(time.Millisecond)
	require.Equal(t, []ring.GatewayID{"a", "c"}, known(f.nodes["a"]), "on time")
	require.Zero(t, f.nodes["a"].Live())
	require.Equal(t, "nowhere", home(f.nodes["a"], "s"))
	require.False(t, f.nodes["a"].Stale(f.now))
	audit(t, f.nodes["a"])

	// It was cut off, not dead: it comes back under the same incarnation.
	f.nodes["b"] = b
	f.run(defaultHeartbeat + time.Second)
	require.Equal(t, []ring.GatewayID{"a", "b", "c"}, known(f.nodes["a"]))
	require.Equal(t, "b gen 1", home(f.nodes["a"], "s"))
}

// A gateway that comes back is heard before it can be reached: what was asked of it until then is
// lost, and is not waited for.
func TestLinkUpAsksForWhatIsLacking(t *testing.T) {
	f := newFleet(t, "a", "b", "c")
	f.step("b", Attached{"s", 1})
	f.run(time.Second)
	a := f.nodes["a"]
	f.cut = func(from, to ring.GatewayID) bool { return from == "b" && to == "a" }
	f.run(defaultTimeToLive + defaultHeartbeat)
	require.Equal(t, []ring.GatewayID{"a", "c"}, known(a), "forgotten")
	f.cut = func(from, to ring.GatewayID) bool { return from == "a" && to == "b" }
	f.run(defaultHeartbeat)
	require.Equal(t, []ring.GatewayID{"a", "b", "c"}, known(a), "heard again")
	require.Equal(t, "nowhere", home(a, "s"), "its record has been asked for, in vain")
	f.cut = nil
	f.step("a", LinkUp{"b"})
	f.run(2 * defaultBatch)
	require.Equal(t, "b gen 1", home(a, "s"))

	taken := a.Stats().Snapshots
	f.step("a", LinkUp{"b"})
	f.run(2 * defaultBatch)
	require.Equal(t, taken, a.Stats().Snapshots, "nothing is lacking")
}

func TestAllSilent(t *testing.T) {
	f := newFleet(t, "a", "b", "c", "d")
	f.step("b", Attached{"s", 1})
	f.run(time.Second)
	f.run(23 * time.Second)
	a := f.nodes["a"]
	others := f.nodes
	f.nodes = map[ring.GatewayID]*Roster{"a": a}
	require.Less(t, a.Age(f.now), defaultHeartbeat)
	f.run(10 * time.Minute)
	require.Equal(t, []ring.GatewayID{"a", "b", "c", "d"}, known(a), "nobody is purged")
	require.True(t, a.Stale(f.now))
	require.True(t, gateway(t, a, "c").Suspect)
	require.Equal(t, 1, a.Live())
	require.Zero(t, a.Age(f.now), "there is no live peer")

	// Back, one after the other: whoever is late has as long as anybody.
	f.nodes = map[ring.GatewayID]*Roster{"a": a, "b": others["b"]}
	f.run(defaultHeartbeat)
	require.False(t, a.Stale(f.now))
	require.Len(t, known(a), 4)
	f.nodes["c"] = others["c"]
	f.run(defaultTimeToLive)
	require.Equal(t, []ring.GatewayID{"a", "b", "c"}, known(a), "d did not come back")
}

// Two peers' heartbeats are never at the same moment; a silence that begins
// between them is still one silence.
func TestSilenceBegins(t *testing.T) {
	r := newFleet(t, "a").nodes["a"]
	beat := func(id ring.GatewayID, when time.Duration) {
		r.Step(at(when), Received{Message: Heartbeat{Origin: Origin{Gateway: id, Counts: placement.Counts{Incarnation: 1}}}})
	}
	beat("b", 0)
	beat("c", defaultHeartbeat-time.Millisecond)
	for when := time.Duration(0); when < 5*time.Minute; when += 100 * time.Millisecond {
		r.Step(at(when), Tick{})
	}
	require.Len(t, known(r), 3)

	// And one that ends just before it has lasted is forgiven as well.
	r = newFleet(t, "a").nodes["a"]
	beat("b", 0)
	beat("c", time.Second)
	beat("b", 29*time.Second)
	r.Step(at(31*time.Second), Tick{})
	require.Len(t, known(r), 3)
	beat("b", 39*time.Second)
	beat("b", 49*time.Second)
	beat("b", 59*time.Second)
	r.Step(at(59*time.Second), Tick{})
	require.Len(t, known(r), 2)
}

func TestDeparted(t *testing.T) {
	f := newFleet(t, "a", "b")
	f.step("b", Attached{"s", 1})
	f.run(time.Second)
	a, late := f.nodes["a"], f.nodes["b"].heartbeat()
	took[Rejected](f, "a")

	f.step("a", Departed{Gateway: "b", Incarnation: 1})
	require.Equal(t, []ring.GatewayID{"a"}, known(a))
	require.Zero(t, a.Live())
	f.step("a", Received{Message: late})
	require.ErrorIs(t, took[Rejected](f, "a")[0].Err, ErrOldIncarnation)
	require.Equal(t, []ring.GatewayID{"a"}, known(a), "what is under way does not bring it back")

	f.start("b", 2)
	f.run(time.Second)
	require.Len(t, known(a), 2, "a new start does")
	f.step("a", Departed{Gateway: "b", Incarnation: 1})
	require.Len(t, known(a), 2, "which an old farewell does not touch")

	delete(f.nodes, "b")
	f.step("a", Departed{Gateway: "b"})
	require.Len(t, known(a), 1)
	f.run(defaultTimeToLive)
	late.Incarnation = 2
	f.step("a", Received{Message: late})
	require.Len(t, known(a), 2, "a wrong farewell is not believed for ever")
}

// Two processes have had one ID, and the older leaves last: what the newer has still under way does not bring it back.
func TestTheOlderOfTwoDepartsLast(t *testing.T) {
	f := newFleet(t, "a", "b")
	f.start("b", 2)
	f.run(time.Second)
	a, late := f.nodes["a"], f.nodes["b"].heartbeat()
	delete(f.nodes, "b")
	took[Rejected](f, "a")
	f.step("a", Departed{Gateway: "b", Incarnation: 2})
	f.step("a", Departed{Gateway: "b", Incarnation: 1})
	f.step("a", Received{Message: late})
	require.Equal(t, []ring.GatewayID{"a"}, known(a))
	require.ErrorIs(t, took[Rejected](f, "a")[0].Err, ErrOldIncarnation)
	f.start("b", 3)
	f.run(time.Second)
	require.Len(t, known(a), 2)
}

func TestDiscovery(t *testing.T) {
	f := newFleet(t, "a", "b", "c")
	for _, id := range f.ids() {
		f.step(id, StateChanged{placement.Ready})
	}
	f.run(time.Second)
	a := f.nodes["a"]
	list := func(ids ...ring.GatewayID) { f.step("a", Discovered{Gateways: ids}) }

	list("a", "b")
	f.run(time.Second)
	require.True(t, gateway(t, a, "c").Placeable(), "discovery never had it")
	list("a", "b", "c")
	list("a", "b")
	f.run(time.Minute)
	require.True(t, gateway(t, a, "c").Suspect, "discovery has it no more, though it is heard")
	f.step("a", Discovered{Gateways: []ring.GatewayID{"c"}, Partial: true})
	require.True(t, gateway(t, a, "c").Placeable())
	list("a", "b", "c")
	list("a", "b")
	f.start("c", 2)
	f.step("c", StateChanged{placement.Ready})
	f.run(time.Second)
	require.True(t, gateway(t, a, "c").Placeable(), "started anew")

	// Absent from the list and silent: purged, even as the last peer.
	list("a", "b", "c")
	delete(f.nodes, "b")
	delete(f.nodes, "c")
	f.run(2 * time.Minute)
	require.Len(t, known(a), 3)
	list("a")
	f.run(0)
	require.Len(t, known(a), 1)
	require.False(t, a.Stale(f.now))
}

func TestLive(t *testing.T) {
	f := newFleet(t, "a", "b", "c")
	for _, id := range f.ids() {
		f.step(id, StateChanged{placement.Ready})
	}
	for i, id := range []ring.GatewayID{"b", "b", "b", "c"} {
		f.step(id, Attached{ring.MemberID(string(rune('p' + i))), 1})
	}
	f.step("a", Attached{"z", 1})
	f.run(time.Second)
	a := f.nodes["a"]
	require.Equal(t, 5, a.Live())

	f.step("a", Reserved{1})
	require.Equal(t, 6, a.Live(), "a newcomer has a place here")
	f.step("a", Hinted{[]placement.Report{{Gateway: "c", Counts: placement.Counts{Incarnation: 1, Sequence: 9, Attached: 2, Reserved: 1}}}})
	require.Equal(t, 8, a.Live(), "c has one more than it has named, and keeps a place")
	f.step("a", LinkLost{"b"})
	require.Equal(t, 5, a.Live(), "three of b's are expected to be those three")
	f.step("a", Held{"z", 1})
	require.Equal(t, 5, a.Live())
	f.step("a", Reserved{9})
	require.Equal(t, 5+11-4, a.Live())
	f.step("a", Heard{"b"})
	f.step("a", Attached{"z", 2})
	f.step("a", Reserved{0})
	require.Equal(t, 7, a.Live())
	audit(t, a)
}

// What callers are told by a roster that lacks a record, and by one that has them all.
func TestS21Ready(t *testing.T) {
	f := newFleet(t, "a", "b", "c")
	f.step("a", Attached{"s", 1})
	f.run(time.Second)
	f.start("b", 2)
	b := f.nodes["b"]
	f.step("b", Discovered{Gateways: f.ids()})
	require.Equal(t, "nowhere", home(b, "s"))
	require.False(t, b.Ready(f.now).Callers.OK, "whom b does not know somebody may have")
	f.run(time.Second)
	require.Equal(t, "a gen 1", home(b, "s"))
	require.True(t, b.Ready(f.now).Callers.OK, "whom b does not know nobody has")
}

func TestS22(t *testing.T) {
	t.Run("first of an empty fleet", func(t *testing.T) {
		for _, ids := range [][]ring.GatewayID{nil, {"a"}} {
			f := newFleet(t, "a")
			require.Equal(t, Readiness{
				Supervisors: Check{Reason: ReasonStarting},
				Callers:     Check{Reason: ReasonDiscovery},
			}, f.nodes["a"].Ready(f.now))
			f.step("a", StateChanged{placement.Ready})
			f.step("a", Discovered{Gateways: ids})
			require.Equal(t, Readiness{
				Supervisors: Check{OK: true, Reason: ReasonServing},
				Callers:     Check{OK: true, Reason: ReasonComplete},
			}, f.nodes["a"].Ready(f.now))
			f.step("a", StateChanged{placement.Draining})
			require.Equal(t, Check{Reason: ReasonDraining}, f.nodes["a"].Ready(f.now).Supervisors)
			require.True(t, f.nodes["a"].Ready(f.now).Callers.OK)
		}
	})
	t.Run("peers never answer", func(t *testing.T) {
		f := newFleet(t, "a")
		f.step("a", Discovered{Gateways: []ring.GatewayID{"a", "b"}})
		f.run(defaultGrace - 1)
		require.Equal(t, Check{Reason: ReasonSnapshots}, f.nodes["a"].Ready(f.now).Callers)
		f.now = f.now.Add(1)
		require.Equal(t, Check{OK: true, Reason: ReasonGrace}, f.nodes["a"].Ready(f.now).Callers)
	})
}

func TestS23(t *testing.T) {
	heartbeat := func(id ring.GatewayID, sequence uint64) Event {
		return Received{Message: Heartbeat{Origin: Origin{Gateway: id, Counts: placement.Counts{Incarnation: 1, Sequence: sequence}}}}
	}
	snapshot := func(id ring.GatewayID) Event {
		return Received{Message: Snapshot{Origin: Origin{Gateway: id, Counts: placement.Counts{Incarnation: 1, Sequence: 7}}, Pages: 1}}
	}
	for name, last := range map[string]Event{
		"B's comes":  snapshot("b"),
		"B leaves":   Departed{Gateway: "b"},
		"B unlisted": Discovered{Gateways: []ring.GatewayID{"a", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, "c")
			f.step("c", Discovered{Gateways: []ring.GatewayID{"a", "b", "c"}})
			f.step("c", snapshot("a"))
			require.Equal(t, Check{Reason: ReasonSnapshots}, f.nodes["c"].Ready(f.now).Callers)
			f.step("c", heartbeat("b", 7))
			require.Equal(t, Check{Reason: ReasonSnapshots}, f.nodes["c"].Ready(f.now).Callers)
			f.step("c", last)
			require.Equal(t, Check{OK: true, Reason: ReasonComplete}, f.nodes["c"].Ready(f.now).Callers)
		})
	}
}

func TestReadyForGood(t *testing.T) {
	f := newFleet(t, "a")
	f.step("a", Discovered{})
	f.step("a", Discovered{Gateways: []ring.GatewayID{"a", "b"}})
	f.step("a", DiscoveryFailed{})
	require.Equal(t, Check{OK: true, Reason: ReasonComplete}, f.nodes["a"].Ready(f.now).Callers)
}

// A newcomer and an old hand exchange heartbeats and snapshots, and then have no more to say.
func TestHandshakeEnds(t *testing.T) {
	f := newFleet(t, "a", "b")
	f.step("a", Attached{"s", 1})
	f.step("b", Attached{"t", 1})
	f.step("a", LinkUp{"b"})
	f.step("b", LinkUp{"a"})
	f.run(time.Second)
	require.Less(t, len(f.sent), 16)
	f.sent = nil
	f.run(5 * time.Second)
	require.Empty(t, f.sent)
	require.Equal(t, "a gen 1", home(f.nodes["b"], "s"))
	require.Equal(t, "b gen 1", home(f.nodes["a"], "t"))
}

// A gateway that died before discovery saw it, and was heard all the same, is
// purged on time, even if it is the only one that was ever heard. If discovery
// lists it, or its last word is doubtful, nobody knows that it is dead.
func TestSilentAndNeverListed(t *testing.T) {
	for _, c := range []struct {
		name   string
		listed Discovered
		purged bool
	}{
		{"never listed", Discovered{Gateways: []ring.GatewayID{"a"}}, true},
		{"listed", Discovered{Gateways: []ring.GatewayID{"a", "b"}}, false},
		{"no complete list", Discovered{Gateways: []ring.GatewayID{"a"}, Partial: true}, false},
		{"a list that has not even this one", Discovered{Gateways: []ring.GatewayID{"c"}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFleet(t, "a", "b")
			f.run(time.Second)
			a := f.nodes["a"]
			f.step("a", c.listed)
			f.nodes = map[ring.GatewayID]*Roster{"a": a}
			f.run(defaultTimeToLive - time.Second - defaultHeartbeat/2)
			require.Len(t, known(a), 2, "not before its time")
			f.run(time.Minute)
			require.Equal(t, !c.purged, len(known(a)) == 2)
			require.Equal(t, !c.purged, a.Stale(f.now))
			audit(t, a)
		})
	}
}
