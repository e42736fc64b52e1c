// SPDX-License-Identifier: Apache-2.0

package roster

import (
	"slices"
	"strings"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// Roster is one gateway's own record and its copies of everybody else's. It is
// made by [New]. It is not safe for concurrent use; reads count as use. Its
// memory follows the highest number of entries that it has had.
type Roster struct {
	cfg    Config
	self   *record
	claims claims
	byID   map[ring.GatewayID]*record
	sorted []*record // self included, in ID order
	vacant []uint32  // slots of removed records

	circle  *ring.Ring
	stale   bool // the circle is not that of sorted
	version uint64
	stats   Stats
	out     []Action

	outbox     outbox
	cut        cut                   // for those who ask; complete, it is kept until the record changes or a heartbeat passes
	slice      int                   // how many members are put on pages in one step
	superseded placement.Incarnation // the newest process under this ID, if that is not this one
	beatAt     time.Time             // when the next heartbeat goes out
	wakeAt     time.Time             // no record needs anything before; zero: none does

	gone      map[ring.GatewayID]departure
	listing   map[ring.GatewayID]struct{} // discovery's last complete list
	listed    bool                        // a complete list has had this gateway
	doubtful  bool                        // discovery's last word was no complete list
	readiness readiness
}

// departure bars what is still under way from a gateway that left.
type departure struct {
	incarnation placement.Incarnation
	until       time.Time
}

// New returns the roster of a gateway that starts now: starting, serving
// nobody, knowing nobody. Its first heartbeat is due at once. It computes one
// ring, which takes about 1 ms with the default [Config].Ring.
func New(now time.Time, cfg Config) (*Roster, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	layout, err := layoutOf(cfg.Ring)
	if err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	r := &Roster{
		cfg:    cfg,
		claims: newClaims(),
		byID:   make(map[ring.GatewayID]*record),
		outbox: outbox{at: make(map[ring.MemberID]int)},
		beatAt: now,
		slice:  sliceMembers,
		gone:   make(map[ring.GatewayID]departure),
		readiness: readiness{
			graceEnds: now.Add(cfg.Grace),
			awaited:   make(map[ring.GatewayID]struct{}),
		},
	}
	r.self = r.enrol(cfg.Gateway, cfg.Incarnation)
	r.self.endpoint = cfg.Endpoint
	r.self.layout = layout
	return r, nil
}

// Step takes what happened at now and returns what is to be done. It never
// fails: what makes no sense is ignored, and said to be so by [Rejected].
func (r *Roster) Step(now time.Time, ev Event) []Action {
	r.out = nil
	r.claims.now = now
	r.excuse(now)
	switch ev := ev.(type) {
	case Attached:
		r.attach(now, Entry{Member: ev.Member, Generation: ev.Generation})
	case Held:
		r.attach(now, Entry{Member: ev.Member, Generation: ev.Generation, Held: true})
	case Left:
		r.leave(now, ev)
	case Reserved:
		r.reserve(now, ev.Count)
	case StateChanged:
		r.changeState(now, ev.State)
	case Received:
		r.receive(now, ev)
	case Hinted:
		r.hint(ev.Reports)
	case LinkUp:
		r.linkUp(now, ev.Gateway)
	case LinkLost:
		r.linkLost(ev.Gateway)
	case Heard:
		if rec := r.peer(ev.Gateway); rec != nil {
			r.alive(now, rec)
		}
	case Departed:
		r.departed(now, ev)
	case Discovered:
		r.discovered(now, ev)
	case DiscoveryFailed:
		r.doubt(true)
	}
	r.timers(now)
	out := r.out
	r.out = nil
	return out
}

// Deadline returns when a [Tick] is due. It is false only for a superseded
// roster that waits for nothing. Steps in between may move it.
func (r *Roster) Deadline() (time.Time, bool) {
	var first time.Time
	soonest := func(t time.Time) {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	if r.superseded == 0 {
		soonest(r.beatAt)
		soonest(r.outbox.due)
		soonest(r.cut.due)
	}
	soonest(r.wakeAt)
	if !r.readiness.reached {
		soonest(r.readiness.graceEnds)
	}
	return first, !first.IsZero()
}

func (r *Roster) timers(now time.Time) {
	if r.superseded == 0 {
		if r.outbox.open() && !now.Before(r.outbox.due) {
			r.flush()
		}
		if r.cut.growing() && !now.Before(r.cut.due) {
			r.growCut(now)
		}
		if !now.Before(r.beatAt) {
			r.beatAt = now.Add(r.cfg.Heartbeat)
			r.dropCut()
			r.send("", r.heartbeat())
		}
	}
	if !r.wakeAt.IsZero() && !now.Before(r.wakeAt) {
		r.sweep(now)
	}
	r.checkReady(now)
}

func (r *Roster) do(a Action) { r.out = append(r.out, a) }

func (r *Roster) reject(from ring.GatewayID, err error) { r.do(Rejected{From: from, Err: err}) }

// changed notes that a view of this roster has something to see.
func (r *Roster) changed() { r.version++ }

// wake makes sure that sweep is run by then.
func (r *Roster) wake(at time.Time) {
	if r.wakeAt.IsZero() || at.Before(r.wakeAt) {
		r.wakeAt = at
	}
}

// peer returns the copy of another gateway's record, or nil.
func (r *Roster) peer(id ring.GatewayID) *record {
	if rec := r.byID[id]; rec != r.self {
		return rec
	}
	return nil
}

// enrol adds an empty record.
func (r *Roster) enrol(id ring.GatewayID, inc placement.Incarnation) *record {
	rec := &record{
		id:          ring.GatewayID(strings.Clone(string(id))),
		incarnation: inc,
		anchor:      r.claims.anchor(),
	}
	if n := len(r.vacant); n > 0 {
		rec.slot = r.vacant[n-1]
		r.vacant = r.vacant[:n-1]
		r.claims.records[rec.slot] = rec
	} else {
		rec.slot = uint32(len(r.claims.records))
		r.claims.records = append(r.claims.records, rec)
	}
	r.byID[rec.id] = rec
	at, _ := r.search(id)
	r.sorted = slices.Insert(r.sorted, at, rec)
	r.stale = true
	r.changed()
	return rec
}

// strike removes a record and its members.
func (r *Roster) strike(rec *record) {
	r.empty(rec, rec.anchor)
	r.claims.release(rec.anchor)
	r.claims.records[rec.slot] = nil
	r.vacant = append(r.vacant, rec.slot)
	delete(r.byID, rec.id)
	at, _ := r.search(rec.id)
	r.sorted = slices.Delete(r.sorted, at, at+1)
	r.stale = true
	r.changed()
}

// empty removes all of the record's claims in the circle around the anchor.
func (r *Roster) empty(rec *record, anchor ref) {
	for {
		c := r.claims.at(anchor).next
		if c == anchor {
			return
		}
		r.claims.remove(rec, c)
	}
}

func (r *Roster) search(id ring.GatewayID) (int, bool) {
	return slices.BinarySearchFunc(r.sorted, id, func(rec *record, id ring.GatewayID) int {
		return strings.Compare(string(rec.id), string(id))
	})
}
