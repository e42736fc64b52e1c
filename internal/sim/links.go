// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"time"

	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/ring"
)

// Links is what is wrong with the network, and what is slow to be seen. The
// zero value is a network in order.
type Links struct {
	Link                            // all links alike
	Each func(from, to string) Link // what is wrong with one direction of one link besides; nil: nothing. It is a function of the names.

	Notice time.Duration // the longest until somebody sees that the other end of a link is gone
	Lag    time.Duration // the longest until the Service sees that a gateway has come or gone
}

// Link is what is wrong with a link.
type Link struct {
	Loss   float64       // share of the roster messages that are lost
	Twice  float64       // share of them that arrive twice
	Slow   float64       // share of everything that takes longer
	SlowBy time.Duration // up to so much
	Delay  time.Duration // of everything
	Hold   bool          // roster messages wait for Release

	AskLoss   float64       // share of the questions, and of the answers, that are lost
	AskSlow   float64       // share of them that take longer besides
	AskSlowBy time.Duration // up to so much
}

// link returns what is wrong with one direction of a link: what is with all, and with this one.
func (l *Links) link(from, to string) [2]Link {
	if l.Each == nil {
		return [2]Link{l.Link}
	}
	return [2]Link{l.Link, l.Each(from, to)}
}

// chance draws whether something happens to a share of all. Nothing is drawn for none.
func (w *World) chance(share float64) bool { return share > 0 && w.rnd.Float64() < share }

// latency draws how long something takes from one end to the other.
func (w *World) latency(from, to string) time.Duration {
	d := w.cfg.MinLatency + time.Duration(w.rnd.Int64N(int64(w.cfg.MaxLatency-w.cfg.MinLatency)+1))
	for _, l := range w.Links.link(from, to) {
		d += l.Delay
		if w.chance(l.Slow) {
			d += time.Duration(w.rnd.Int64N(int64(l.SlowBy) + 1))
		}
	}
	return d
}

// deliver schedules f for when it has come from one end to the other.
func (w *World) deliver(from, to string, f func()) { w.after(w.latency(from, to), f) }

// pair names two ends of the network that do not hear each other.
type pair struct{ a, b string }

func pairOf(a, b string) pair {
	if b < a {
		a, b = b, a
	}
	return pair{a, b}
}

// Cut keeps two gateways, or a supervisor and a gateway, from hearing each
// other until Mend. Streams between them break, and each end sees that in its own time.
func (w *World) Cut(a, b string) {
	w.cuts[pairOf(a, b)]++
	w.trace(a, "cut off from %s", b)
	for _, id := range w.ids {
		g := w.Gateways[id]
		for _, key := range sorted(g.streams) {
			if st := g.streams[key]; w.cut(st.end.name, string(id)) {
				st.Break()
			}
		}
	}
	w.loseLink(a, b)
	w.loseLink(b, a)
}

// Mend undoes one Cut.
func (w *World) Mend(a, b string) {
	if w.cuts[pairOf(a, b)]--; w.cut(a, b) {
		return
	}
	delete(w.cuts, pairOf(a, b))
	w.trace(a, "hears %s again", b)
	w.raiseLink(a, b)
	w.raiseLink(b, a)
}

func (w *World) cut(a, b string) bool { return w.cuts[pairOf(a, b)] > 0 }

// notice draws how long it takes until it is seen at one end that the other is gone.
func (w *World) notice(at, gone string) time.Duration {
	if w.Links.Notice == 0 {
		return w.latency(gone, at)
	}
	return w.latency(gone, at) + time.Duration(w.rnd.Int64N(int64(w.Links.Notice)))
}

// loseLink lets a gateway see, in its own time, that another is gone.
func (w *World) loseLink(at, to string) {
	g, other := w.Gateways[ring.GatewayID(at)], w.Gateways[ring.GatewayID(to)]
	if g == nil || other == nil {
		return
	}
	w.after(w.notice(at, to), func() {
		if p := w.Gateways[other.ID]; p == other && (w.cut(at, to) || !p.Alive) {
			g.feed(roster.LinkLost{Gateway: other.ID})
		}
	})
}

func (w *World) raiseLink(at, to string) {
	g, other := w.Gateways[ring.GatewayID(at)], w.Gateways[ring.GatewayID(to)]
	if g == nil || other == nil {
		return
	}
	w.deliver(to, at, func() {
		if !w.cut(at, to) && other.Alive {
			g.feed(roster.LinkUp{Gateway: other.ID})
		}
	})
}

// pass carries f from one end to the other, unless they do not hear each
// other at either time.
func (w *World) pass(from, to string, f func()) {
	if w.cut(from, to) {
		return
	}
	w.deliver(from, to, func() {
		if !w.cut(from, to) {
			f()
		}
	})
}

// carry is pass for a question or an answer.
func (w *World) carry(from, to string, f func()) {
	var longer time.Duration
	for _, l := range w.Links.link(from, to) {
		if w.chance(l.AskLoss) {
			return
		}
		if w.chance(l.AskSlow) {
			longer += time.Duration(w.rnd.Int64N(int64(l.AskSlowBy) + 1))
		}
	}
	if longer == 0 {
		w.pass(from, to, f)
	} else {
		w.after(longer, func() { w.pass(from, to, f) })
	}
}

// tell schedules the arrival of a roster message.
func (w *World) tell(from, to string, arrive func()) {
	all := w.Links.link(from, to)
	if w.Hold || slices.ContainsFunc(all[:], func(l Link) bool { return l.Hold }) {
		w.held = append(w.held, letter{from, to, arrive})
		return
	}
	for _, l := range all {
		if w.chance(l.Loss) {
			return
		}
	}
	w.pass(from, to, arrive)
	for _, l := range all {
		if w.chance(l.Twice) {
			w.pass(from, to, arrive)
		}
	}
}

// letter is a roster message that waits.
type letter struct {
	from, to string
	arrive   func()
}

// Release lets what was held on one direction of a link arrive, in the order in
// which it was sent. What is sent from now on is held like before, if it is.
func (w *World) Release(from, to string) {
	var rest, due []letter
	for _, l := range w.held {
		if l.from == from && l.to == to {
			due = append(due, l)
		} else {
			rest = append(rest, l)
		}
	}
	w.held = rest
	for _, l := range due {
		l.arrive()
	}
}

// line keeps what one end says on one stream in order.
type line struct{ last time.Time }

// arrival draws when what is said now arrives.
func (l *line) arrival(w *World, from, to string) time.Time {
	at := w.now.Add(w.latency(from, to))
	if at.Before(l.last) {
		at = l.last
	}
	l.last = at
	return at
}

// end lets the other side see the end of the line, after all that was said.
func (l *line) end(w *World, from, to string, f func()) { w.at(l.arrival(w, from, to), f) }

// pass carries f along the line.
func (l *line) pass(w *World, from, to string, f func()) {
	at := l.arrival(w, from, to)
	if w.cut(from, to) {
		return
	}
	w.at(at, func() {
		if !w.cut(from, to) {
			f()
		}
	})
}

// Discover tells every gateway who there is now, each in its time and each in
// the order in which that came about.
func (w *World) Discover() {
	var all []ring.GatewayID
	for _, id := range w.ids {
		if w.Gateways[id].Alive {
			all = append(all, id)
		}
	}
	for _, id := range all {
		g := w.Gateways[id]
		at := w.now.Add(w.notice(string(id), "discovery"))
		if at.Before(g.listed.last) {
			at = g.listed.last
		}
		g.listed.last = at
		w.at(at, func() { g.feed(roster.Discovered{Gateways: all}) })
	}
}
