// SPDX-License-Identifier: Apache-2.0

package redirect

import (
	"slices"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/ring"
)

// Explain tells why m would be placed where it would.
func (a *Admission) Explain(now time.Time, m ring.MemberID, avoid ...ring.GatewayID) placement.Explanation {
	return a.view(now).Explain(a.request(Hello{Member: m, Avoid: avoid}))
}

// Roster returns the roster, to be read.
func (a *Admission) Roster() *roster.Roster { return a.roster }

// request is what the placement is asked for this hello.
func (a *Admission) request(h Hello) placement.Request {
	r := placement.Request{Member: h.Member, Avoid: h.Avoid}
	if home, e, ok := a.roster.Home(h.Member); ok {
		r.Home, r.Held = home, e.Held
	} else if _, ok := a.reserved[h.Member]; ok {
		r.Home = a.cfg.Gateway
	} else if sent, ok := a.ledger.Target(h.Member); ok {
		r.Home = sent
	}
	return r
}

// view freezes the fleet as this gateway sees it now.
func (a *Admission) view(now time.Time) *placement.View {
	p := placement.Picture{
		Self: a.cfg.Gateway, Ring: a.roster.Ring(), Gateways: slices.Collect(a.roster.Gateways()), Asking: a.cfg.Peers != nil,
		Live: a.roster.Live(), Version: a.roster.Version(), Age: a.roster.Age(now),
	}
	for i := range p.Gateways {
		if g := &p.Gateways[i]; g.ID == a.cfg.Gateway {
			g.Held -= a.expected // they are sure to come
			g.Reserved += a.expected
			if g.State == placement.Starting {
				g.State = placement.Ready // a hello that came here shows that it serves
			}
		}
	}
	if p.Asking {
		p.Live += a.turns.newcomers + a.unseen()
		return placement.NewView(p)
	}
	a.ledger.Apply(p.Gateways)
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
	return placement.NewView(p)
}

// unseen is how many newcomers are asked for and not in their target's counts yet, even if it has said yes.
func (a *Admission) unseen() int {
	n := 0
	for _, p := range a.asking {
		if g, ok := a.roster.Gateway(p.Ask.To.ID); p.newcomer && ok && !g.Counts.Newer(p.Ask.To.Counts) {
			n++
		}
	}
	return n
}

func (a *Admission) self() placement.Gateway {
	g, _ := a.roster.Gateway(a.cfg.Gateway)
	return g
}

func (a *Admission) counts() placement.Counts { return a.self().Counts }

// loadWithout is this gateway's exact load, m left out.
func (a *Admission) loadWithout(m ring.MemberID) int {
	n := a.counts().Load()
	if a.counted(m) != nil {
		n--
	} else if _, ok := a.reserved[m]; ok {
		n--
	}
	return n
}

// loadFor is what counts against a question for m. If m is at home here, the
// others on hold come back like it, and the first ones stay: only those of
// them count for whom the same was asked.
func (a *Admission) loadFor(m ring.MemberID) int {
	s := a.counted(m)
	if s == nil {
		return a.loadWithout(m)
	}
	n := a.counts().Attached + a.counts().Reserved + a.expected
	if s.state == attached || s.expected() {
		n--
	}
	return n
}
