// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"

	"github.com/evenring/evenring/ring"
)

// DefaultAsks is how many questions a [Search] may put. About one is the
// mean, and the number decides how even the last few of a burst end: of 3000 bursts of 500
// supervisors on 5 gateways all ended even with 12, and all but 6 with 10.
const DefaultAsks = 12

// Search places one member by asking before it sends: begin -> ask this one |
// decided; answered -> ask that one | decided. Feed what an answer reports into the picture first, so
// that the next view is fresher than the last: a no brings the counts it was
// decided on. A target that does not answer is left out, and nobody is sent to it.
//
// The last question goes to the least loaded, unless the one who asks is no fuller itself: its own
// load is exact, and of all the others the emptiest looks so because it was heard longest
// ago, and it looks so to everybody. So the question is whether that gateway really is emptier, and after a no the
// member stays where it is. Only who can take nobody itself, because it drains, insists then, for the cap is soft; and so does everybody
// when no gateway has room.
//
// A Search is a small value, not safe for concurrent use.
type Search struct {
	self    ring.GatewayID
	request Request
	asks    int
	asked   int
	pending Decision
}

// Ask is one question and whom to put it to.
type Ask struct {
	To       Gateway
	Question Question
}

// NewSearch starts a search by the gateway self with at most asks questions: 0
// is [DefaultAsks], and below 0 it never asks, so that the first choice stands.
// It keeps its own copy of r.Avoid.
func NewSearch(self ring.GatewayID, asks int, r Request) Search {
	if asks == 0 {
		asks = DefaultAsks
	}
	r.Avoid = slices.Clone(r.Avoid)
	return Search{self: self, request: r, asks: asks}
}

// Begin makes the first step on view v. It returns a question to put, or nil and the decision.
func (s *Search) Begin(v *View) (*Ask, Decision) { return s.next(v) }

// Update takes what is known of the member by now, before the next step: while a question was
// out it may have been accepted, or its stream may have broken. Whom to avoid stays as it is, for the search has
// added to that.
func (s *Search) Update(r Request) {
	r.Avoid = s.request.Avoid
	s.request = r
}

// Answered goes on after the target of the last question has answered; v is
// the view with what the answer reported.
func (s *Search) Answered(v *View, a Answer) (*Ask, Decision) {
	if a.Gateway != s.pending.Gateway { // somebody else lives at that address
		return s.Failed(v)
	}
	if a.Yes && v.fit(s.pending.Gateway) { // it may have begun to stop since it said so
		return nil, s.pending
	}
	// The target knows of more who are live: ask for a place below its limit.
	if a.Limit > s.pending.Limit && a.State == Ready && s.asked < s.asks && v.fit(s.pending.Gateway) {
		s.pending.Limit = a.Limit
		return s.ask(v, false), Decision{}
	}
	if s.asked >= s.asks && a.State == Ready {
		if d, ok := s.here(v, Insisted); ok {
			return nil, d // no better place is known than this one
		}
	}
	if a.State != Ready || s.asked >= s.asks {
		s.request.Avoid = append(s.request.Avoid, s.pending.Gateway)
	}
	return s.next(v)
}

// Failed goes on after the target of the last question has not answered.
func (s *Search) Failed(v *View) (*Ask, Decision) {
	s.request.Avoid = append(s.request.Avoid, s.pending.Gateway)
	return s.next(v)
}

// Late goes on after the target of the last question has not answered in time,
// although it is alive. It may be asked again: a question put twice keeps one place.
func (s *Search) Late(v *View) (*Ask, Decision) { return s.next(v) }

// here is the decision for the one who looks, if it may be a target.
func (s *Search) here(v *View, reason Reason) (d Decision, ok bool) {
	i := v.position(s.self)
	if i < 0 || !v.target(&v.gateways[i]) || slices.Contains(s.request.Avoid, s.self) {
		return d, false
	}
	t, _ := v.terms(&s.request)
	v.write(&d, &s.request, i, reason, t.cap, t)
	return d, true
}

func (s *Search) next(v *View) (*Ask, Decision) {
	d := v.Place(s.request)
	if d.Gateway == "" || d.Gateway == s.self || s.asks < 0 {
		return nil, d
	}
	if s.asked >= s.asks {
		if here, ok := s.here(v, Unreachable); ok {
			return nil, here
		}
		return nil, Decision{Cap: d.Cap, Share: d.Share, Version: d.Version, Age: d.Age}
	}
	insist := d.Reason == Full
	if s.asked+1 == s.asks && !insist {
		insist = true
		if d = v.least(&s.request, d); d.Gateway == s.self {
			return nil, d
		}
		if here, ok := s.here(v, Insisted); ok { // if it is emptier than this one
			insist, d.Limit = false, max(d.Limit, here.Load)
		}
	}
	s.pending = d
	return s.ask(v, insist), Decision{}
}

// ask puts the question for what is pending.
func (s *Search) ask(v *View, insist bool) *Ask {
	s.asked++
	return &Ask{
		To: v.gateways[v.position(s.pending.Gateway)],
		Question: Question{
			From: s.self, Member: s.request.Member, Limit: s.pending.Limit, Insist: insist,
		},
	}
}
