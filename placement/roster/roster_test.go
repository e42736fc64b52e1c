// SPDX-License-Identifier: Apache-2.0

package roster

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

func TestConfigValidate(t *testing.T) {
	valid := Config{Gateway: "a", Incarnation: 1}
	require.NoError(t, valid.Validate())
	for _, c := range []struct {
		field string
		spoil func(*Config)
	}{
		{"Gateway", func(c *Config) { c.Gateway = "" }},
		{"Incarnation", func(c *Config) { c.Incarnation = 0 }},
		{"TimeToLive", func(c *Config) { c.TimeToLive = 19 * time.Second }},
		{"TimeToLive", func(c *Config) { c.TimeToLive = -1 }},
		{"Heartbeat", func(c *Config) { c.Heartbeat = -1 }},
		{"Grace", func(c *Config) { c.Grace = -1 }},
		{"Batch", func(c *Config) { c.Batch = -1 }},
		{"PageBytes", func(c *Config) { c.PageBytes = 511 }},
		{"Outbox", func(c *Config) { c.Outbox = -1 }},
		{"Ring", func(c *Config) { c.Ring.Slots = 10 }},
	} {
		cfg := valid
		c.spoil(&cfg)
		require.ErrorContains(t, cfg.Validate(), "Config."+c.field)
		_, err := New(epoch, cfg)
		require.ErrorContains(t, err, "Config."+c.field)
	}
	err := Config{Batch: -1}.Validate()
	for _, field := range []string{"Gateway", "Incarnation", "Batch"} {
		require.ErrorContains(t, err, field)
	}
}

func TestOwnRecord(t *testing.T) {
	for _, c := range []struct {
		name   string
		events []Event
		want   map[ring.MemberID]Entry
		number uint64
	}{
		{"attached", []Event{Attached{"m", 5}}, map[ring.MemberID]Entry{"m": {"m", 5, false}}, 1},
		{"attached twice", []Event{Attached{"m", 5}, Attached{"m", 5}}, map[ring.MemberID]Entry{"m": {"m", 5, false}}, 1},
		{"attached anew", []Event{Attached{"m", 5}, Attached{"m", 6}}, map[ring.MemberID]Entry{"m": {"m", 6, false}}, 2},
		{"attached late", []Event{Attached{"m", 6}, Attached{"m", 5}}, map[ring.MemberID]Entry{"m": {"m", 6, false}}, 1},
		{"held", []Event{Attached{"m", 5}, Held{"m", 5}}, map[ring.MemberID]Entry{"m": {"m", 5, true}}, 2},
		{"held late", []Event{Attached{"m", 6}, Held{"m", 5}}, map[ring.MemberID]Entry{"m": {"m", 6, false}}, 1},
		{"back from a hold", []Event{Held{"m", 5}, Attached{"m", 6}}, map[ring.MemberID]Entry{"m": {"m", 6, false}}, 2},
		{"left", []Event{Attached{"m", 5}, Left{"m", 5}}, map[ring.MemberID]Entry{}, 2},
		{"left late", []Event{Attached{"m", 6}, Left{"m", 5}}, map[ring.MemberID]Entry{"m": {"m", 6, false}}, 1},
		{"left a stranger", []Event{Left{"m", 5}}, map[ring.MemberID]Entry{}, 0},
		{"no name", []Event{Attached{"", 5}, Held{"", 5}, Left{"", 5}}, map[ring.MemberID]Entry{}, 0},
		{"reserved", []Event{Reserved{3}, Reserved{3}, Reserved{-1}, Reserved{0}}, map[ring.MemberID]Entry{}, 2},
		{"state", []Event{StateChanged{placement.Ready}, StateChanged{placement.Ready}}, map[ring.MemberID]Entry{}, 1},
		{"nonsense", []Event{nil, Received{}, LinkUp{}, LinkLost{}, Heard{}, Departed{}, Departed{Gateway: "a"}, Hinted{}, Tick{}}, map[ring.MemberID]Entry{}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFleet(t, "a")
			for _, ev := range c.events {
				f.step("a", ev)
			}
			require.Equal(t, c.want, members(f.nodes["a"], "a"))
			require.Equal(t, c.number, gateway(t, f.nodes["a"], "a").Sequence)
			audit(t, f.nodes["a"])
		})
	}
}

