// SPDX-License-Identifier: Apache-2.0

package roster

import (
	"slices"
	"time"

	"github.com/evenring/evenring/ring"
)

// A whole record is cut into pages a slice at a time, so that no step takes
// long, however large the record is: supervisors go on attaching meanwhile.
const (
	sliceMembers = 4096
	slicePause   = time.Millisecond // between two slices
)

// cut is the own record at one number, on pages, or on its way there. A member
// that changes meanwhile is put on a page first, as it was at that number.
type cut struct {
	head   Snapshot // what all pages have in common
	pages  [][]Entry
	size   int              // of the last page
	next   ref              // the claim to go on with, or the record's anchor
	due    time.Time        // when to go on; zero: it is complete, or there is none
	askers []ring.GatewayID // who gets it
	later  []ring.GatewayID // who is beyond its number already, and gets the one after it
}

func (c *cut) growing() bool { return !c.due.IsZero() }

// snapshot sends the whole record to a gateway whose copy has got to a number.
// Many may ask at once, as after an overflow: what one is given, all can be given.
func (r *Roster) snapshot(now time.Time, to ring.GatewayID, have uint64) {
	if r.superseded != 0 {
		return
	}
	r.flush()
	c := &r.cut
	if c.growing() && have > c.head.Sequence {
		c.later = include(c.later, to)
		return
	}
	c.askers = include(c.askers, to)
	if c.growing() {
		return
	}
	if c.pages == nil {
		r.startCut()
	}
	r.growCut(now)
}

func include(ids []ring.GatewayID, id ring.GatewayID) []ring.GatewayID {
	if slices.Contains(ids, id) {
		return ids
	}
	return append(ids, id)
}

// startCut fixes the number. From now on the claims that there are have the phase of those that are on no page.
func (r *Roster) startCut() {
	c := &r.cut
	r.self.phase ^= phaseBit
	c.head = Snapshot{Origin: r.origin(), Digest: r.self.digest}
	c.pages = [][]Entry{make([]Entry, 0, min(r.self.attached+r.self.held, r.room()/32))}
	c.size = 0
	c.next = r.claims.at(r.self.anchor).next
}

// growCut puts a slice on pages, and sends them once they are all there.
func (r *Roster) growCut(now time.Time) {
	for range r.slice {
		if r.cutThrough() {
			break
		}
		at := r.cut.next
		r.cut.next = r.claims.at(at).next
		r.putOnPage(at)
	}
	if r.cutThrough() {
		r.giveCut(now)
	} else {
		r.cut.due = now.Add(slicePause)
	}
}

// cutThrough reports whether everything is on pages. What changes while the record is cut
// goes to the end of its circle, and has the other phase: there is nothing to do from there on.
func (r *Roster) cutThrough() bool {
	return r.cut.next == r.self.anchor || !r.uncut(r.cut.next)
}

func (r *Roster) uncut(at ref) bool { return r.claims.at(at).owner&phaseBit != r.self.phase }

// spare is called before a claim of this gateway's own changes or goes.
func (r *Roster) spare(at ref) {
	if !r.cut.growing() {
		return
	}
	if r.cut.next == at {
		r.cut.next = r.claims.at(at).next
	}
	if r.uncut(at) {
		r.putOnPage(at)
	}
}

func (r *Roster) putOnPage(at ref) {
	claim := r.claims.at(at)
	claim.owner ^= phaseBit
	c := &r.cut
	e := claim.entry()
	size := encodedSize(e.Member, e.Generation)
	last := &c.pages[len(c.pages)-1]
	if len(*last) > 0 && c.size+size > r.room() {
		c.pages = append(c.pages, make([]Entry, 0, len(*last)))
		c.size = 0
		last = &c.pages[len(c.pages)-1]
	}
	*last = append(*last, e)
	c.size += size
}

// giveCut sends the pages to those who asked, and begins anew for those who need more.
func (r *Roster) giveCut(now time.Time) {
	c := &r.cut
	for _, to := range c.askers {
		page := c.head
		page.Pages = len(c.pages)
		for page.Page, page.Entries = range c.pages {
			r.send(to, page)
		}
		r.stats.SnapshotsSent++
	}
	later := c.later
	c.due, c.askers, c.later = time.Time{}, nil, nil
	if r.self.have != c.head.Sequence {
		r.dropCut()
	}
	if len(later) > 0 {
		c.askers = later
		r.startCut()
		c.due = now.Add(slicePause)
	}
}

// dropCut forgets pages that are complete.
func (r *Roster) dropCut() {
	if r.cut.pages != nil && !r.cut.growing() {
		r.cut = cut{}
	}
}
