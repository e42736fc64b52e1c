// SPDX-License-Identifier: Apache-2.0

package roster

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/evenring/evenring/ring"
)

func (r *Roster) linkUp(now time.Time, id ring.GatewayID) {
	if id == r.self.id {
		r.reject(id, fmt.Errorf("%w: gateway %q", ErrSelf, id))
		return
	}
	if id == "" {
		return
	}
	if rec := r.peer(id); rec != nil {
		r.alive(now, rec)
		r.askAnew(now, rec)
	} else {
		r.readiness.await(id)
	}
	r.send(id, r.heartbeat())
}

func (r *Roster) linkLost(id ring.GatewayID) {
	if rec := r.peer(id); rec != nil {
		r.setSuspect(rec, true)
	}
}

func (r *Roster) departed(now time.Time, ev Departed) {
	rec := r.peer(ev.Gateway)
	if ev.Gateway == r.self.id || rec != nil && ev.Incarnation != 0 && ev.Incarnation < rec.incarnation {
		return
	}
	if rec != nil {
		ev.Incarnation = max(ev.Incarnation, rec.incarnation)
		r.strike(rec)
	}
	r.readiness.forget(ev.Gateway)
	maps.DeleteFunc(r.gone, func(_ ring.GatewayID, d departure) bool { return !now.Before(d.until) })
	if ev.Incarnation != 0 && ev.Incarnation >= r.gone[ev.Gateway].incarnation { // two may have had this ID
		r.gone[ev.Gateway] = departure{incarnation: ev.Incarnation, until: now.Add(r.cfg.TimeToLive)}
	}
}

func (r *Roster) discovered(now time.Time, ev Discovered) {
	alone := len(r.sorted) == 1
	if ev.Partial || len(ev.Gateways) == 0 && !alone {
		for _, id := range ev.Gateways {
			r.relist(id)
		}
		r.doubt(true)
		return
	}
	before := r.listing
	r.listing = make(map[ring.GatewayID]struct{}, len(ev.Gateways))
	r.readiness.discovered()
	for _, id := range ev.Gateways {
		r.listing[id] = struct{}{}
		r.relist(id)
	}
	for id := range before {
		if _, listed := r.listing[id]; listed {
			continue
		}
		if rec := r.peer(id); rec != nil && !rec.delisted {
			rec.delisted = true
			r.changed()
		}
	}
	r.discoveredSelf()
	r.doubt(false)
	r.wake(now)
	r.changed()
}

// discoveredSelf looks for this gateway itself in a complete list. One that
// names nobody is no word against it.
func (r *Roster) discoveredSelf() {
	if _, listed := r.listing[r.self.id]; listed {
		r.listed = true
		return
	}
	if r.listed && !r.self.delisted && len(r.listing) > 0 {
		r.self.delisted = true
		r.changed()
		r.do(Delisted{})
	}
}

// relist notes that discovery lists the gateway.
func (r *Roster) relist(id ring.GatewayID) {
	if id != r.self.id {
		r.readiness.await(id)
	}
	if rec := r.byID[id]; rec != nil && rec.delisted {
		rec.delisted = false
		r.changed()
	}
}

// doubt notes whether discovery's last word is to be doubted.
func (r *Roster) doubt(doubtful bool) {
	if r.doubtful != doubtful {
		r.doubtful = doubtful
		r.changed()
	}
}

// alive notes a sign of life.
func (r *Roster) alive(now time.Time, rec *record) {
	if r.allSilent(now) {
		// The silence of all ends here. Whoever was cut off together with this
		// one gets as long to be heard again.
		for _, other := range r.sorted {
			other.expires = now.Add(r.cfg.TimeToLive)
		}
		r.changed() // the view is not stale any more, and whoever waits for that has to look
	}
	rec.heardAt = now
	rec.expires = now.Add(r.cfg.TimeToLive)
	r.wake(rec.expires)
	if rec.suspect {
		r.wake(now) // others may have been kept for want of anybody heard
	}
	r.setSuspect(rec, false)
}

func (r *Roster) setSuspect(rec *record, suspect bool) {
	if rec.suspect != suspect {
		rec.suspect = suspect
		r.changed()
	}
}

// silent reports whether the peer has been silent for so long that it would
// have been heard if it could: had all peers fallen silent together, all would be
// silent before the first of them has reached its time-to-live.
func (r *Roster) silent(now time.Time, rec *record) bool {
	return now.Sub(rec.heardAt) > r.cfg.TimeToLive-r.cfg.Heartbeat
}

func (r *Roster) allSilent(now time.Time) bool {
	for _, rec := range r.sorted {
		if rec != r.self && !r.silent(now, rec) {
			return false
		}
	}
	return true
}

// hearsSomebody reports whether any peer is heard and not suspect.
func (r *Roster) hearsSomebody(now time.Time) bool {
	for _, rec := range r.sorted {
		if rec != r.self && !rec.suspect && !r.silent(now, rec) {
			return true
		}
	}
	return false
}

// excuse does not count as anybody's silence the time in which this process
// itself stood still: its timer is late by more than a heartbeat, and what was sent to it meanwhile is
// still to come.
func (r *Roster) excuse(now time.Time) {
	due, ok := r.Deadline()
	if late := now.Sub(due); ok && late > r.cfg.Heartbeat {
		for _, rec := range r.sorted {
			rec.expires = rec.expires.Add(late)
		}
	}
}

// sweep does what is due for each record, and finds when the next is due.
func (r *Roster) sweep(now time.Time) {
	r.wakeAt = time.Time{}
	hears := r.hearsSomebody(now)
	for _, rec := range slices.Clone(r.sorted) {
		if rec == r.self {
			continue
		}
		if !rec.askAt.IsZero() {
			if !now.Before(rec.askAt) {
				r.ask(now, rec)
			}
			if !rec.askAt.IsZero() {
				r.wake(rec.askAt)
			}
		}
		switch {
		case now.Before(rec.expires):
			r.wake(rec.expires)
		case !r.doubtful && (hears || rec.delisted || r.unlisted(rec)):
			r.readiness.forget(rec.id)
			r.strike(rec)
		default:
			r.setSuspect(rec, true)
		}
	}
}

// unlisted reports whether discovery's last complete list has this gateway and
// not that one. It may never have had it: one that died before discovery saw it
// can still be known, from a word of its own that was late.
func (r *Roster) unlisted(rec *record) bool {
	_, self := r.listing[r.self.id]
	_, listed := r.listing[rec.id]
	return self && !listed
}