func TestBatch(t *testing.T) {
	f := newFleet(t, "a")
	r := f.nodes["a"]
	due, ok := r.Deadline()
	require.True(t, ok)
	require.Equal(t, epoch, due, "the first heartbeat is due at once")
	require.Equal(t, []Action{Send{Message: Heartbeat{Origin: r.origin(), Layout: r.self.layout}}}, r.Step(epoch, Tick{}))

	require.Empty(t, r.Step(epoch, Attached{"m", 1}))
	require.Empty(t, r.Step(at(5*time.Millisecond), Attached{"n", 1}))
	require.Empty(t, r.Step(at(6*time.Millisecond), Held{"m", 1}))
	require.Empty(t, r.Step(at(7*time.Millisecond), Reserved{2}))
	due, _ = r.Deadline()
	require.Equal(t, at(20*time.Millisecond), due)
	actions := r.Step(due, Tick{})
	require.Equal(t, []Action{Send{Message: Delta{
		Origin:  r.origin(),
		Changes: []Change{{"n", 1, OpAttached}, {"m", 1, OpHeld}},
	}}}, actions, "once for each member, as it ended")
	due, _ = r.Deadline()
	require.Equal(t, at(defaultHeartbeat), due)

	// A state is told at once, after what had gathered.
	r.Step(at(time.Second), Left{"m", 1})
	actions = r.Step(at(time.Second), StateChanged{placement.Draining})
	require.Equal(t, []Action{Send{Message: Delta{
		Origin:  r.origin(),
		From:    4,
		Changes: []Change{{"m", 1, OpLeft}},
	}}}, actions)
	require.Equal(t, uint64(6), r.origin().Sequence)
	require.Equal(t, placement.Draining, r.origin().State)
}

func TestS41(t *testing.T) {
	f := newFleet(t, "a", "b")
	f.run(time.Second)
	f.step("a", Attached{"s", 5})
	f.run(time.Second)
	f.step("b", Attached{"s", 6})
	require.Equal(t, "b gen 6", home(f.nodes["b"], "s"), "accepted while a still lists it")
	took[Placed](f, "a")
	took[Placed](f, "b")
	f.run(time.Second)
	require.Equal(t, []Placed{{"b", []Entry{{Member: "s", Generation: 6}}}}, took[Placed](f, "a"), "a learns that its stream is a ghost")
	require.Empty(t, took[Placed](f, "b"))

	f.step("a", Left{"s", 5})
	f.run(time.Second)
	for _, id := range f.ids() {
		require.Equal(t, "b gen 6", home(f.nodes[id], "s"))
		require.Equal(t, 1, f.nodes[id].Live())
	}
}

func TestS45(t *testing.T) {
	f := newFleet(t, "a", "b")
	f.step("a", StateChanged{placement.Ready})
	f.step("b", StateChanged{placement.Ready})
	f.step("a", Attached{"s", 1})
	f.run(time.Second)
	require.True(t, gateway(t, f.nodes["b"], "a").Placeable())

	f.step("a", StateChanged{placement.Draining})
	require.Len(t, f.queue, 1)
	f.deliver(0)
	a := gateway(t, f.nodes["b"], "a")
	require.False(t, a.Placeable(), "within one delta")
	require.Equal(t, 1, a.Attached)
	require.Equal(t, "a gen 1", home(f.nodes["b"], "s"), "still routable for what it serves")
	require.Equal(t, 1, f.nodes["b"].Live(), "whom it serves counts as live")

	// Where the announcement was lost, the next heartbeat brings it.
	f.step("a", StateChanged{placement.Ready})
	f.queue = nil
	f.run(defaultHeartbeat)
	require.True(t, gateway(t, f.nodes["b"], "a").Placeable())
	f.step("a", StateChanged{placement.Draining})
	f.queue = nil
	f.run(defaultHeartbeat)
	require.False(t, gateway(t, f.nodes["b"], "a").Placeable())
}

