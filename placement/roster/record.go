// SPDX-License-Identifier: Apache-2.0

package roster

import (
	"slices"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// record is what is known of one gateway: the owner's own, or a copy.
type record struct {
	id   ring.GatewayID
	slot uint32

	phase uint32 // 0 or phaseBit: that of claims made now; see cut

	incarnation placement.Incarnation
	endpoint    string
	state       placement.State
	layout      uint64           // how it computes rings; 0: it has not said
	newest      placement.Counts // the newest figures, whoever told them
	told        uint64           // the highest number that the gateway itself has named
	have        uint64           // the number that the members have got to

	// The members: a circle of claims, and figures kept by claims.
	anchor     ref
	attached   int
	held       int
	placed     int // members whose place this is
	placedHeld int // of these, the held ones
	digest     uint64
	changedAt  time.Time // when a claim was last entered or removed

	heardAt  time.Time // the last sign of life
	expires  time.Time // when silence has lasted for the time-to-live
	suspect  bool
	delisted bool // was in a complete list of discovery's, and is not any more
	synced   bool // its members were complete once

	wrong   bool      // the digest differed
	asked   bool      // a snapshot has been asked for, and since then neither it nor a heartbeat has come
	asking  time.Time // until when the snapshots asked for so far use up what may be asked
	askAt   time.Time // when to ask for one; zero: no need seen
	waiting []Delta   // beyond a gap, by From
	pages   pages
}

// behind reports whether the members are not what the gateway last said.
func (rec *record) behind() bool { return rec.wrong || rec.have < rec.told }

// caughtUp forgets what a copy that was behind needed, unless it still is.
func (rec *record) caughtUp() {
	if rec.behind() {
		return
	}
	rec.synced = true
	rec.askAt = time.Time{}
	rec.pages = pages{}
}

// untrusted reports whether the gateway may not be given anybody.
func (rec *record) untrusted() bool { return rec.suspect || rec.delisted }

// displaced is how many members whose place this is are expected to turn up elsewhere.
func (rec *record) displaced() int {
	if rec.untrusted() || rec.state == placement.Draining {
		return rec.placed
	}
	return rec.placedHeld
}

// unseen is how many members the gateway has beyond those in its record.
func (rec *record) unseen() int {
	return max(0, rec.newest.Attached+rec.newest.Held-rec.attached-rec.held)
}

// keep stores a delta that lies beyond a gap. Too many give way to the
// snapshot that is coming anyway.
func (rec *record) keep(d Delta, limit int) {
	total := len(d.Changes)
	for _, w := range rec.waiting {
		if w.From == d.From && w.Sequence == d.Sequence {
			return
		}
		total += max(1, len(w.Changes))
	}
	if total > limit {
		rec.waiting = nil
		return
	}
	at, _ := slices.BinarySearchFunc(rec.waiting, d.From, func(w Delta, from uint64) int {
		if w.From < from {
			return -1
		}
		return 1
	})
	rec.waiting = slices.Insert(rec.waiting, at, d)
}

// pages gathers the pages of one snapshot.
type pages struct {
	sequence uint64
	digest   uint64
	count    int
	got      map[int][]Entry
	at       time.Time // when the last one came
}

// add takes a page and reports whether it was the last one missing. Pages of
// an older snapshot are dropped, and those of a newer one start over.
func (p *pages) add(now time.Time, m Snapshot) bool {
	if p.got != nil && m.Sequence < p.sequence {
		return false
	}
	if p.got == nil || m.Sequence != p.sequence || m.Pages != p.count || m.Digest != p.digest {
		*p = pages{sequence: m.Sequence, digest: m.Digest, count: m.Pages, got: make(map[int][]Entry)}
	}
	p.got[m.Page] = m.Entries
	p.at = now
	return len(p.got) == p.count
}
