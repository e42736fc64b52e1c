// SPDX-License-Identifier: Apache-2.0

package redirect

import (
	"time"

	"github.com/evenring/evenring/placement"
)

const outcomeCount = len(outcomeText)

// tally is what can only be counted as it happens; everything else in [Stats] is read from state.
type tally struct {
	verdicts                     [outcomeCount][reasonCount]uint64
	overCap                      [reasonCount]uint64
	placements                   []uint64 // by reason
	asks, askFailures            uint64
	arrived, expired, elsewhere  uint64
	handedOver, closed, forsaken uint64
}

// Stats is a gateway's state in figures, read at one moment: what the metrics
// are made of. The maps are the reader's own.
type Stats struct {
	Served            int // supervisors attached here
	Held              int // supervisors expected back here
	Reserved          int // places kept here for supervisors on their way
	Sessions          int // child sessions served here
	MisplacedSessions int // those whose supervisor is not attached here
	MostSessions      int // the most child sessions on one supervisor attached here

	Live      int     // distinct supervisors in the fleet
	Gateways  int     // known ones, this one included
	Placeable int     // those that may be given supervisors
	Cap       int     // even share, rounded up; 0 if no gateway is placeable
	Skew      float64 // most loaded over mean load of the placeable gateways; 1 if nobody is live
	Balanced  bool    // no two placeable gateways differ by more than one
	Draining  bool
	Delisted  bool // discovery has dropped this gateway: peers give it nobody
	Stale     bool // the view is not to be relied on, and nobody is sent anywhere on it
	ViewAge   time.Duration

	RingMismatches int // known gateways that compute other rings than this one

	Placements map[placement.Reason]uint64
	Verdicts   map[Outcome]map[Reason]uint64
	OverCap    map[Reason]uint64 // accepted above the cap

	Asks        uint64 // questions put to other gateways
	AskFailures uint64 // those without an answer

	// What became of places kept here at another gateway's question. Without a peer link there are none.
	RedirectsArrived   uint64 // taken
	RedirectsExpired   uint64 // nobody came
	RedirectsElsewhere uint64 // the supervisor showed up at another gateway

	HandoffsMoved      uint64 // supervisors handed over that were seen at another gateway
	HandoffsClosed     uint64 // whose stream closed
	HandoffsLeftBehind uint64 // still here at the end

	Gaps      uint64 // roster deltas that did not fit
	Snapshots uint64 // roster snapshots applied
}

// Stats reads the figures.
func (a *Admission) Stats(now time.Time) Stats {
	a.expire(now)
	v := a.view(now)
	t := &a.tally
	own, balance := a.counts(), v.Balance()
	s := Stats{
		Served: own.Attached, Held: own.Held, Reserved: own.Reserved, Sessions: a.children.sessions(),
		Live: a.live(), Placeable: v.Placeable(), Skew: balance.Skew, Balanced: balance.Even(),
		Draining: a.draining, Delisted: a.roster.Delisted(), Stale: a.roster.Stale(now), ViewAge: a.roster.Age(now),
		Placements: make(map[placement.Reason]uint64), Verdicts: make(map[Outcome]map[Reason]uint64), OverCap: make(map[Reason]uint64),
		Asks: t.asks, AskFailures: t.askFailures,
		RedirectsArrived: t.arrived, RedirectsExpired: t.expired, RedirectsElsewhere: t.elsewhere,
		HandoffsMoved: t.handedOver, HandoffsClosed: t.closed, HandoffsLeftBehind: t.forsaken,
	}
	if s.Placeable > 0 {
		s.Cap = (s.Live + s.Placeable - 1) / s.Placeable
	}
	repairs := a.roster.Stats()
	s.Gaps, s.Snapshots = repairs.Gaps, repairs.Snapshots
	for range v.Gateways() {
		s.Gateways++
	}
	for range a.roster.Disagreeing() {
		s.RingMismatches++
	}
	for m, sessions := range a.children.byMember {
		if a.present(m) != nil {
			s.MostSessions = max(s.MostSessions, len(sessions))
		} else {
			s.MisplacedSessions += len(sessions)
		}
	}
	for _, r := range placement.Reasons() {
		s.Placements[r] = t.placements[r]
	}
	for _, o := range Outcomes() {
		s.Verdicts[o] = make(map[Reason]uint64)
		for _, r := range Reasons() {
			s.Verdicts[o][r] = t.verdicts[o][r]
		}
	}
	for _, r := range Reasons() {
		s.OverCap[r] = t.overCap[r]
	}
	return s
}

// HandedOver counts how a drain ended for the supervisors that it began with,
// or a settle for those that it told to move.
func (a *Admission) HandedOver(moved, closed, leftBehind int) {
	a.tally.handedOver += uint64(max(0, moved))
	a.tally.closed += uint64(max(0, closed))
	a.tally.forsaken += uint64(max(0, leftBehind))
}