func TestS53(t *testing.T) {
	f := newFleet(t, "a", "b", "c")
	for _, id := range f.ids() {
		f.step(id, StateChanged{placement.Ready})
		f.step(id, Discovered{Gateways: []ring.GatewayID{"a", "b", "c"}})
		f.step(id, Attached{ring.MemberID("m-" + id), 1})
	}
	f.run(time.Second)
	a := f.nodes["a"]
	fingerprint := a.Ring().Fingerprint()
	require.False(t, a.Stale(f.now))
	for _, ev := range []Event{
		DiscoveryFailed{},
		Discovered{},
		Discovered{Gateways: []ring.GatewayID{"a"}, Partial: true},
	} {
		f.step("a", ev)
		f.run(10 * time.Minute)
		require.True(t, a.Stale(f.now), "%#v", ev)
		require.Equal(t, fingerprint, a.Ring().Fingerprint())
		require.Equal(t, 3, a.Live())
		require.True(t, gateway(t, a, "b").Placeable())
		require.True(t, a.Ready(f.now).Callers.OK)
	}
	// While there is doubt, not even the silent are purged.
	delete(f.nodes, "b")
	f.run(10 * time.Minute)
	require.True(t, gateway(t, a, "b").Suspect)
	require.Equal(t, 3, a.Live())
	f.step("a", Discovered{Gateways: []ring.GatewayID{"a", "b", "c"}})
	require.False(t, a.Stale(f.now))
	_, known := a.Gateway("b")
	require.False(t, known, "no doubt any more")
	require.Equal(t, 2, a.Live())
	require.Equal(t, 2, a.Ring().Len())
}

func TestS56(t *testing.T) {
	f := newFleet(t, "a", "b", "c")
	f.step("c", StateChanged{placement.Ready})
	f.step("c", Attached{"s", 1})
	f.run(time.Second)
	a := f.nodes["a"]
	before := gateway(t, a, "c")

	lie := Snapshot{Origin: Origin{Gateway: "c", Counts: placement.Counts{Incarnation: 1, Sequence: 99}}, Pages: 1}
	took[Rejected](f, "a")
	f.step("a", Received{From: "b", Message: lie})
	rejected := took[Rejected](f, "a")
	require.Len(t, rejected, 1)
	require.ErrorIs(t, rejected[0].Err, ErrForeign)
	require.Equal(t, before, gateway(t, a, "c"))
	require.Equal(t, "c gen 1", home(a, "s"))

	// A hint improves the load, until c's own word is newer; members stay.
	hint := func(sequence uint64, attached int) {
		f.step("a", Hinted{[]placement.Report{
			{Gateway: "c", Counts: placement.Counts{Incarnation: 1, Sequence: sequence, Attached: attached}},
			{Gateway: "nobody", Counts: placement.Counts{Incarnation: 1, Sequence: 1, Attached: 1}},
			{Gateway: "a", Counts: placement.Counts{Incarnation: 9, Sequence: 9, Attached: 9}},
			{Gateway: "b", Counts: placement.Counts{Incarnation: 9, Sequence: 9, Attached: -9}},
		}})
	}
	hint(before.Sequence-1, 7)
	require.Equal(t, before, gateway(t, a, "c"))
	hint(before.Sequence+2, 4)
	require.Equal(t, 4, gateway(t, a, "c").Load())
	require.Equal(t, 4, a.Live())
	require.Equal(t, before.State, gateway(t, a, "c").State)
	require.Len(t, members(a, "c"), 1)
	for range 3 {
		f.step("c", Reserved{Count: gateway(t, f.nodes["c"], "c").Reserved + 1})
	}
	f.run(time.Second)
	require.Equal(t, before.Sequence+3, gateway(t, a, "c").Sequence)
	require.Equal(t, 4, gateway(t, a, "c").Load())
	_, known := a.Gateway("nobody")
	require.False(t, known)
	require.Zero(t, gateway(t, a, "a").Load())
	require.Zero(t, gateway(t, a, "b").Load())
}

