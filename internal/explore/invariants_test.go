// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// facts are what must not go back within one step of a gateway.
type facts struct {
	counts map[ring.GatewayID]placement.Counts
	own    [maxSupervisors]placement.Generation // of the members' entries in its own record
}

func (s *gatewayStep) facts() facts {
	f := facts{counts: make(map[ring.GatewayID]placement.Counts)}
	r := s.adm.Roster()
	for g := range r.Gateways() {
		f.counts[g.ID] = g.Counts
	}
	for e := range r.Members(s.id) {
		f.own[supervisorOf(e.Member)] = e.Generation
	}
	return f
}

// check holds a gateway against what must hold in every state.
func (s *gatewayStep) check(before facts) {
	r := s.adm.Roster()
	for g := range r.Gateways() {
		if c := g.Counts; c.Attached < 0 || c.Held < 0 || c.Reserved < 0 {
			s.blame("counts %d, %d, %d for %s", c.Attached, c.Held, c.Reserved, g.ID)
		}
		if old, ok := before.counts[g.ID]; ok && old.Newer(g.Counts) {
			s.blame("goes back from number %d of process %d to number %d of process %d of %s",
				old.Sequence, old.Incarnation, g.Sequence, g.Incarnation, g.ID)
		}
	}
	for e := range r.Members(s.id) {
		if old := before.own[supervisorOf(e.Member)]; e.Generation < old {
			s.blame("goes back from generation %d to %d of %s", old, e.Generation, e.Member)
		}
	}
	if r.Live() < 0 {
		s.blame("counts %d live", r.Live())
	}
}

// checkTarget holds a target against what the gateway has been told of it.
func (s *gatewayStep) checkTarget(to ring.GatewayID, at string) {
	switch h := s.heard[to]; {
	case to == s.id:
		s.blame("sends to itself")
	case h == nil:
		s.blame("sends to %q, of which it has never heard", to)
	case at != endpoint(gatewayIndex(to)):
		s.blame("sends to %s at %q", to, at)
	case h.departed:
		s.blame("sends to %s, which has left", to)
	case h.suspect:
		s.blame("sends to %s, which is suspect", to)
	case h.state != placement.Ready:
		s.blame("sends to %s, which is %s", to, h.state)
	}
}
