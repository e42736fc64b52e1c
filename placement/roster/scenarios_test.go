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

// readyFleet is a fleet that serves, has found itself, and knows it.
func readyFleet(t *testing.T, ids ...ring.GatewayID) *fleet {
	f := newFleet(t, ids...)
	for _, id := range ids {
		f.step(id, StateChanged{placement.Ready})
		f.step(id, Discovered{Gateways: ids})
	}
	f.run(time.Second)
	for _, id := range ids {
		require.Equal(t, Check{OK: true, Reason: ReasonComplete}, f.nodes[id].Ready(f.now).Callers)
		f.actions[id] = nil
	}
	return f
}

func TestS54(t *testing.T) {
	f := readyFleet(t, "a", "b")
	f.step("b", Attached{"s", 5})
	f.step("b", Attached{"t", 5})
	f.run(time.Second)
	b := f.nodes["b"]

	// Nothing that b says arrives, nothing is heard, and discovery is out.
	f.nodes = map[ring.GatewayID]*Roster{"b": b}
	f.step("b", DiscoveryFailed{})
	f.step("b", LinkLost{"a"})
	f.run(time.Hour)
	require.Len(t, members(b, "b"), 2)
	require.Equal(t, Check{OK: true, Reason: ReasonServing}, b.Ready(f.now).Supervisors)
	require.True(t, b.Stale(f.now))
	for _, act := range f.actions["b"] {
		require.IsType(t, Send{}, act, "nobody is told to go")
	}

	// An older word about s is no proof; a newer one is, for s alone.
	word := func(sequence uint64, g placement.Generation) {
		f.step("b", Received{Message: Delta{
			Origin:  Origin{Gateway: "a", Counts: placement.Counts{Incarnation: 1, Sequence: sequence}},
			From:    sequence - 1,
			Changes: []Change{{"s", g, OpAttached}},
		}})
	}
	known := f.nodes["b"].peer("a").have
	took[Placed](f, "b")
	word(known+1, 4)
	require.Empty(t, took[Placed](f, "b"))
	require.Equal(t, "b gen 5", home(b, "s"))
	word(known+2, 6)
	require.Equal(t, []Placed{{"a", []Entry{{Member: "s", Generation: 6}}}}, took[Placed](f, "b"))
	require.Equal(t, "b gen 5", home(b, "t"))
	require.Len(t, members(b, "b"), 2, "it is for the gateway to let s go")
}

func TestS62(t *testing.T) {
	list := func(f *fleet, to ring.GatewayID, ids ...ring.GatewayID) { f.step(to, Discovered{Gateways: ids}) }

	t.Run("removed", func(t *testing.T) {
		f := readyFleet(t, "a", "b", "c")
		f.step("a", Attached{"s", 1})
		f.step("a", Reserved{2})
		f.run(time.Second)
		version := f.nodes["a"].Version()
		for _, id := range f.ids() {
			list(f, id, "b", "c")
		}
		require.Equal(t, []Delisted{{}}, took[Delisted](f, "a"), "a learns it")
		require.True(t, f.nodes["a"].Delisted())
		require.Greater(t, f.nodes["a"].Version(), version)
		for _, id := range f.ids() {
			require.False(t, gateway(t, f.nodes[id], "a").Placeable(), "%s gives it nobody", id)
			require.Equal(t, "a gen 1", home(f.nodes[id], "s"), "s stays until it is handed over")
			require.Equal(t, 1, f.nodes[id].Live(), "%s counts whom a serves, and nobody on the way there", id)
			require.Equal(t, id == "a", f.nodes[id].Delisted())
			audit(t, f.nodes[id])
		}
		require.Equal(t, Check{OK: true, Reason: ReasonServing}, f.nodes["a"].Ready(f.now).Supervisors,
			"or what lists the ready only would never list it again")

		list(f, "a", "c")
		f.run(time.Hour)
		require.Empty(t, took[Delisted](f, "a"), "once")

		list(f, "a", "a", "b", "c")
		require.False(t, f.nodes["a"].Delisted())
		require.True(t, gateway(t, f.nodes["a"], "a").Placeable())
		list(f, "a")
		list(f, "a", "b", "c")
		require.Len(t, took[Delisted](f, "a"), 1, "and once more")
	})
	for name, events := range map[string][]Event{
		"not listed yet":   {Discovered{Gateways: []ring.GatewayID{"b", "c"}}, Discovered{Gateways: []ring.GatewayID{"c"}}},
		"listed in a page": {Discovered{Gateways: []ring.GatewayID{"a"}, Partial: true}, Discovered{Gateways: []ring.GatewayID{"b"}}},
		"a page":           {Discovered{Gateways: []ring.GatewayID{"a", "b"}}, Discovered{Gateways: []ring.GatewayID{"b"}, Partial: true}},
		"nobody is listed": {Discovered{Gateways: []ring.GatewayID{"a"}}, Discovered{}},
		"no list":          {Discovered{Gateways: []ring.GatewayID{"a", "b"}}, DiscoveryFailed{}},
		"still listed":     {Discovered{Gateways: []ring.GatewayID{"a", "b"}}, Discovered{Gateways: []ring.GatewayID{"a"}}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, "a")
			for _, ev := range events {
				f.step("a", ev)
			}
			require.Empty(t, took[Delisted](f, "a"))
			require.False(t, f.nodes["a"].Delisted())
			require.False(t, gateway(t, f.nodes["a"], "a").Suspect)
		})
	}
	t.Run("an empty list in between", func(t *testing.T) {
		f := newFleet(t, "a")
		for _, ids := range [][]ring.GatewayID{{"a", "b"}, {}, {"b"}} {
			list(f, "a", ids...)
		}
		require.Len(t, took[Delisted](f, "a"), 1)
	})
}