func TestLostLastDelta(t *testing.T) {
	f := newFleet(t, "a", "b")
	f.run(time.Second)
	f.step("b", Attached{"s", 1})
	f.now = f.now.Add(defaultBatch)
	f.step("b", Tick{})
	require.Len(t, f.queue, 1)
	f.queue = nil
	f.run(defaultHeartbeat)
	require.Equal(t, "b gen 1", home(f.nodes["a"], "s"))
	require.Equal(t, uint64(1), f.nodes["a"].Stats().Snapshots)
}

func TestGap(t *testing.T) {
	f := newFleet(t, "a", "b")
	f.run(time.Second)
	for g := range placement.Generation(3) {
		f.step("b", Attached{"s", g + 1})
		f.now = f.now.Add(defaultBatch)
		f.step("b", Tick{})
	}
	require.Len(t, f.queue, 3)
	a := f.nodes["a"]

	// Overtaken: nobody needs a snapshot.
	f.deliver(2)
	require.Equal(t, "nowhere", home(a, "s"), "not applied")
	require.Equal(t, uint64(1), a.Stats().Gaps)
	require.Equal(t, uint64(3), gateway(t, a, "b").Sequence, "though its counts are known")
	require.Equal(t, 1, a.Live())
	f.deliver(1)
	f.deliver(0)
	require.Equal(t, "b gen 3", home(a, "s"))
	f.run(time.Second)
	require.Zero(t, a.Stats().Snapshots)

	// Lost: asked for once, though more deltas come, as long as the answer may take.
	lose := func() {
		f.step("b", Attached{"s", 10 + placement.Generation(f.nodes["b"].self.have)})
		f.now = f.now.Add(defaultBatch)
		f.step("b", Tick{})
	}
	lose()
	f.queue = nil
	took[Send](f, "a")
	for range 10 {
		lose()
		f.deliver(0)
		f.step("a", Tick{})
		f.queue = nil
	}
	requests := slices.DeleteFunc(took[Send](f, "a"), func(s Send) bool {
		_, request := s.Message.(SnapshotRequest)
		return !request
	})
	require.Len(t, requests, 1)
	require.Equal(t, SnapshotRequest{From: "a", Gateway: "b", Incarnation: 1, Have: 3}, requests[0].Message)
	require.Equal(t, "b gen 3", home(a, "s"), "kept meanwhile")
	f.run(defaultHeartbeat)
	require.Equal(t, members(f.nodes["b"], "b"), members(a, "b"))
}

func TestSnapshotPages(t *testing.T) {
	f := newFleet(t)
	f.change = func(c *Config) { c.PageBytes = minPageBytes }
	f.start("a", 1)
	for i := range 200 {
		f.step("a", Attached{ring.MemberID(make([]byte, i%40+1)), placement.Generation(i + 1)})
	}
	f.step("a", Attached{ring.MemberID(make([]byte, 2*minPageBytes)), 1})
	f.run(time.Second)
	f.start("b", 1)
	f.run(time.Second)
	b := f.nodes["b"]
	require.Equal(t, members(f.nodes["a"], "a"), members(b, "a"))
	require.Len(t, took[Placed](f, "b"), 1)
	pages := 0
	for _, e := range f.sent {
		m, err := Decode(e.bytes)
		require.NoError(t, err)
		if s, ok := m.(Snapshot); ok {
			pages = s.Pages
			if len(s.Entries) > 1 {
				require.LessOrEqual(t, len(e.bytes), minPageBytes)
			}
		}
	}
	require.Greater(t, pages, 2)

	// Deltas that arrive between the pages are not lost.
	f.start("c", 1)
	f.step("c", Received{Message: f.nodes["a"].heartbeat()})
	f.run(defaultBatch / 2)
	f.now = f.now.Add(defaultBatch)
	f.step("c", Tick{})
	f.deliver(len(f.queue) - 1) // the request
	var late []envelope
	for _, e := range f.queue {
		if e.to == "c" {
			late = append(late, e)
		}
	}
	f.queue = nil
	f.step("a", Attached{"new", 1})
	f.now = f.now.Add(defaultBatch)
	f.step("a", Tick{})
	f.settle()
	slices.Reverse(late)
	for _, e := range late {
		f.hand(e)
	}
	require.Equal(t, members(f.nodes["a"], "a"), members(f.nodes["c"], "a"))
}

