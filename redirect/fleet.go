// SPDX-License-Identifier: Apache-2.0

package redirect

import (
	"slices"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/ring"
)

// Explain tells why m would be placed where it would.
func (a *Admission) Explain(m ring.MemberID, avoid ...ring.GatewayID) placement.Explanation {
	return a.view().Explain(a.request(Hello{Member: m, Avoid: avoid}))
}

// Roster returns the roster, to be read.
func (a *Admission) Roster() *roster.Roster { return a.roster }

// request is what the placement is asked for this hello.
func (a *Admission) request(h Hello) placement.Request {
	r := placement.Request{Member: h.Member, Avoid: h.Avoid}
	if home, _, ok := a.roster.Home(h.Member); ok {
		r.Home = home
	} else if _, ok := a.reserved[h.Member]; ok {
		r.Home = a.cfg.Gateway
	} else if sent, ok := a.ledger.Target(h.Member); ok {
		r.Home = sent
	}
	return r
}

// view freezes the fleet as this gateway sees it now.
func (a *Admission) view() *placement.View {
	p := placement.Picture{
		Self: a.cfg.Gateway, Ring: a.roster.Ring(), Live: a.roster.Live(), Version: a.roster.Version(),
		Gateways: slices.Collect(a.roster.Gateways()),
	}
	for i := range p.Gateways {
		if g := &p.Gateways[i]; g.ID == a.cfg.Gateway && g.State == placement.Starting {
			g.State = placement.Ready // a hello that came here shows that it serves
		}
	}
	a.ledger.Apply(p.Gateways)
	if a.cfg.Peers != nil {
		p.Live += a.turns.waiting()
		for i := range p.Gateways {
			p.Live += p.Gateways[i].Promised // questions whose answer the target's counts do not show
			p.Gateways[i].Promised, p.Gateways[i].Pending = 0, 0
		}
	} else {
		for m := range a.ledger.Members() {
			if _, _, ok := a.roster.Home(m); !ok {
				p.Live++
			}
		}
		if !a.draining { // a gateway that drains places alone
			for _, g := range p.Gateways {
				if g.Placeable() {
					p.Rivals++
				}
			}
		}
	}
	return placement.NewView(p)
}

func (a *Admission) self() placement.Gateway {
	g, _ := a.roster.Gateway(a.cfg.Gateway)
	return g
}

func (a *Admission) counts() placement.Counts { return a.self().Counts }

// loadWithout is this gateway's exact load, m left out.
func (a *Admission) loadWithout(m ring.MemberID) int {
	n := a.counts().Load()
	if s := a.seats[m]; s != nil && s.state != left {
		n--
	} else if _, ok := a.reserved[m]; ok {
		n--
	}
	return n
}
