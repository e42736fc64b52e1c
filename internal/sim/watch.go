// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/evenring/evenring/handoff"
	"github.com/evenring/evenring/handoff/settle"
	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// Watch holds everything that happens in a world against the invariants. It
// keeps accounts of its own, and takes no machine's word for its own state.
type Watch struct {
	Fault *Fault // the first one

	w    *World
	kept map[kept]time.Time // when a gateway has last said that it keeps a place
	told int                // notices so far
}

type kept struct {
	at     ring.GatewayID
	member ring.MemberID
}

// NewWatch puts a watch on the world.
func NewWatch(w *World) *Watch {
	w.Watch = &Watch{w: w, kept: make(map[kept]time.Time)}
	return w.Watch
}

// seated is a supervisor that a gateway has just accepted.
type seated struct {
	member ring.MemberID
	key    redirect.Key
	limit  int
	home   bool // it came to its own place
	reason redirect.Reason
}

// caps holds those that were accepted in one step against the cap. Whoever
// came later in it does not count against those before.
func (w *Watch) caps(g *Gateway) {
	all := g.watch.seated
	g.watch.seated = nil
	if len(all) == 0 {
		return
	}
	slices.SortFunc(all, func(x, y seated) int { return cmp.Compare(y.key, x.key) })
	self, _ := g.Admission.Roster().Gateway(g.ID)
	for later, s := range all {
		load := self.Load() - later
		again := slices.ContainsFunc(all[later+1:], func(o seated) bool { return o.member == s.member })
		if s.home || again {
			load -= self.Held // they come back to theirs, and the first ones stay
		}
		if s.reason == redirect.ReasonPlaced && load > s.limit {
			w.blame(WithinCap, both(g, s.member), "%s accepts %s as placed, with load %d over the cap %d", g.ID, s.member, load, s.limit)
		}
	}
}

// fit holds a target against what the gateway was told of it.
func (w *Watch) fit(g *Gateway, m ring.MemberID, to ring.GatewayID, at string) {
	h := g.watch.heard[to]
	var why string
	switch {
	case to == g.ID:
		why = "itself"
	case h == nil:
		why = fmt.Sprintf("%q, of which it has never heard", to)
	case at == "":
		why = fmt.Sprintf("%s, without an endpoint", to)
	case h.departed:
		why = fmt.Sprintf("%s, which has left", to)
	case h.suspect:
		why = fmt.Sprintf("%s, which is suspect", to)
	case h.state != placement.Ready:
		why = fmt.Sprintf("%s, which is %s", to, h.state)
	default:
		return
	}
	w.blame(FitTargets, append(both(g, m), string(to)), "%s sends %s to %s", g.ID, m, why)
}

// verdict is called with every verdict; before is what was known before the step that gave it.
func (w *Watch) verdict(g *Gateway, h redirect.Hello, before known, p *redirect.Admitting, v redirect.Verdict) {
	m, who := h.Member, both(g, h.Member)
	if h.Session != "" {
		return
	}
	switch v.Outcome {
	case redirect.Accept:
		if h.Generation <= before.generation {
			w.blame(NoWayBack, who, "%s accepts generation %d of %s, with %d known", g.ID, h.Generation, m, before.generation)
		}
		g.watch.accepted[m] = max(g.watch.accepted[m], h.Generation)
		g.watch.seated = append(g.watch.seated, seated{m, p.Key, max(p.Decision.Cap, v.Cap), before.home || w.keeps(g.ID, m), v.Reason})
	case redirect.Redirect:
		w.fit(g, m, v.Gateway, v.Endpoint)
		if slices.Contains(h.Avoid, v.Gateway) {
			w.blame(FitTargets, append(who, string(v.Gateway)), "%s sends %s to %s, which it avoids", g.ID, m, v.Gateway)
		}
		if h.Stay && g.drain == nil && v.Reason != redirect.ReasonPassedOn {
			w.blame(NoIdleMoves, who, "%s sends %s to %s, although it asks to stay", g.ID, m, v.Gateway)
		}
	}
}

// tells is called with every notice.
func (w *Watch) tells(g *Gateway, st *stream, n redirect.Notice) {
	w.told++
	if n.Kind == redirect.NoticeEnd && (n.Reason == redirect.ReasonDraining || n.Reason == redirect.ReasonStopped) && g.drain == nil {
		w.blame(NoIdleMoves, both(g, st.hello.Member), "%s ends the stream of %s, and does not drain: %s", g.ID, st.hello.Member, n.Reason)
	}
	if n.Kind != redirect.NoticeMove {
		return
	}
	m := st.hello.Member
	settling := g.settles != nil && g.settles.Report == nil
	if g.drain == nil && !settling {
		w.blame(NoIdleMoves, both(g, m), "%s tells %s to move, and neither drains nor settles", g.ID, m)
	}
	w.fit(g, m, n.Gateway, n.Endpoint)
}

