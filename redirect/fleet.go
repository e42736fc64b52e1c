// SPDX-License-Identifier: Apache-2.0

package redirect

import (
	"iter"
	"slices"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/ring"
)

// Explain tells where m would be placed now, and why: the first choice for a
// hello that can follow a redirect and does not ask to stay, or, while this
// gateway drains, for handing m over if m is attached here. The target may still say no when it is asked, and
// [Config.Pace] is left aside. On a stale view whoever comes is served here, unless this gateway drains.
func (a *Admission) Explain(now time.Time, m ring.MemberID, avoid ...ring.GatewayID) placement.Explanation {
	a.expire(now)
	p := &Admitting{hello: Hello{Member: m, Avoid: avoid}, leaving: a.draining && a.present(m) != nil}
	v := a.view(now)
	r := a.wanted(p, v)
	if p.leaving {
		r.Avoid = append(r.Avoid, avoid...)
	}
	e := v.Explain(r)
	e.Stale = !a.draining && a.roster.Stale(now)
	return e
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
	} else if sent, _, ok := a.ledger.Target(h.Member); ok {
		r.Home, r.Promised = sent, a.cfg.Peers == nil
	}
	return r
}

// picture is the view that placements are made from, kept up to date with the roster.
type picture struct {
	view     *placement.View
	ring     *ring.Ring
	version  uint64 // of the roster
	expected int
}

// waitingElsewhere: of so many gateways one is taken to have as many newcomers
// waiting as this one. With all of them the last of a burst would find too much room, and
// with none the live lag behind in a large fleet, so that most questions are refused.
const waitingElsewhere = 3

// view returns the fleet as this gateway sees it now. It is good until the next change.
func (a *Admission) view(now time.Time) *placement.View {
	p := &a.picture
	if circle := a.roster.Ring(); p.view == nil || p.ring != circle {
		p.ring = circle
		p.view = placement.NewView(placement.Picture{
			Self: a.cfg.Gateway, Ring: circle, Gateways: slices.Collect(a.gateways()), Asking: a.cfg.Peers != nil,
		})
		if a.cfg.Peers == nil {
			a.ledger.Bind(p.view)
		}
	} else if p.version != a.roster.Version() || p.expected != a.expected+a.guests.total {
		for g := range a.gateways() {
			p.view.Set(g)
		}
	}
	p.version, p.expected = a.roster.Version(), a.expected+a.guests.total
	p.view.SetSource(p.version, a.roster.Age(now))
	if a.cfg.Peers != nil {
		// Where many wait here, many wait at the others, and nobody counts them yet.
		elsewhere := a.turns.newcomers * max(0, p.view.Placeable()/waitingElsewhere-1)
		p.view.SetLive(a.live() + elsewhere)
		return p.view
	}
	rivals := 1
	if !a.draining { // a gateway that drains places alone
		rivals = max(1, p.view.Placeable())
	}
	p.view.SetRivals(rivals)
	p.view.SetLive(a.live() + (rivals-1)*a.ledger.Newcomers() + a.guests.total)
	return p.view
}

// live is how many supervisors are live as far as this gateway knows, without what it takes the
// others to have been asked for meanwhile.
func (a *Admission) live() int {
	if a.cfg.Peers != nil {
		return a.roster.Live() + a.turns.newcomers + a.unseen()
	}
	return a.roster.Live() + a.ledger.Newcomers()
}

// gateways yields every gateway as placements see it.
func (a *Admission) gateways() iter.Seq[placement.Gateway] {
	return func(yield func(placement.Gateway) bool) {
		for g := range a.roster.Gateways() {
			if g.ID == a.cfg.Gateway {
				g.Held -= a.expected // they are sure to come
				g.Reserved += a.expected + a.guests.total
				if g.State == placement.Starting {
					g.State = placement.Ready // a hello that came here shows that it serves
				}
			}
			if !yield(g) {
				return
			}
		}
	}
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
