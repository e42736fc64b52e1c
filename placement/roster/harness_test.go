// SPDX-License-Identifier: Apache-2.0

package roster

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// epoch is when every test starts.
var epoch = time.Unix(1_700_000_000, 0)

// smallRing is soon computed, by which tests that start many rosters are not slow.
var smallRing = ring.Config{Slots: 13}

func at(d time.Duration) time.Time { return epoch.Add(d) }

// fleet is a few rosters and the messages between them. Every message passes the codec.
type fleet struct {
	t       *testing.T
	now     time.Time
	rng     *rand.Rand
	nodes   map[ring.GatewayID]*Roster
	order   []ring.GatewayID // of the nodes, as ids saw them last
	queue   []envelope
	sent    []envelope // everything ever sent to anybody
	actions map[ring.GatewayID][]Action
	loss    float64                            // of messages that are lost
	twice   float64                            // of messages that arrive twice
	cut     func(from, to ring.GatewayID) bool // what is lost for certain; nil: nothing
	change  func(*Config)
}

type envelope struct {
	from, to ring.GatewayID
	bytes    []byte
}

func newFleet(t *testing.T, ids ...ring.GatewayID) *fleet {
	f := &fleet{
		t:       t,
		now:     epoch,
		rng:     rand.New(rand.NewPCG(1, 2)),
		nodes:   make(map[ring.GatewayID]*Roster),
		actions: make(map[ring.GatewayID][]Action),
	}
	for _, id := range ids {
		f.start(id, 1)
	}
	return f
}

func (f *fleet) start(id ring.GatewayID, inc placement.Incarnation) {
	cfg := Config{Gateway: id, Incarnation: inc, Endpoint: fmt.Sprintf("%s.%d:443", id, inc), Ring: smallRing}
	if f.change != nil {
		f.change(&cfg)
	}
	r, err := New(f.now, cfg)
	require.NoError(f.t, err)
	f.nodes[id] = r
}

// step steps one roster, without delivering anything.
func (f *fleet) step(id ring.GatewayID, ev Event) []Action {
	actions := f.nodes[id].Step(f.now, ev)
	f.actions[id] = append(f.actions[id], actions...)
	for _, a := range actions {
		send, ok := a.(Send)
		if !ok {
			continue
		}
		b := Append(nil, send.Message)
		for _, to := range f.ids() {
			if to != id && (send.To == "" || send.To == to) {
				f.post(envelope{from: id, to: to, bytes: b})
			}
		}
	}
	return actions
}

func (f *fleet) post(e envelope) {
	f.sent = append(f.sent, e)
	if f.cut != nil && f.cut(e.from, e.to) || f.rng.Float64() < f.loss {
		return
	}
	f.queue = append(f.queue, e)
	if f.rng.Float64() < f.twice {
		f.queue = append(f.queue, e)
	}
}

// ids returns the gateways that run, in order.
func (f *fleet) ids() []ring.GatewayID {
	stopped := func(id ring.GatewayID) bool { return f.nodes[id] == nil }
	if len(f.order) != len(f.nodes) || slices.ContainsFunc(f.order, stopped) {
		f.order = slices.Sorted(maps.Keys(f.nodes))
	}
	return f.order
}

// deliver delivers one message, in order or not.
func (f *fleet) deliver(i int) {
	e := f.queue[i]
	f.queue = slices.Delete(f.queue, i, i+1)
	f.hand(e)
}

func (f *fleet) hand(e envelope) {
	m, err := Decode(e.bytes)
	require.NoError(f.t, err)
	if f.nodes[e.to] != nil {
		f.step(e.to, Received{From: e.from, Message: m})
	}
}

// settle delivers everything, in order, at this moment.
func (f *fleet) settle() {
	for len(f.queue) > 0 {
		f.deliver(0)
	}
}

// run lets time pass: ticks when due, and messages that arrive at once.
func (f *fleet) run(d time.Duration) {
	end := f.now.Add(d)
	for f.settle(); ; f.settle() {
		var next ring.GatewayID
		first := end
		for _, id := range f.ids() {
			due, ok := f.nodes[id].Deadline()
			if ok && due.Before(first) {
				next, first = id, due
			}
		}
		if next == "" {
			f.now = end
			return
		}
		if first.After(f.now) {
			f.now = first
		}
		f.step(next, Tick{})
	}
}

