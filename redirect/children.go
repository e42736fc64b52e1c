// SPDX-License-Identifier: Apache-2.0

package redirect

import (
	"slices"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// children are the child sessions that a gateway serves. They never count for the cap.
type children struct {
	byKey    map[Key]child
	byMember map[ring.MemberID]map[SessionID]Key
}

type child struct {
	member     ring.MemberID
	session    SessionID
	generation placement.Generation
}

func newChildren() children {
	return children{byKey: make(map[Key]child), byMember: make(map[ring.MemberID]map[SessionID]Key)}
}

// join adds a session's stream and returns the key of the one that it takes over, or 0.
func (c children) join(key Key, n child) Key {
	of := c.byMember[n.member]
	if of == nil {
		of = make(map[SessionID]Key)
		c.byMember[n.member] = of
	}
	old := of[n.session]
	of[n.session] = key
	c.byKey[key] = n
	return old
}

// leave removes a session's stream; false: it is no session's.
func (c children) leave(key Key) bool {
	n, ok := c.byKey[key]
	if !ok {
		return false
	}
	delete(c.byKey, key)
	of := c.byMember[n.member]
	if of[n.session] == key {
		delete(of, n.session)
	}
	if len(of) == 0 {
		delete(c.byMember, n.member)
	}
	return true
}

// newest returns the generation of the session's stream, 0 without one.
func (c children) newest(m ring.MemberID, s SessionID) placement.Generation {
	return c.byKey[c.byMember[m][s]].generation
}

// sessions returns how many sessions have a stream.
func (c children) sessions() int {
	n := 0
	for _, of := range c.byMember {
		n += len(of)
	}
	return n
}

// admitChild serves a session where its supervisor is. One that was sent here,
// and one whose supervisor is nowhere yet, is served and moves later.
func (a *Admission) admitChild(p *Admitting) {
	h := p.hello
	if newest := a.children.newest(h.Member, h.Session); h.Generation < newest {
		a.refuse(p, ReasonStaleGeneration)
		p.Verdict.Generation = newest
		return
	}
	if a.present(h.Member) == nil && (!h.Stay || a.draining) {
		if home, ok := a.homeOf(h); ok {
			a.conclude(p, Verdict{Outcome: Redirect, Reason: ReasonSession,
				Gateway: home.ID, Endpoint: home.Endpoint, Incarnation: home.Incarnation})
			return
		}
		if a.draining {
			a.refuse(p, ReasonDraining)
			return
		}
	}
	p.Key = a.nextKey()
	if old := a.children.join(p.Key, child{h.Member, h.Session, h.Generation}); old != 0 {
		a.tell(old, Notice{Kind: NoticeEnd, Reason: ReasonSuperseded})
	}
	a.conclude(p, Verdict{Outcome: Accept, Reason: ReasonSession})
}

// homeOf returns the other gateway that serves the session's supervisor, if
// the session can be sent there.
func (a *Admission) homeOf(h Hello) (placement.Gateway, bool) {
	id, _, ok := a.roster.Home(h.Member)
	if !ok || id == a.cfg.Gateway || !h.CanRedirect || h.Hops >= a.cfg.MaxHops || slices.Contains(h.Avoid, id) {
		return placement.Gateway{}, false
	}
	g, ok := a.roster.Gateway(id)
	return g, ok && g.Endpoint != "" && !g.Suspect
}