func TestOutboxOverflows(t *testing.T) {
	f := newFleet(t, "a", "b")
	f.run(time.Second)
	for i := range placement.Generation(defaultOutbox + 1) {
		for _, a := range f.nodes["a"].Step(f.now, Attached{ring.MemberID(string(rune(i + 100))), 1}) {
			require.Fail(t, "told before it is due", "%#v", a)
		}
	}
	require.Empty(t, f.nodes["a"].outbox.changes, "bounded")
	took[Send](f, "a")
	f.run(time.Second)
	sent := took[Send](f, "a")
	require.IsType(t, Heartbeat{}, sent[0].Message)
	require.IsType(t, Snapshot{}, sent[1].Message)
	require.Equal(t, members(f.nodes["a"], "a"), members(f.nodes["b"], "a"))
}

func TestSplitDelta(t *testing.T) {
	f := newFleet(t)
	f.change = func(c *Config) { c.PageBytes = minPageBytes }
	f.start("a", 1)
	f.start("b", 1)
	f.run(time.Second)
	for i := range 100 {
		m := ring.MemberID("member-with-a-name-" + string(rune('a'+i%50)))
		f.step("a", Attached{m, placement.Generation(i + 1)})
	}
	f.now = f.now.Add(defaultBatch)
	f.step("a", Tick{})
	require.Greater(t, len(f.queue), 1)
	for _, e := range f.queue {
		require.LessOrEqual(t, len(e.bytes), minPageBytes)
	}
	f.settle()
	require.Equal(t, members(f.nodes["a"], "a"), members(f.nodes["b"], "a"))
	require.Zero(t, f.nodes["b"].Stats().Gaps)
}

func TestIncarnations(t *testing.T) {
	f := newFleet(t, "a", "b")
	f.step("a", Attached{"s", 1})
	f.run(time.Second)
	old := f.nodes["a"]
	late := old.heartbeat()

	f.start("a", 2)
	f.step("a", Attached{"t", 1})
	f.run(time.Second)
	b := f.nodes["b"]
	require.Equal(t, "nowhere", home(b, "s"), "a newer incarnation starts afresh")
	require.Equal(t, "a gen 1", home(b, "t"))
	took[Rejected](f, "b")
	f.step("b", Received{From: "a", Message: late})
	require.ErrorIs(t, took[Rejected](f, "b")[0].Err, ErrOldIncarnation)
	require.Equal(t, "a gen 1", home(b, "t"))

	// The older process is told, once, and falls silent.
	word := f.nodes["a"].heartbeat()
	require.Equal(t, []Action{Conflict{Incarnation: 2, Endpoint: "a.2:443"}}, old.Step(f.now, Received{Message: word}))
	require.Empty(t, old.Step(f.now, Received{Message: word}))
	require.Empty(t, old.Step(f.now, Attached{"u", 1}))
	require.Empty(t, old.Step(f.now, StateChanged{placement.Draining}))
	require.Empty(t, old.Step(f.now.Add(time.Minute), Tick{}))
	require.Empty(t, old.outbox.changes)
	require.Equal(t, Check{Reason: ReasonSuperseded}, old.Ready(f.now).Supervisors)

	// The newer one answers the older's words, so that it is told.
	took[Send](f, "a")
	f.step("a", Received{Message: late})
	require.IsType(t, Heartbeat{}, took[Send](f, "a")[0].Message)
}

