// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// gatewayWatch is what a gateway was told, and what it has done.
type gatewayWatch struct {
	heard    map[ring.GatewayID]*heard
	accepted map[ring.MemberID]placement.Generation
	counts   map[ring.GatewayID]placement.Counts // as last seen there
	seated   []seated                            // in this step
	pending  map[*redirect.Admitting]*known      // before this step, of the members whose hellos have no verdict yet
}

// heard is what one gateway was told of another.
type heard struct {
	incarnation placement.Incarnation
	sequence    uint64
	state       placement.State
	suspect     bool
	departed    bool
	until       time.Time // departed: when that is forgotten
}

// gone reports whether it is known to have left.
func (h *heard) gone(now time.Time) bool { return h.departed && now.Before(h.until) }

func newGatewayWatch() gatewayWatch {
	return gatewayWatch{
		heard:    make(map[ring.GatewayID]*heard),
		accepted: make(map[ring.MemberID]placement.Generation),
		counts:   make(map[ring.GatewayID]placement.Counts),
		pending:  make(map[*redirect.Admitting]*known),
	}
}

// look notes what is known before a step.
func (g *gatewayWatch) look(at *Gateway) {
	for p, k := range g.pending {
		switch {
		case at.waiting[p] == nil:
			delete(g.pending, p)
		case !p.Done:
			*k = at.knows(k.member)
		}
	}
}

// timeToLive is the default of roster.Config.TimeToLive.
const timeToLive = 30 * time.Second

// hear notes what the gateway is told.
func (g *gatewayWatch) hear(now time.Time, ev roster.Event) {
	switch e := ev.(type) {
	case roster.Received:
		if o, ok := roster.OriginOf(e.Message); ok {
			g.message(now, o)
		} else {
			g.listen(e.From)
		}
	case roster.LinkLost:
		g.suspects(e.Gateway)
	case roster.LinkUp:
		g.listen(e.Gateway)
	case roster.Departed:
		if h := g.of(e.Gateway); e.Incarnation >= h.incarnation {
			*h = heard{incarnation: e.Incarnation, departed: true, until: now.Add(timeToLive)}
		}
	}
}

// of returns what was heard of a gateway, to be added to.
func (g *gatewayWatch) of(id ring.GatewayID) *heard {
	if g.heard[id] == nil {
		g.heard[id] = &heard{}
	}
	return g.heard[id]
}

func (g *gatewayWatch) message(now time.Time, o roster.Origin) {
	h := g.of(o.Gateway)
	if h.departed && !h.gone(now) {
		*h = heard{}
	}
	newer := o.Incarnation > h.incarnation
	if !newer && (o.Incarnation < h.incarnation || h.departed) {
		return
	}
	if newer || o.Sequence > h.sequence {
		h.state, h.sequence = o.State, o.Sequence
	}
	h.incarnation, h.suspect, h.departed = o.Incarnation, false, false
}

// listen notes a sign of life.
func (g *gatewayWatch) listen(id ring.GatewayID) {
	if h := g.heard[id]; h != nil && !h.departed {
		h.suspect = false
	}
}

func (g *gatewayWatch) suspects(id ring.GatewayID) {
	if h := g.heard[id]; h != nil {
		h.suspect = true
	}
}