// took returns a roster's actions of one type since the last call, and forgets the rest.
func took[T Action](f *fleet, id ring.GatewayID) []T {
	var found []T
	for _, a := range f.actions[id] {
		if a, ok := a.(T); ok {
			found = append(found, a)
		}
	}
	f.actions[id] = nil
	return found
}

func home(r *Roster, m ring.MemberID) string {
	id, e, ok := r.Home(m)
	if !ok {
		return "nowhere"
	}
	return fmt.Sprintf("%s gen %d", id, e.Generation)
}

func members(r *Roster, id ring.GatewayID) map[ring.MemberID]Entry {
	got := make(map[ring.MemberID]Entry)
	for e := range r.Members(id) {
		got[e.Member] = e
	}
	return got
}

func gateway(t *testing.T, r *Roster, id ring.GatewayID) placement.Gateway {
	g, ok := r.Gateway(id)
	require.True(t, ok, "%s does not know %s", r.Self(), id)
	return g
}

// audit counts everything anew from the entries, and compares.
func audit(t *testing.T, r *Roster) {
	t.Helper()
	type spot struct {
		rec *record
		e   Entry
	}
	best := make(map[ring.MemberID]spot)
	listed := 0
	for _, rec := range r.sorted {
		var digest uint64
		attached, held := 0, 0
		seen := make(map[ring.MemberID]bool)
		for e := range r.Members(rec.id) {
			require.False(t, seen[e.Member])
			seen[e.Member] = true
			listed++
			digest += fingerprint(e.Member.Hash(), e.Generation, e.Held)
			if e.Held {
				held++
			} else {
				attached++
			}
			if b, ok := best[e.Member]; !ok || e.Generation > b.e.Generation {
				best[e.Member] = spot{rec, e} // equal: the lower ID, which came first
			}
		}
		require.Equal(t, rec.digest, digest)
		require.Equal(t, rec.attached, attached)
		require.Equal(t, rec.held, held)
	}
	displaced, unnamed := 0, 0
	for m, b := range best {
		id, e, ok := r.Home(m)
		require.True(t, ok)
		require.Equal(t, b.rec.id, id)
		require.Equal(t, b.e, e)
		if e.Held || b.rec.suspect || b.rec.delisted || b.rec.state == placement.Draining {
			displaced++
		}
		for id := range r.Holders(m) {
			listed--
			require.Equal(t, m, members(r, id)[m].Member)
		}
	}
	require.Zero(t, listed)
	require.Len(t, r.claims.places, len(best))
	for g := range r.Gateways() {
		raw := r.counts(r.byID[g.ID])
		if !g.Suspect {
			unnamed += raw.Reserved
		}
		unnamed += max(0, raw.Attached+raw.Held-len(members(r, g.ID)))
	}
	require.Equal(t, len(best)+max(0, unnamed-displaced), r.Live())
}

// fuzzed does what one byte says.
func fuzzed(f *fleet, b byte, g placement.Generation) {
	ids := f.ids()
	id, other := ids[int(b>>4)%len(ids)], ids[int(b>>6)%len(ids)]
	m := ring.MemberID(rune('a' + b>>5))
	switch b & 15 {
	case 0, 1:
		f.step(id, Attached{m, g})
	case 2:
		f.step(id, Held{m, g})
	case 3:
		f.step(id, Left{m, g})
	case 4:
		f.step(id, Reserved{int(b >> 4)})
	case 5:
		f.step(id, StateChanged{placement.State(b >> 6)})
	case 6:
		f.step(id, LinkUp{other})
	case 7:
		f.step(id, LinkLost{other})
	case 8:
		f.step(id, Departed{Gateway: other, Incarnation: placement.Incarnation(b >> 6)})
	case 9:
		f.step(id, Discovered{Gateways: ids[b>>6:], Partial: b&16 != 0})
	case 10:
		f.step(id, DiscoveryFailed{})
	case 11:
		f.start(id, f.nodes[id].self.incarnation+placement.Incarnation(b>>6))
	case 12, 13:
		if len(f.queue) > 0 {
			f.deliver(int(b>>4) % len(f.queue))
		}
	case 14:
		f.run(time.Duration(b>>4) * time.Second)
	case 15:
		f.queue = nil
	}
}