func TestS25(t *testing.T) {
	f := newFleet(t, "a")
	r := f.nodes["a"]
	for _, ev := range []Event{
		LinkUp{"a"},
		Received{Message: r.heartbeat()},
		Received{From: "a", Message: SnapshotRequest{From: "a", Gateway: "a", Incarnation: 1}},
	} {
		f.step("a", ev)
		rejected := took[Rejected](f, "a")
		require.Len(t, rejected, 1)
		require.ErrorIs(t, rejected[0].Err, ErrSelf)
	}
	require.Equal(t, 1, r.Ring().Len())
}

// What of a gateway's words is taken, by number and incarnation.
func TestNumbers(t *testing.T) {
	origin := func(inc placement.Incarnation, sequence uint64) Origin {
		return Origin{Gateway: "b", Counts: placement.Counts{Incarnation: inc, Sequence: sequence}}
	}
	delta := func(inc placement.Incarnation, from, to uint64, m ring.MemberID, op Op) Message {
		return Delta{Origin: origin(inc, to), From: from, Changes: []Change{{m, 1, op}}}
	}
	snapshot := func(inc placement.Incarnation, sequence uint64, m ring.MemberID) Message {
		return Snapshot{Origin: origin(inc, sequence), Digest: fingerprint(m.Hash(), 1, false), Pages: 1, Entries: []Entry{{Member: m, Generation: 1}}}
	}
	for _, row := range []struct {
		name  string
		words []Message
		want  string
		asks  bool
	}{
		{"an unknown owner starts at 1", []Message{delta(1, 0, 1, "s", OpAttached)}, "s", false},
		{"or needs a snapshot", []Message{delta(1, 4, 5, "s", OpAttached)}, "", true},
		{"which is joined by what came first", []Message{delta(1, 4, 5, "s", OpAttached), snapshot(1, 4, "t")}, "s t", false},
		{"the next number applies", []Message{snapshot(1, 4, "s"), delta(1, 4, 5, "t", OpAttached)}, "s t", false},
		{"a lower one does not", []Message{snapshot(1, 4, "s"), delta(1, 3, 4, "s", OpLeft)}, "s", false},
		{"a gap is not applied", []Message{snapshot(1, 4, "s"), delta(1, 5, 6, "s", OpLeft)}, "s", true},
		{"a snapshot replaces", []Message{snapshot(1, 4, "s"), snapshot(1, 5, "t")}, "t", false},
		{"a lower one is ignored", []Message{snapshot(1, 5, "s"), snapshot(1, 4, "t")}, "s", false},
		{"an equal one that nobody needs is ignored", []Message{snapshot(1, 5, "s"), snapshot(1, 5, "t")}, "s", false},
		{"a newer incarnation starts afresh", []Message{snapshot(1, 9, "s"), delta(2, 0, 1, "t", OpAttached)}, "t", false},
		{"an older one is ignored", []Message{snapshot(2, 1, "s"), snapshot(1, 9, "t")}, "s", false},
		{"and removes nothing", []Message{snapshot(2, 1, "s"), delta(1, 1, 2, "s", OpLeft)}, "s", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := newFleet(t, "a")
			f.now = at(time.Minute)
			for _, m := range row.words {
				f.step("a", Received{From: "b", Message: m})
			}
			var got []string
			for m := range members(f.nodes["a"], "b") {
				got = append(got, string(m))
			}
			slices.Sort(got)
			require.Equal(t, row.want, strings.Join(got, " "))
			took[Send](f, "a")
			f.run(defaultBatch)
			f.step("a", Tick{})
			asks := slices.ContainsFunc(took[Send](f, "a"), func(s Send) bool { return s.To == "b" })
			require.Equal(t, row.asks, asks)
		})
	}
}

