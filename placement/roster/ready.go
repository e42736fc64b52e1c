// SPDX-License-Identifier: Apache-2.0

package roster

import (
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// Readiness is two verdicts: one for each kind of client.
type Readiness struct {
	Supervisors Check // may supervisors dial this gateway
	Callers     Check // may callers use its view of the fleet
}

// Check is one verdict.
type Check struct {
	OK     bool
	Reason Reason
}

// Reason says why a [Check] is what it is. The set is closed and the texts are
// stable: metric label and log word in one.
type Reason string

// The reasons.
const (
	// Of Supervisors. Only the first goes with OK.
	ReasonServing    Reason = "serving"    // it serves
	ReasonStarting   Reason = "starting"   // it does not serve yet
	ReasonDraining   Reason = "draining"   // it hands over what it has
	ReasonSuperseded Reason = "superseded" // a newer process uses its ID

	// Of Callers. The first two go with OK.
	ReasonComplete  Reason = "complete"  // every known peer has sent its record
	ReasonGrace     Reason = "grace"     // not every one has, but callers have waited long enough
	ReasonDiscovery Reason = "discovery" // discovery has not reported yet
	ReasonSnapshots Reason = "snapshots" // a known peer has not sent its record yet
)

// Reasons returns every reason, in order.
func Reasons() []Reason {
	return []Reason{
		ReasonServing, ReasonStarting, ReasonDraining, ReasonSuperseded,
		ReasonComplete, ReasonGrace, ReasonDiscovery, ReasonSnapshots,
	}
}

// Ready says whether supervisors may dial this gateway, and whether callers
// may use its view. Serving nobody is no obstacle to either. Callers wait until
// discovery has given a complete list and every peer known has sent its
// record, but no longer than [Config.Grace] after New, whoever joins
// meanwhile; once they may, they may for good.
func (r *Roster) Ready(now time.Time) Readiness {
	return Readiness{Supervisors: r.readyForSupervisors(), Callers: r.readyForCallers(now)}
}

func (r *Roster) readyForSupervisors() Check {
	switch {
	case r.superseded != 0:
		return Check{Reason: ReasonSuperseded}
	case r.self.state == placement.Ready:
		return Check{OK: true, Reason: ReasonServing}
	case r.self.state == placement.Draining:
		return Check{Reason: ReasonDraining}
	default:
		return Check{Reason: ReasonStarting}
	}
}

func (r *Roster) readyForCallers(now time.Time) Check {
	switch rd := &r.readiness; {
	case rd.reached:
		return Check{OK: true, Reason: rd.why}
	case !now.Before(rd.graceEnds):
		return Check{OK: true, Reason: ReasonGrace}
	case !rd.reported:
		return Check{Reason: ReasonDiscovery}
	default:
		return Check{Reason: ReasonSnapshots}
	}
}

// readiness is what callers wait for. It changes no more once it is reached.
type readiness struct {
	graceEnds time.Time
	reported  bool                        // discovery has given a complete list
	awaited   map[ring.GatewayID]struct{} // peers known of, heard or not
	reached   bool
	why       Reason
}

// discovered starts a complete list: only those that follow are awaited.
func (rd *readiness) discovered() {
	rd.reported = true
	clear(rd.awaited)
}

func (rd *readiness) await(id ring.GatewayID) {
	if !rd.reached {
		rd.awaited[id] = struct{}{}
	}
}

func (rd *readiness) forget(id ring.GatewayID) { delete(rd.awaited, id) }

// checkReady notes that callers need to wait no longer.
func (r *Roster) checkReady(now time.Time) {
	rd := &r.readiness
	switch {
	case rd.reached:
		return
	case rd.reported && r.everySynced():
		rd.why = ReasonComplete
	case !now.Before(rd.graceEnds):
		rd.why = ReasonGrace
	default:
		return
	}
	rd.reached = true
	clear(rd.awaited)
	r.changed()
}

func (r *Roster) everySynced() bool {
	for id := range r.readiness.awaited {
		if r.byID[id] == nil {
			return false
		}
	}
	for _, rec := range r.sorted {
		if rec != r.self && !rec.synced && !rec.delisted {
			return false
		}
	}
	return true
}
