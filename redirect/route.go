// SPDX-License-Identifier: Apache-2.0

package redirect

import (
	"slices"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/ring"
)

// Route returns where a request for m goes, or for its session s if that is not
// empty. It is what the roster says ([roster.Roster.Route]), and what this
// gateway alone knows:
//
//   - An old stream here of a member that is served elsewhere is the last
//     resort, until it closes.
//   - A session that has a stream here is here. One that has none is where its
//     supervisor is; if that is here, it is expected.
func (a *Admission) Route(now time.Time, m ring.MemberID, s SessionID) roster.Route {
	return a.route(now, m, s, a.stream(m, s) != 0)
}

// route is Route; open says whether the stream here, if there is one, takes requests.
func (a *Admission) route(now time.Time, m ring.MemberID, s SessionID, open bool) roster.Route {
	a.expire(now)
	route := a.roster.Route(now, m)
	switch seat := a.seats[m]; {
	case s != "" && open:
		key := a.children.byMember[m][s]
		route.Holders = slices.DeleteFunc(route.Holders, a.isSelf)
		route.Holders = slices.Insert(route.Holders, 0, a.here(a.children.byKey[key].generation))
	case s == "" && open && seat != nil && seat.state == left:
		route.Holders = append(route.Holders, a.here(seat.generation))
	case !open:
		if i := slices.IndexFunc(route.Holders, a.isSelf); i >= 0 {
			route.Holders[i].Expected = true
		}
	}
	if len(route.Holders) > 0 {
		route.Where = roster.Elsewhere
		if a.isSelf(route.Holders[0]) {
			route.Where = roster.Here
		}
	}
	return route
}

func (a *Admission) isSelf(h roster.Holder) bool { return h.ID == a.cfg.Gateway }

func (a *Admission) here(g placement.Generation) roster.Holder {
	return roster.Holder{Gateway: a.self(), Generation: g}
}

// stream returns the key of the open stream for requests to m, or to its
// session s if that is not empty; 0: there is none here.
func (a *Admission) stream(m ring.MemberID, s SessionID) Key {
	if s != "" {
		return a.children.byMember[m][s]
	}
	if seat := a.seats[m]; seat != nil && seat.state != held {
		return seat.key
	}
	return 0
}