// Two processes with one ID and one incarnation: each tells its operator, and goes on.
func TestTwins(t *testing.T) {
	for name, twin := range map[string]Origin{
		"at another endpoint": {Endpoint: "elsewhere:443"},
		"further on":          {Endpoint: "a.1:443", Counts: placement.Counts{Sequence: 9}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, "a", "b")
			f.step("a", Attached{"s", 1})
			f.run(time.Second)
			took[Rejected](f, "a")
			twin.Gateway, twin.Incarnation = "a", 1
			f.step("a", Received{Message: Heartbeat{Origin: twin}})
			rejected := took[Rejected](f, "a")
			require.Len(t, rejected, 1)
			require.ErrorIs(t, rejected[0].Err, ErrTwin)
			require.NotErrorIs(t, rejected[0].Err, ErrSelf)
			require.Len(t, members(f.nodes["a"], "a"), 1)
			f.step("a", Attached{"t", 1})
			f.run(time.Second)
			require.Equal(t, "a gen 1", home(f.nodes["b"], "t"))
		})
	}
	// What comes back of its own, late or not, is no twin's.
	f := newFleet(t, "a")
	early := f.nodes["a"].heartbeat()
	f.step("a", Attached{"s", 1})
	for _, m := range []Message{early, f.nodes["a"].heartbeat()} {
		f.step("a", Received{Message: m})
		require.ErrorIs(t, took[Rejected](f, "a")[0].Err, ErrSelf)
	}
}

func TestInvalid(t *testing.T) {
	good := Origin{Gateway: "b", Counts: placement.Counts{Incarnation: 1, Sequence: 1}}
	spoilt := func(spoil func(*Origin)) Origin {
		o := good
		spoil(&o)
		return o
	}
	for name, m := range map[string]Message{
		"no message":     nil,
		"no gateway":     Heartbeat{Origin: spoilt(func(o *Origin) { o.Gateway = "" })},
		"no incarnation": Heartbeat{Origin: spoilt(func(o *Origin) { o.Incarnation = 0 })},
		"below zero":     Heartbeat{Origin: spoilt(func(o *Origin) { o.Held = -1 })},
		"too many":       Heartbeat{Origin: spoilt(func(o *Origin) { o.Attached = maxCount + 1 })},
		"backwards":      Delta{Origin: good, From: 1},
		"no pages":       Snapshot{Origin: good},
		"page beyond":    Snapshot{Origin: good, Page: 1, Pages: 1},
		"no asker":       SnapshotRequest{Gateway: "a", Incarnation: 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, "a")
			f.step("a", Received{Message: m})
			rejected := took[Rejected](f, "a")
			require.Len(t, rejected, 1)
			require.ErrorIs(t, rejected[0].Err, ErrInvalidMessage)
			require.Len(t, f.nodes["a"].Reports(), 1)
		})
	}
}

func TestTies(t *testing.T) {
	for _, order := range [][]ring.GatewayID{{"b", "c"}, {"c", "b"}} {
		r := newFleet(t, "a").nodes["a"]
		for _, id := range order {
			r.Step(epoch, Received{Message: Delta{
				Origin:  Origin{Gateway: id, Counts: placement.Counts{Incarnation: 1, Sequence: 1}},
				Changes: []Change{{"s", 5, OpAttached}},
			}})
		}
		require.Equal(t, "b gen 5", home(r, "s"))
		var holders []ring.GatewayID
		for id := range r.Holders("s") {
			holders = append(holders, id)
		}
		require.Equal(t, []ring.GatewayID{"b", "c"}, holders)
		r.Step(epoch, Departed{Gateway: "b"})
		require.Equal(t, "c gen 5", home(r, "s"))
		audit(t, r)
	}
}
