// SPDX-License-Identifier: Apache-2.0

package roster

import (
	"math/bits"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// outbox gathers own changes until they are told.
type outbox struct {
	due      time.Time // when to tell; zero: nothing to tell
	from     uint64    // the number that was told last
	changes  []numbered
	at       map[ring.MemberID]int // where in changes a member is
	overflow bool                  // too many: they are dropped, and peers ask for a snapshot
}

// numbered is a change with its number. It is void once its member has changed again.
type numbered struct {
	sequence uint64
	change   Change
	void     bool
}

func (o *outbox) open() bool { return !o.due.IsZero() }

// add notes the member's newest change.
func (o *outbox) add(sequence uint64, c Change, limit int) {
	if !o.open() || o.overflow {
		return
	}
	if i, ok := o.at[c.Member]; ok {
		o.changes[i].void = true
		if c.Op == OpLeft {
			c.Generation = max(c.Generation, o.changes[i].change.Generation)
		}
	}
	if len(o.changes) >= limit {
		o.clear()
		o.overflow = true
		return
	}
	o.at[c.Member] = len(o.changes)
	o.changes = append(o.changes, numbered{sequence: sequence, change: c})
}

func (o *outbox) clear() {
	clear(o.changes)
	o.changes = o.changes[:0]
	clear(o.at)
	o.overflow = false
}

func (r *Roster) attach(now time.Time, e Entry) {
	if e.Member == "" {
		return
	}
	first, own := r.claims.find(r.self, e.Member)
	if own != 0 && r.claims.at(own).generation > e.Generation {
		return
	}
	if own != 0 {
		r.spare(own)
	}
	if changed, _ := r.claims.put(r.self, e, first, own, false); changed == nil {
		return
	}
	op := OpAttached
	if e.Held {
		op = OpHeld
	}
	r.note(now, Change{Member: e.Member, Generation: e.Generation, Op: op})
}

func (r *Roster) leave(now time.Time, ev Left) {
	_, own := r.claims.find(r.self, ev.Member)
	if own == 0 || r.claims.at(own).generation > ev.Generation {
		return
	}
	r.spare(own)
	r.claims.remove(r.self, own)
	r.note(now, Change{Member: ev.Member, Generation: ev.Generation, Op: OpLeft})
}

func (r *Roster) reserve(now time.Time, count int) {
	count = min(max(count, 0), maxCount)
	if count == r.self.newest.Reserved {
		return
	}
	r.self.newest.Reserved = count
	r.advance(now)
}

func (r *Roster) changeState(now time.Time, s placement.State) {
	if s == r.self.state {
		return
	}
	r.self.state = s
	r.advance(now)
	r.flush()
}

// note numbers a change of a member here and puts it in the outbox.
func (r *Roster) note(now time.Time, c Change) {
	r.advance(now)
	r.outbox.add(r.self.have, c, r.cfg.Outbox)
}

// advance numbers a change here.
func (r *Roster) advance(now time.Time) {
	r.self.have++
	r.dropCut()
	r.changed()
	if r.superseded == 0 && !r.outbox.open() {
		r.outbox.due = now.Add(r.cfg.Batch)
	}
}

// flush tells every peer what has gathered.
func (r *Roster) flush() {
	o := &r.outbox
	if !o.open() {
		return
	}
	o.due = time.Time{}
	from, overflow := o.from, o.overflow
	o.from = r.self.have
	if overflow {
		o.clear()
		r.send("", r.beat())
		return
	}
	origin := r.origin()
	room := r.room()
	changes := make([]Change, 0, len(o.at))
	size := 0
	for _, n := range o.changes {
		if n.void {
			continue
		}
		s := encodedSize(n.change.Member, n.change.Generation)
		if len(changes) > 0 && size+s > room {
			// A member that changed again later is missing from this part
			// and present in a later one.
			part := origin
			part.Sequence = n.sequence - 1
			r.send("", Delta{Origin: part, From: from, Changes: changes})
			from, changes, size = part.Sequence, nil, 0
		}
		changes = append(changes, n.change)
		size += s
	}
	o.clear()
	r.send("", Delta{Origin: origin, From: from, Changes: changes})
}

func (r *Roster) send(to ring.GatewayID, m Message) {
	if r.superseded == 0 {
		r.do(Send{To: to, Message: m})
	}
}

// heartbeat tells what has gathered and returns the heartbeat to follow it.
func (r *Roster) heartbeat() Heartbeat {
	r.flush()
	return r.beat()
}

func (r *Roster) beat() Heartbeat {
	return Heartbeat{Origin: r.origin(), Digest: r.self.digest, Layout: r.self.layout}
}

func (r *Roster) origin() Origin {
	return Origin{
		Gateway:  r.self.id,
		Endpoint: r.self.endpoint,
		State:    r.self.state,
		Counts:   r.counts(r.self),
	}
}

// counts returns the newest figures of a gateway.
func (r *Roster) counts(rec *record) placement.Counts {
	if rec != r.self {
		return rec.newest
	}
	return placement.Counts{
		Incarnation: rec.incarnation,
		Sequence:    rec.have,
		Attached:    rec.attached,
		Held:        rec.held,
		Reserved:    rec.newest.Reserved,
	}
}

// room is what a message has for members.
func (r *Roster) room() int {
	const rest = 96 // ten numbers at their longest
	return max(1, r.cfg.PageBytes-rest-len(r.self.id)-len(r.self.endpoint))
}

func encodedSize(m ring.MemberID, g placement.Generation) int {
	return uvarintSize(uint64(len(m))) + len(m) + uvarintSize(uint64(g)) + 1
}

func uvarintSize(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }
