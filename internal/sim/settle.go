// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/evenring/evenring/handoff/settle"
)

// glance is the default of World.Glance.
const glance = 20 * time.Millisecond

// glance is how often a gateway that settles looks at the fleet.
func (w *World) glance() time.Duration {
	if w.Glance > 0 {
		return w.Glance
	}
	return glance
}

// Settlement is a settle of one gateway.
type Settlement struct {
	Report *settle.Report // once it is over
	Orders []settle.Order // in the order in which they were given

	g *Gateway
	m *settle.Machine
}

// Settle evens out the gateway: see package settle.
func (g *Gateway) Settle(cfg settle.Config) (*Settlement, error) {
	m, err := settle.New(cfg)
	if err != nil {
		return nil, err
	}
	if err := g.Admission.StartSettle(); err != nil {
		return nil, err
	}
	s := &Settlement{g: g, m: m}
	g.settles = s
	g.w.trace(string(g.ID), "settles")
	s.step(settle.Begin{Sight: g.Admission.Sight(g.now())})
	s.watch()
	return s, nil
}

// watch looks at the fleet again and again until the settle is over.
func (s *Settlement) watch() {
	if s.Report == nil && s.g.Alive {
		s.g.w.after(s.g.w.glance(), func() {
			s.look()
			s.watch()
		})
	}
}

func (s *Settlement) look() {
	s.g.do(func() { s.step(settle.Seen{Sight: s.g.Admission.Sight(s.g.now(), s.m.Watched()...)}) })
}

func (s *Settlement) step(ev settle.Event) {
	g := s.g
	for _, act := range s.m.Step(g.now(), ev) {
		switch act := act.(type) {
		case settle.List:
			s.step(settle.Listed{Members: g.Admission.Supervisors()})
		case settle.Order:
			s.Orders = append(s.Orders, act)
			p, err := g.Admission.MoveTo(g.now(), act.Member, act.To, act.Limit)
			if err != nil {
				g.w.after(0, func() {
					g.do(func() { s.step(settle.Ordered{Member: act.Member, Result: settle.Absent}) })
				})
				continue
			}
			g.await(p, func() {
				result := settle.Refused
				if p.Err == nil {
					result = settle.Told
					if g.w.Watch != nil {
						g.w.Watch.settles(g, act)
					}
				}
				g.w.trace(string(g.ID), "settles %s to %s: %s", act.Member, act.To, result)
				s.look()
				s.step(settle.Ordered{Member: act.Member, Result: result})
			})
		case settle.Finished:
			s.Report = &act.Report
			g.w.trace(string(g.ID), "%s", act.Report)
			g.Admission.StopSettle()
		}
	}
}
