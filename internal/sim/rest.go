// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"

	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect/supervisor"
	"github.com/evenring/evenring/ring"
)

// unsettled says who is not where he should be at rest; empty: nobody.
func (w *World) unsettled() (what string, who []string) {
	served := make(map[ring.GatewayID]int)
	for _, m := range sorted(w.Supervisors) {
		s := w.Supervisors[m]
		if !s.running {
			continue
		}
		home := s.Machine.Home()
		g := w.Gateways[home.Gateway]
		switch {
		case s.Machine.State() != supervisor.Attached || len(s.streams) != 1:
			return fmt.Sprintf("%s is %s, with %d streams", m, s.Machine.State(), len(s.streams)), names(m)
		case g == nil || !g.Alive || g.Incarnation != home.Incarnation:
			return fmt.Sprintf("%s takes %s, %d for its home, which does not live", m, home.Gateway, home.Incarnation), []string{string(home.Gateway), string(m)}
		}
		for _, st := range s.streams {
			if st.broken {
				return fmt.Sprintf("the stream of %s is broken, and it has not seen that", m), names(m)
			}
		}
		served[g.ID]++
		for _, one := range s.Sessions {
			if what := one.unsettled(g); what != "" {
				return what, both(g, m)
			}
		}
	}
	for _, g := range w.elders {
		if g.Alive {
			return fmt.Sprintf("%s, %d lives on, though it was replaced", g.ID, g.Incarnation), names(g.ID)
		}
	}
	for _, id := range w.ids {
		if g := w.Gateways[id]; g.Alive {
			for _, st := range g.streams {
				if st.broken {
					return fmt.Sprintf("a stream of %s is broken, and it has not seen that", id), both(g, st.hello.Member)
				}
			}
			if n := len(g.Admission.Supervisors()); n != served[id] {
				return fmt.Sprintf("%s serves %d, and %d are attached to it", id, n, served[id]), names(id)
			}
		}
	}
	return "", nil
}

// unsettled says what is wrong with a session whose supervisor is attached to g.
func (s *Session) unsettled(g *Gateway) string {
	if !s.running {
		return ""
	}
	if s.Machine.State() != supervisor.Attached || len(s.streams) != 1 {
		return fmt.Sprintf("session %s is %s, with %d streams", s.who, s.Machine.State(), len(s.streams))
	}
	for _, st := range s.streams {
		if st.gateway != g {
			return fmt.Sprintf("session %s is at %s, and its supervisor at %s", s.who, st.gateway.ID, g.ID)
		}
	}
	return ""
}

// disagreement says which views differ from what is; empty: none.
func (w *World) disagreement() (what string, who []string) {
	for _, id := range w.ids {
		g := w.Gateways[id]
		if !g.Alive {
			continue
		}
		r := g.Admission.Roster()
		for one := range r.Gateways() {
			p := w.Gateways[one.ID]
			own, _ := p.Admission.Roster().Gateway(p.ID)
			switch {
			case !p.Alive || p.Incarnation != one.Incarnation:
				return fmt.Sprintf("%s lists %s, %d, which does not live", id, one.ID, one.Incarnation), names(id, one.ID)
			case one.Suspect || one.State != own.State || one.Endpoint != own.Endpoint:
				return fmt.Sprintf("%s takes %s for %s at %q, suspect %v", id, one.ID, one.State, one.Endpoint, one.Suspect), names(id, one.ID)
			case one.Counts != own.Counts:
				return fmt.Sprintf("%s counts %+v for %s, which counts %+v", id, one.Counts, one.ID, own.Counts), names(id, one.ID)
			case own.Held != 0 || own.Reserved != 0:
				return fmt.Sprintf("%s holds %d and reserves %d", one.ID, own.Held, own.Reserved), names(one.ID)
			}
		}
		for _, other := range w.ids {
			if p := w.Gateways[other]; p.Alive {
				if what := differs(r, p); what != "" {
					return fmt.Sprintf("%s %s", id, what), names(id, other)
				}
			}
		}
	}
	return "", nil
}

// differs says how a roster differs from what the gateway serves.
func differs(r *roster.Roster, p *Gateway) string {
	if _, ok := r.Gateway(p.ID); !ok {
		return fmt.Sprintf("does not know %s", p.ID)
	}
	all := p.Admission.Supervisors()
	for _, s := range all {
		if home, e, ok := r.Home(s.Member); !ok || home != p.ID || e.Held || e.Generation != s.Generation {
			return fmt.Sprintf("looks for %s at %q, %+v; it is at %s, %d", s.Member, home, e, p.ID, s.Generation)
		}
	}
	if n := len(slices.Collect(r.Members(p.ID))); n != len(all) {
		return fmt.Sprintf("lists %d at %s, which serves %d", n, p.ID, len(all))
	}
	return ""
}
