// SPDX-License-Identifier: Apache-2.0

package roster

import (
	"iter"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// The sequences returned below may be ranged over more than once, but not
// across a Step.

// Self returns this gateway's ID.
func (r *Roster) Self() ring.GatewayID { return r.self.id }

// Gateways yields every known gateway in ID order, this one included.
func (r *Roster) Gateways() iter.Seq[placement.Gateway] {
	return func(yield func(placement.Gateway) bool) {
		for _, rec := range r.sorted {
			if !yield(r.view(rec)) {
				return
			}
		}
	}
}

// Gateway returns one gateway, and whether it is known.
func (r *Roster) Gateway(id ring.GatewayID) (placement.Gateway, bool) {
	rec := r.byID[id]
	if rec == nil {
		return placement.Gateway{}, false
	}
	return r.view(rec), true
}

// view is the gateway as others see it. Whom it still counts although they are
// known to be served elsewhere, it will not count for long: they are left out
// if its counts are those of its members.
func (r *Roster) view(rec *record) placement.Gateway {
	counts := r.counts(rec)
	if rec != r.self && counts.Incarnation == rec.incarnation && counts.Sequence == rec.have {
		counts.Attached = max(0, counts.Attached-rec.attached+(rec.placed-rec.placedHeld))
		counts.Held = max(0, counts.Held-rec.held+rec.placedHeld)
	}
	return placement.Gateway{
		ID:       rec.id,
		Endpoint: rec.endpoint,
		State:    rec.state,
		Suspect:  rec.untrusted(),
		Known:    true,
		Counts:   counts,
	}
}

// Ring returns the ring over every known gateway, whatever its state. It is
// built anew only after a gateway has come or gone; the result may be used
// and kept by anybody.
func (r *Roster) Ring() *ring.Ring {
	if r.stale {
		ids := make([]ring.GatewayID, len(r.sorted))
		for i, rec := range r.sorted {
			ids[i] = rec.id
		}
		// It fails only for more gateways than a ring can have; the one before
		// then stays in use.
		if circle, err := ring.New(r.cfg.Ring, ids...); err == nil {
			r.circle = circle
		}
		r.stale = false
	}
	return r.circle
}

// Home returns the gateway that is the member's place, with its entry there,
// and whether there is one.
func (r *Roster) Home(m ring.MemberID) (ring.GatewayID, Entry, bool) {
	c, ok := r.claims.place(m)
	if !ok {
		return "", Entry{}, false
	}
	return r.claims.records[c.slot()].id, c.entry(), true
}

// Holders yields every gateway that lists the member, its place first, with
// its entry there.
func (r *Roster) Holders(m ring.MemberID) iter.Seq2[ring.GatewayID, Entry] {
	return func(yield func(ring.GatewayID, Entry) bool) {
		for c := r.claims.places[m]; c != 0; c = r.claims.at(c).other {
			claim := r.claims.at(c)
			if !yield(r.claims.records[claim.slot()].id, claim.entry()) {
				return
			}
		}
	}
}

// Members yields the members that a gateway lists, whether or not it is their
// place, in no order that means anything.
func (r *Roster) Members(id ring.GatewayID) iter.Seq[Entry] {
	rec := r.byID[id]
	if rec == nil {
		return func(func(Entry) bool) {}
	}
	return r.entries(rec)
}

func (r *Roster) entries(rec *record) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for c := r.claims.at(rec.anchor).next; c != rec.anchor; c = r.claims.at(c).next {
			if !yield(r.claims.at(c).entry()) {
				return
			}
		}
	}
}

// HeardAt returns when the gateway last gave a sign of life; the zero time: it is not known.
func (r *Roster) HeardAt(id ring.GatewayID) time.Time {
	if rec := r.peer(id); rec != nil {
		return rec.heardAt
	}
	return time.Time{}
}

// Delisted reports whether discovery has had this gateway in a complete list, and has it no
// more: peers give it nobody.
func (r *Roster) Delisted() bool { return r.self.delisted }

// Version grows with every change that one of the reads could show, the
// passing of time aside. Equal versions show the same.
func (r *Roster) Version() uint64 { return r.version }

// Age returns how long ago the peer that has been silent longest was heard,
// suspects aside: no figure is older than that. It is 0 without such a peer.
func (r *Roster) Age(now time.Time) time.Duration {
	var age time.Duration
	for _, rec := range r.sorted {
		if rec != r.self && !rec.untrusted() {
			age = max(age, now.Sub(rec.heardAt))
		}
	}
	return age
}

// Stale reports whether the view is not to be relied on for sending anybody
// away: peers are known and none of them is heard, or discovery's last word
// was no complete list.
func (r *Roster) Stale(now time.Time) bool {
	return r.doubtful || len(r.sorted) > 1 && !r.hearsSomebody(now)
}

// Reports returns the newest counts of every known gateway in ID order, this
// one included: what to send along with a question or an answer. The slice
// is the caller's.
func (r *Roster) Reports() []placement.Report {
	reports := make([]placement.Report, len(r.sorted))
	for i, rec := range r.sorted {
		reports[i] = placement.Report{Gateway: rec.id, Counts: r.counts(rec)}
	}
	return reports
}

// Stats counts what has happened since New.
type Stats struct {
	Gaps          uint64 // deltas that did not continue a copy
	Snapshots     uint64 // whole records taken from others
	SnapshotsSent uint64 // whole records given to others
}

// Stats returns the counts so far.
func (r *Roster) Stats() Stats { return r.stats }