// 10 gateways, 100 000 supervisors.
func TestS63(t *testing.T) {
	t.Parallel()
	const (
		gateways = 10
		members  = 10_000 // of each
		page     = 16 << 10
	)
	var ids []ring.GatewayID
	for i := range gateways {
		ids = append(ids, ring.GatewayID(fmt.Sprintf("gw-%d", i)))
	}
	f := newFleet(t)
	f.change = func(c *Config) { c.PageBytes = page }
	for _, id := range ids {
		f.start(id, 1)
	}
	f.run(time.Second)

	// attach makes a gateway serve more, the next one every gap. An attach
	// returns nothing to wait for: at most what is due anyway.
	generation := placement.Generation(0)
	attach := func(id ring.GatewayID, n int, gap time.Duration) (sent int) {
		for range n {
			generation++
			f.now = f.now.Add(gap)
			for _, act := range f.step(id, Attached{ring.MemberID(fmt.Sprintf("supervisor-%d", generation)), generation}) {
				require.IsType(t, Send{}, act)
				sent++
			}
			if len(f.nodes[id].outbox.changes) > defaultOutbox {
				require.Fail(t, "the outbox is not bounded")
			}
		}
		return sent
	}
	sizes := func() map[string]int {
		most := make(map[string]int)
		for _, e := range f.sent {
			m, err := Decode(e.bytes)
			require.NoError(t, err)
			kind := fmt.Sprintf("%T", m)
			most[kind] = max(most[kind], len(e.bytes))
		}
		f.sent = nil
		return most
	}
	agreed := func() {
		t.Helper()
		for _, id := range ids {
			for _, of := range ids {
				require.Equal(t, f.nodes[of].self.digest, f.nodes[id].byID[of].digest, "%s of %s", id, of)
				require.Equal(t, f.nodes[of].self.attached, f.nodes[id].byID[of].attached, "%s of %s", id, of)
			}
		}
	}

	// All at once: more than the outbox takes. What is told is that a snapshot
	// is needed, and it comes in pages.
	sizes()
	for _, id := range ids {
		require.Zero(t, attach(id, members, 0))
		require.True(t, f.nodes[id].outbox.overflow)
	}
	f.run(time.Second)
	agreed()
	require.Equal(t, gateways*members, f.nodes[ids[0]].Live())
	most := sizes()
	require.NotContains(t, most, "roster.Delta")
	require.LessOrEqual(t, most["roster.Snapshot"], page)
	require.Greater(t, most["roster.Snapshot"], page-128, "pages are filled")
	for _, id := range ids {
		require.Equal(t, uint64(gateways-1), f.nodes[id].stats.SnapshotsSent, "one for each peer")
	}

	// 20 000 a second: as much as is allowed to wait, in deltas of bounded size and number.
	const second = 20_000
	before := f.nodes["gw-3"].stats.SnapshotsSent
	told := attach("gw-3", second, time.Second/second)
	require.LessOrEqual(t, told, int(time.Second/defaultBatch)+1, "messages in a second")
	f.run(time.Second)
	agreed()
	require.Equal(t, before, f.nodes["gw-3"].stats.SnapshotsSent, "everything went out in deltas")
	require.Empty(t, f.nodes["gw-3"].outbox.changes)
	require.LessOrEqual(t, sizes()["roster.Delta"], page)
}