// noticed is called when a notice reaches a supervisor.
func (w *Watch) noticed(s *Supervisor, st *stream, n redirect.Notice) {
	if n.Kind != redirect.NoticeEnd || st.gen() != s.watch.stream {
		return
	}
	switch n.Reason {
	case redirect.ReasonSuperseded, redirect.ReasonMoved, redirect.ReasonDuplicateMember:
		if s.watch.newest <= st.gen() {
			w.blame(NoIdleMoves, both(st.gateway, s.Member), "%s ends the only stream of %s: %s", st.gateway.ID, s.Member, n.Reason)
		}
	}
}

// answered is called with every answer to a question.
func (w *Watch) answered(g *Gateway, q placement.Question, a placement.Answer) {
	if !a.Yes {
		return
	}
	w.kept[kept{g.ID, q.Member}] = w.w.now
	if g.drain != nil {
		w.blame(FitTargets, both(g, q.Member), "%s keeps a place for %s, and drains", g.ID, q.Member)
	}
}

// keeps reports whether the gateway may still keep a place that it was asked for.
func (w *Watch) keeps(g ring.GatewayID, m ring.MemberID) bool {
	at, ok := w.kept[kept{g, m}]
	return ok && w.w.now.Sub(at) <= redirect.DefaultReserve
}

// settles is called when a settle has told somebody to move.
func (w *Watch) settles(g *Gateway, o settle.Order) {
	if !w.keeps(o.To, o.Member) {
		w.blame(NoIdleMoves, append(both(g, o.Member), string(o.To)), "%s moves %s to %s, which keeps no place for it", g.ID, o.Member, o.To)
	}
}

// drain is called with every step of a drain.
func (w *Watch) drain(g *Gateway, ev handoff.Event, actions []handoff.Action) {
	for _, act := range actions {
		switch act := act.(type) {
		case handoff.Order:
			if !g.now().Before(act.Until) {
				w.blame(DrainAccounts, both(g, act.Member), "%s orders %s at or after its deadline", g.ID, act.Member)
			}
		case handoff.Finished:
			if n := act.Report.Served(); n != g.drained {
				w.blame(DrainAccounts, names(g.ID), "the drain of %s accounts for %d of %d", g.ID, n, g.drained)
			}
		}
	}
	if _, tick := ev.(handoff.Tick); tick && g.drain != nil {
		if at, ok := g.drain.Deadline(); ok && !at.After(g.now()) {
			w.blame(FixedPoint, names(g.ID), "a tick leaves the deadline of the drain of %s in the past", g.ID)
		}
	}
}

// ticked is called after a tick of the admission's.
func (w *Watch) ticked(g *Gateway) {
	if at, ok := g.Admission.Deadline(); ok && !at.After(g.now()) {
		w.blame(FixedPoint, names(g.ID), "a tick leaves the deadline of %s in the past", g.ID)
	}
}

// broke is called before a gateway sees a stream break; what it returns, after that.
func (w *Watch) broke(st *stream) func() {
	g, m := st.gateway, st.hello.Member
	home, e, ok := g.Admission.Roster().Home(m)
	if !ok || home != g.ID || e.Held || e.Generation != st.gen() || st.hello.Session != "" {
		return func() {}
	}
	return func() {
		if home, e, ok := g.Admission.Roster().Home(m); !ok || home != g.ID || !e.Held {
			w.blame(WithinCap, both(g, m), "the stream of %s broke, and %s does not hold its place", m, g.ID)
		}
	}
}

// gateway is called after every step of a gateway.
func (w *Watch) gateway(g *Gateway) {
	if w.Fault != nil {
		return
	}
	r := g.Admission.Roster()
	known := 0
	for one := range r.Gateways() {
		known++
		if c := one.Counts; c.Attached < 0 || c.Held < 0 || c.Reserved < 0 {
			w.blame(SumsAgree, names(g.ID, one.ID), "%s counts %d, %d, %d for %s", g.ID, c.Attached, c.Held, c.Reserved, one.ID)
		}
		if old := g.watch.counts[one.ID]; old.Newer(one.Counts) {
			w.blame(NoWayBack, names(g.ID, one.ID), "%s goes back from number %d of %d to number %d of %d of %s",
				g.ID, old.Sequence, old.Incarnation, one.Sequence, one.Incarnation, one.ID)
		}
		if h := g.watch.heard[one.ID]; h != nil && one.ID != g.ID && one.Incarnation < h.incarnation {
			w.blame(NoWayBack, names(g.ID, one.ID), "%s takes %s for %d, having heard of %d", g.ID, one.ID, one.Incarnation, h.incarnation)
		}
		g.watch.counts[one.ID] = one.Counts
	}
	if known != len(g.watch.counts) {
		for id := range g.watch.counts {
			if _, ok := r.Gateway(id); !ok {
				delete(g.watch.counts, id)
				if h := g.watch.heard[id]; h != nil && !h.departed {
					delete(g.watch.heard, id) // it was silent for so long that all is forgotten
				}
			}
		}
	}
	if n := r.Live(); n < 0 {
		w.blame(SumsAgree, names(g.ID), "%s counts %d live", g.ID, n)
	}
}
