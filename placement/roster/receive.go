// SPDX-License-Identifier: Apache-2.0

package roster

import (
	"fmt"
	"strings"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

func (r *Roster) receive(now time.Time, ev Received) {
	if ev.Message == nil {
		r.reject(ev.From, fmt.Errorf("%w: none", ErrInvalidMessage))
		return
	}
	if err := ev.Message.validate(); err != nil {
		r.reject(ev.From, err)
		return
	}
	if speaker := ev.Message.speaker(); ev.From != "" && ev.From != speaker {
		r.reject(ev.From, fmt.Errorf("%w: %q for %q", ErrForeign, ev.From, speaker))
		return
	}
	switch m := ev.Message.(type) {
	case Heartbeat:
		if rec := r.hear(now, m.Origin); rec != nil {
			r.receiveHeartbeat(now, rec, m)
		}
	case Delta:
		if rec := r.hear(now, m.Origin); rec != nil {
			r.receiveDelta(now, rec, m)
		}
	case Snapshot:
		if rec := r.hear(now, m.Origin); rec != nil {
			r.receiveSnapshot(now, rec, m)
		}
	case SnapshotRequest:
		r.receiveRequest(now, m)
	}
}

// hear takes what every message of a gateway says about itself, and returns
// its record, or nil if the message is to be ignored.
func (r *Roster) hear(now time.Time, o Origin) *record {
	if o.Gateway == r.self.id {
		r.hearSelf(now, o)
		return nil
	}
	if d, ok := r.gone[o.Gateway]; ok && o.Incarnation <= d.incarnation && now.Before(d.until) {
		r.reject(o.Gateway, fmt.Errorf("%w: gateway %q, %d has left", ErrOldIncarnation, o.Gateway, o.Incarnation))
		return nil
	}
	rec := r.peer(o.Gateway)
	if rec != nil && o.Incarnation < rec.incarnation {
		r.reject(o.Gateway, fmt.Errorf("%w: gateway %q, %d after %d", ErrOldIncarnation, o.Gateway, o.Incarnation, rec.incarnation))
		return nil
	}
	newcomer := rec == nil || o.Incarnation > rec.incarnation
	switch {
	case rec == nil:
		rec = r.enrol(o.Gateway, o.Incarnation)
	case newcomer:
		r.restart(rec, o.Incarnation)
	}
	r.alive(now, rec)
	if newcomer || o.Sequence > rec.told {
		rec.told = o.Sequence
		if rec.state != o.State || rec.endpoint != o.Endpoint {
			rec.state = o.State
			rec.endpoint = strings.Clone(o.Endpoint)
			r.changed()
		}
	}
	if o.Counts.Newer(rec.newest) {
		rec.newest = o.Counts
		r.changed()
	}
	if newcomer {
		r.send(rec.id, r.heartbeat())
	}
	return rec
}

// hearSelf takes a message that bears this gateway's own ID.
func (r *Roster) hearSelf(now time.Time, o Origin) {
	own := r.self.incarnation
	switch {
	case o.Incarnation == own && (o.Sequence > r.self.have || o.Endpoint != r.self.endpoint):
		r.reject(o.Gateway, fmt.Errorf("%w: gateway %q, %d, at %q, number %d", ErrTwin, o.Gateway, own, o.Endpoint, o.Sequence))
	case o.Incarnation == own:
		r.reject(o.Gateway, fmt.Errorf("%w: gateway %q, %d", ErrSelf, o.Gateway, own))
	case o.Incarnation > max(own, r.superseded):
		r.superseded = o.Incarnation
		r.outbox = outbox{at: make(map[ring.MemberID]int), from: r.self.have}
		r.cut = cut{}
		r.changed()
		r.do(Conflict{Incarnation: o.Incarnation, Endpoint: strings.Clone(o.Endpoint)})
	case o.Incarnation < own:
		// An earlier start lives on, or its last words are late. If it lives, this tells it.
		r.reject(o.Gateway, fmt.Errorf("%w: gateway %q, %d before this one", ErrOldIncarnation, o.Gateway, o.Incarnation))
		r.beatAt = now
	}
}

// restart makes the record that of a newer incarnation.
func (r *Roster) restart(rec *record, inc placement.Incarnation) {
	r.empty(rec, rec.anchor)
	*rec = record{
		id:          rec.id,
		slot:        rec.slot,
		anchor:      rec.anchor,
		incarnation: inc,
		newest:      rec.newest,
		changedAt:   rec.changedAt,
	}
	r.changed()
}

func (r *Roster) receiveHeartbeat(now time.Time, rec *record, m Heartbeat) {
	rec.asked = false
	r.receiveLayout(rec, m.Layout)
	if m.Sequence == rec.have {
		rec.wrong = m.Digest != rec.digest
		rec.caughtUp()
	}
	if rec.behind() {
		r.askSoon(now, rec)
	}
}

func (r *Roster) receiveDelta(now time.Time, rec *record, m Delta) {
	switch {
	case m.Sequence <= rec.have:
	case m.From > rec.have:
		r.stats.Gaps++
		rec.keep(m, r.cfg.Outbox)
		r.askSoon(now, rec)
	default:
		r.apply(rec, m)
		r.catchUp(rec)
	}
}

func (r *Roster) receiveSnapshot(now time.Time, rec *record, m Snapshot) {
	if m.Sequence < rec.have || m.Sequence == rec.have && !rec.behind() || !rec.pages.add(now, m) {
		return
	}
	got := rec.pages.got
	rec.pages = pages{}
	total := 0
	for _, entries := range got {
		total += len(entries)
	}
	r.claims.expect(total - rec.attached - rec.held)
	placed := Placed{Gateway: rec.id}
	if rec.attached+rec.held == 0 {
		placed.Entries = make([]Entry, 0, total)
	}
	stale := r.claims.split(rec)
	for i := range m.Pages {
		for _, e := range got[i] {
			r.put(rec, e, &placed)
		}
	}
	r.empty(rec, stale)
	r.claims.release(stale)
	rec.have = m.Sequence
	rec.asked = false
	rec.wrong = rec.digest != m.Digest
	r.stats.Snapshots++
	r.changed()
	if len(placed.Entries) > 0 {
		r.do(placed)
	}
	r.catchUp(rec)
}

// receiveRequest answers who asks for this gateway's record. One who asks for another
// incarnation is told which this is, and will ask again if it needs to.
func (r *Roster) receiveRequest(now time.Time, m SnapshotRequest) {
	if m.Gateway != r.self.id {
		return
	}
	if m.From == r.self.id {
		r.reject(m.From, fmt.Errorf("%w: gateway %q", ErrSelf, m.From))
		return
	}
	if rec := r.peer(m.From); rec != nil {
		r.alive(now, rec)
	}
	if m.Incarnation != r.self.incarnation {
		r.send(m.From, r.heartbeat())
		return
	}
	r.snapshot(now, m.From, m.Have)
}

// apply takes a delta that continues the record.
func (r *Roster) apply(rec *record, m Delta) {
	placed := Placed{Gateway: rec.id, Entries: make([]Entry, 0, len(m.Changes))}
	for _, c := range m.Changes {
		switch c.Op {
		case OpAttached, OpHeld:
			r.put(rec, Entry{Member: c.Member, Generation: c.Generation, Held: c.Op == OpHeld}, &placed)
		case OpLeft:
			if _, own := r.claims.find(rec, c.Member); own != 0 && r.claims.at(own).generation <= c.Generation {
				r.claims.remove(rec, own)
			}
		}
	}
	rec.have = m.Sequence
	r.changed()
	if len(placed.Entries) > 0 {
		r.do(placed)
	}
}

// put enters e in the record, and in placed if it has become the member's place.
func (r *Roster) put(rec *record, e Entry, placed *Placed) {
	if e.Member == "" {
		return
	}
	first, own := r.claims.find(rec, e.Member)
	if c, moved := r.claims.put(rec, e, first, own, true); moved {
		placed.Entries = append(placed.Entries, c.entry())
	}
}

// catchUp applies the deltas that waited for a gap to close.
func (r *Roster) catchUp(rec *record) {
	for len(rec.waiting) > 0 && rec.waiting[0].From <= rec.have {
		if d := rec.waiting[0]; d.Sequence > rec.have {
			r.apply(rec, d)
		}
		rec.waiting = rec.waiting[1:]
	}
	if len(rec.waiting) == 0 {
		rec.waiting = nil
	}
	rec.caughtUp()
}

// askSoon asks for a snapshot, unless the gap closes by itself: messages
// overtake each other. Once the answer or a heartbeat is there it may ask again at
// once, as a newcomer often must, and four times in a heartbeat from then on: whole
// records are dear, and a gateway that changes faster than it can tell would have
// to send nothing else.
func (r *Roster) askSoon(now time.Time, rec *record) {
	if !rec.askAt.IsZero() {
		return
	}
	rec.askAt = now.Add(r.cfg.Batch)
	next := rec.asking
	if !rec.asked {
		next = next.Add(-r.patience())
	}
	if rec.askAt.Before(next) {
		rec.askAt = next
	}
	r.wake(rec.askAt)
}

// askAnew asks for what a copy lacks, if it does, whatever has been asked for until now: the
// gateway could not be reached, and has not heard it.
func (r *Roster) askAnew(now time.Time, rec *record) {
	if rec.behind() {
		rec.asked, rec.asking, rec.askAt = false, time.Time{}, time.Time{}
		r.askSoon(now, rec)
	}
}

// patience is how long an answer may take before the question is put again.
func (r *Roster) patience() time.Duration { return r.cfg.Heartbeat / 4 }

// ask asks for the snapshot that is due, unless one is on its way: pages that
// keep coming put it off.
func (r *Roster) ask(now time.Time, rec *record) {
	if at := rec.pages.at.Add(r.patience()); rec.pages.got != nil && now.Before(at) {
		rec.askAt = at
		return
	}
	rec.askAt = time.Time{}
	if rec.asking.Before(now) {
		rec.asking = now
	}
	rec.asking = rec.asking.Add(r.patience())
	rec.asked = true
	r.do(Send{To: rec.id, Message: SnapshotRequest{
		From:        r.self.id,
		Gateway:     rec.id,
		Incarnation: rec.incarnation,
		Have:        rec.have,
	}})
}

// hint takes what somebody tells of everybody's counts.
func (r *Roster) hint(reports []placement.Report) {
	for _, h := range reports {
		rec := r.peer(h.Gateway)
		if rec == nil || !plausible(h.Counts) || !h.Counts.Newer(rec.newest) {
			continue
		}
		rec.newest = h.Counts
		r.changed()
	}
}