// A gateway that overflows with every batch does not send its whole record with every batch.
func TestOverflowingForEver(t *testing.T) {
	f := newFleet(t)
	f.change = func(c *Config) { c.Outbox = 4 }
	f.start("a", 1)
	f.start("b", 1)
	f.run(time.Second)
	f.sent = nil
	start, generation := f.now, placement.Generation(0)
	for f.now.Before(start.Add(defaultHeartbeat)) {
		for i := range 5 {
			generation++
			f.step("a", Attached{ring.MemberID(rune('p' + i)), generation})
		}
		f.run(defaultBatch + 1)
		require.Equal(t, gateway(t, f.nodes["a"], "a").Counts, gateway(t, f.nodes["b"], "a").Counts, "the counts are told with every batch")
	}
	count := func() (messages, snapshots int) {
		for _, e := range f.sent {
			if e.from == "a" {
				messages++
				if m, err := Decode(e.bytes); err == nil && slices.Contains([]string{"roster.Snapshot"}, fmt.Sprintf("%T", m)) {
					snapshots++
				}
			}
		}
		return messages, snapshots
	}
	messages, snapshots := count()
	require.LessOrEqual(t, snapshots, 6)
	require.LessOrEqual(t, messages, int(defaultHeartbeat/defaultBatch)+1+snapshots)
	f.run(defaultHeartbeat / 4)
	require.Equal(t, members(f.nodes["a"], "a"), members(f.nodes["b"], "a"))
}

// An observer that restarts has no memory of the gateway that is down; nobody
// else has more patience with it for that.
func TestW13(t *testing.T) {
	for _, when := range []time.Duration{0, time.Second, defaultTimeToLive / 2, defaultTimeToLive - 9*time.Second} {
		t.Run(fmt.Sprintf("restarts after %v", when), func(t *testing.T) {
			f := readyFleet(t, "a", "b", "c", "d")
			f.step("b", Attached{"s", 1})
			f.run(3 * time.Second)
			late := f.nodes["b"].heartbeat()
			delete(f.nodes, "b")
			lastHeard := f.nodes["a"].peer("b").heardAt

			// c is away for five seconds, and starts anew.
			f.run(when)
			delete(f.nodes, "c")
			f.run(5 * time.Second)
			f.start("c", 2)
			f.step("c", StateChanged{placement.Ready})
			f.step("c", Discovered{Gateways: []ring.GatewayID{"a", "b", "c", "d"}}) // as before
			f.run(100 * time.Millisecond)
			f.step("c", Hinted{f.nodes["a"].Reports()})
			c := f.nodes["c"]
			require.NotContains(t, known(c), ring.GatewayID("b"), "hearsay brings nobody back")

			f.run(lastHeard.Add(defaultTimeToLive).Sub(f.now))
			require.Contains(t, known(f.nodes["a"]), ring.GatewayID("b"))
			f.run(time.Second)
			for _, id := range f.ids() {
				require.Equal(t, []ring.GatewayID{"a", "c", "d"}, known(f.nodes[id]), "on time, as %s sees it", id)
				require.Zero(t, f.nodes[id].Live())
				require.False(t, f.nodes[id].Stale(f.now))
			}

			// Its last word, very late, gives it one more time-to-live and no longer.
			f.step("c", Received{Message: late})
			f.run(defaultTimeToLive)
			require.Contains(t, known(c), ring.GatewayID("b"))
			f.run(1)
			require.Equal(t, []ring.GatewayID{"a", "c", "d"}, known(c))
			require.Equal(t, Check{OK: true, Reason: ReasonGrace}, c.Ready(f.now).Callers, "b was listed, and never heard")
		})
	}
}

func TestW25(t *testing.T) {
	f := readyFleet(t, "a", "b", "c")
	f.step("a", Attached{"s", 1})
	f.step("b", Attached{"t", 1})
	f.run(time.Second)
	fingerprint := f.nodes["b"].Ring().Fingerprint()
	f.start("a", 2) // at another address
	f.step("a", StateChanged{placement.Ready})
	f.step("a", Attached{"s", 2})
	f.run(time.Second)
	for _, id := range f.ids() {
		r := f.nodes[id]
		require.Equal(t, "a.2:443", gateway(t, r, "a").Endpoint)
		require.Equal(t, fingerprint, r.Ring().Fingerprint())
		require.Equal(t, "a gen 2", home(r, "s"))
		require.Equal(t, "b gen 1", home(r, "t"))
		require.Equal(t, 2, r.Live())
		require.True(t, gateway(t, r, "a").Placeable())
	}
	require.Equal(t, []Placed{{"a", []Entry{{Member: "s", Generation: 2}}}}, took[Placed](f, "b")[1:], "s is where it was, anew")

	// The same process, under a new address.
	origin := f.nodes["a"].origin()
	origin.Endpoint, origin.Sequence = "a.3:443", origin.Sequence+1
	f.step("b", Received{Message: Delta{Origin: origin, From: origin.Sequence - 1}})
	require.Equal(t, "a.3:443", gateway(t, f.nodes["b"], "a").Endpoint)
	require.Equal(t, "a gen 2", home(f.nodes["b"], "s"))
	require.Empty(t, took[Placed](f, "b"))
	origin.Endpoint, origin.Sequence = "a.0:443", origin.Sequence-1
	f.step("b", Received{Message: Heartbeat{Origin: origin}})
	require.Equal(t, "a.3:443", gateway(t, f.nodes["b"], "a").Endpoint, "an older word does not bring the old one back")
}

