// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"time"

	"github.com/evenring/evenring/handoff"
)

// root is a state to walk from.
type root struct {
	name string
	make func(*fleet) *state
}

var (
	cold     = root{"cold", (*fleet).cold}
	warm     = root{"warm", (*fleet).warm}
	attached = root{"attached", (*fleet).attached}
	uneven   = root{"uneven", (*fleet).uneven}
	handing  = root{"handing", (*fleet).handing}
)

// cold is a fleet whose gateways have just started, and whose supervisors have not.
func (f *fleet) cold() *state {
	t := turn{state: &state{}, fleet: f}
	for i := range f.gateways {
		t.boot(i)
	}
	return t.state
}

// warm is a fleet whose gateways know each other.
func (f *fleet) warm() *state {
	s := f.cold()
	for s.now < int64(time.Second) {
		s = f.fairly(s, func(a action) bool { return a.kind != start })
	}
	return s
}

// attached is a fleet in which everybody is attached, and has been for a while.
func (f *fleet) attached() *state { return f.rested(f.warm()) }

// uneven is a fleet in which everybody is attached to the first gateway, which
// had not heard of the others yet.
func (f *fleet) uneven() *state {
	s := f.cold()
	for range f.sups {
		for _, k := range []kind{start, arrive, back} {
			s = f.fairly(s, func(a action) bool { return a.kind == k })
		}
	}
	return f.rested(s)
}

// rested lets time pass until everybody is where he belongs, and some more.
func (f *fleet) rested(s *state) *state {
	for end := s.now + int64(11*time.Second); s.now < end || !f.rests(s); {
		s = f.fairly(s, func(action) bool { return true })
	}
	return s
}

// handing is a fleet in which everybody is attached, and one gateway, which
// serves somebody, drains and is about to tell the first one to move.
func (f *fleet) handing() *state {
	s := f.attached()
	s.budget = budget{drains: 1}
	var err string
	if s, err = f.follow(s, action{kind: drain, a: int(s.conns[0].gw)}); err != "" {
		panic(err)
	}
	for {
		for _, a := range f.actions(s) {
			if a.kind == due && a.due.part == partDrain && f.procs[s.gws[a.a].proc].(*gateway).drain.State() == handoff.Handing {
				return s
			}
		}
		s = f.fairly(s, func(action) bool { return true })
	}
}

// fairly takes the first fair action of those allowed.
func (f *fleet) fairly(s *state, allowed func(action) bool) *state {
	for _, a := range f.actions(s) {
		if a.fair() && allowed(a) {
			after, fault := f.follow(s, a)
			if fault != "" {
				panic(fault)
			}
			return after
		}
	}
	panic("explore: nothing can happen")
}