// A fleet in which nothing happens says nothing but heartbeats, and they are
// small: under 1 KiB/s to each peer, even over a connection made for each.
func TestSteadyState(t *testing.T) {
	const (
		limit      = 1 << 10 // bytes a second to each peer
		connection = 1 << 10 // around a message, generously: its frame, encryption, and the packets that open and close
		passing    = 10 * time.Minute
	)
	f := newFleet(t)
	f.change = func(c *Config) {
		c.Incarnation = placement.Incarnation(epoch.UnixNano())
		c.Endpoint = "gateway-with-a-rather-long-name-0.gateways.production.svc.cluster.local:8443"
	}
	for i := range 4 {
		id := ring.GatewayID(fmt.Sprintf("gateway-with-a-rather-long-name-%d", i))
		f.start(id, 1)
		f.step(id, StateChanged{placement.Ready})
	}
	ids := f.ids()
	for i := range 4000 {
		f.step(ids[i%4], Attached{ring.MemberID(fmt.Sprintf("supervisor-%d", i)), placement.Generation(epoch.UnixNano())})
	}
	f.run(time.Minute)
	f.sent = nil
	f.run(passing)

	plain, largest := make(map[[2]ring.GatewayID]int), 0
	carried := make(map[[2]ring.GatewayID]int)
	for _, e := range f.sent {
		m, err := Decode(e.bytes)
		require.NoError(t, err)
		require.IsType(t, Heartbeat{}, m)
		plain[[2]ring.GatewayID{e.from, e.to}] += len(e.bytes)
		carried[[2]ring.GatewayID{e.from, e.to}] += len(e.bytes) + connection
		largest = max(largest, len(e.bytes))
	}
	require.Len(t, plain, 4*3)
	for pair, bytes := range carried {
		require.LessOrEqual(t, bytes, limit*int(passing/time.Second), "%s to %s", pair[0], pair[1])
	}
	pair := [2]ring.GatewayID{ids[0], ids[1]}
	t.Logf("a heartbeat has %d bytes: %.1f B/s to each peer, %.1f B/s with a connection for each",
		largest, float64(plain[pair])/passing.Seconds(), float64(carried[pair])/passing.Seconds())
}

// A process that stood still has heard nobody, and that is nobody else's silence.
func TestStoodStill(t *testing.T) {
	for name, list := range map[string][]ring.GatewayID{
		"before discovery saw b":  {"a", "c"},
		"with everybody listed":   {"a", "b", "c"},
		"without any discovery's": {},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, "a", "b", "c")
			for _, id := range f.ids() {
				f.step(id, StateChanged{placement.Ready})
			}
			if len(list) > 0 {
				f.step("a", Discovered{Gateways: list})
			}
			f.step("b", Attached{"s", 1})
			f.run(time.Second)
			old := f.nodes["b"].heartbeat()
			f.step("b", Attached{"t", 2})
			f.run(5 * time.Second)
			a := f.nodes["a"]
			require.Equal(t, "b gen 2", home(a, "t"))

			delete(f.nodes, "a")
			f.run(4 * defaultTimeToLive)
			f.nodes["a"] = a
			f.step("a", Tick{}) // it goes on, and what came meanwhile is still to be read
			require.Equal(t, []ring.GatewayID{"a", "b", "c"}, known(a))
			newest := a.peer("b").newest
			require.Equal(t, 2, newest.Attached)
			f.step("a", Received{Message: old})
			require.Equal(t, "b gen 2", home(a, "t"))
			require.Equal(t, newest, a.peer("b").newest, "what is old is known to be")

			delete(f.nodes, "b") // it was silent for 5 s before, and is so again
			f.run(defaultTimeToLive - 11*time.Second)
			require.Contains(t, known(a), ring.GatewayID("b"))
			f.run(12 * time.Second)
			require.NotContains(t, known(a), ring.GatewayID("b"))
		})
	}
}
