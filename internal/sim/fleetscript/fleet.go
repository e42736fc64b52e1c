// SPDX-License-Identifier: Apache-2.0

package fleetscript

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evenring/evenring/internal/sim"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// fleet is the world that a script plays in, and an account of what happens there.
type fleet struct {
	w     *sim.World
	watch *sim.Watch
	begun int                            // supervisors that were given a number
	all   []*sim.Gateway                 // every process that was started
	at    map[ring.GatewayID]string      // endpoints that differ from the sim's own
	links map[string]map[string]sim.Link // what is wrong, by both ends
	cuts  [][2]string

	garbled map[[2]string]bool
	stolen  map[ring.MemberID]ring.MemberID // who shows whose proof next
	shown   map[ring.MemberID][]byte        // the last proof that was not empty
	account account
}

func newFleet() *fleet { return &fleet{} }

// begin makes a new world.
func (f *fleet) begin(cfg sim.Config) {
	*f = fleet{
		at: make(map[ring.GatewayID]string), links: make(map[string]map[string]sim.Link),
		garbled: make(map[[2]string]bool), stolen: make(map[ring.MemberID]ring.MemberID), shown: make(map[ring.MemberID][]byte),
	}
	change := cfg.Gateway
	cfg.Gateway = func(c *redirect.Config) {
		change(c)
		if at := f.at[c.Gateway]; at != "" {
			c.Endpoint = at
		}
	}
	f.w = sim.New(cfg)
	f.watch = sim.NewWatch(f.w)
	f.w.Links.Each = func(from, to string) sim.Link {
		if len(f.links) == 0 {
			return sim.Link{}
		}
		return f.links[from][strings.TrimPrefix(to, "peer-")] // a dial goes to an address
	}
	f.w.Delisted = f.delisted
	f.w.Conflict = f.replaced
	f.w.Spoil.Hello = f.hello
	f.w.Spoil.Roster = f.heard
	f.account.open(f.w)
}

// fault returns the first invariant that was broken.
func (f *fleet) fault() error {
	if f.watch == nil || f.watch.Fault == nil {
		return nil
	}
	return errors.New(f.watch.Fault.String())
}

// unwatched leaves what follows to the script alone.
func (f *fleet) unwatched() { f.w.Watch, f.watch = nil, nil }

// live returns every gateway that lives, in ID order.
func (f *fleet) live() (all []*sim.Gateway) {
	for _, id := range f.w.GatewayIDs() {
		if g := f.w.Gateways[id]; g.Alive {
			all = append(all, g)
		}
	}
	return all
}

// processes returns every process that lives, in order of ID and age: more than one may have an ID.
func (f *fleet) processes() (all []*sim.Gateway) {
	for _, g := range f.all {
		if g.Alive {
			all = append(all, g)
		}
	}
	slices.SortStableFunc(all, func(x, y *sim.Gateway) int { return cmp.Compare(x.ID, y.ID) })
	return all
}

// start starts supervisors, through the Service or at a gateway.
func (f *fleet) start(members []ring.MemberID, at *sim.Gateway) {
	for _, m := range members {
		if at == nil {
			f.w.StartSupervisor(m)
		} else {
			f.w.StartAt(m, at)
		}
	}
}

// numbered returns n supervisors that have not run yet.
func (f *fleet) numbered(n int) []ring.MemberID {
	all := make([]ring.MemberID, 0, n)
	for len(all) < n {
		f.begun++
		if m := ring.MemberID(fmt.Sprint("s", f.begun)); f.w.Supervisors[m] == nil {
			all = append(all, m)
		}
	}
	return all
}

func (f *fleet) running() (n int) {
	for _, s := range f.w.Supervisors {
		if s.Running() {
			n++
		}
	}
	return n
}

// kill ends the processes of those that run.
func (f *fleet) kill(members []ring.MemberID) {
	for _, m := range members {
		if s := f.w.Supervisors[m]; s != nil && s.Running() {
			s.Kill()
		}
	}
}

// The rest of a fleet, and how often that is looked for.
const (
	glance   = 100 * time.Millisecond
	patience = 2 * time.Minute
	actBound = 10 * time.Minute // by then drains and settles are over
)

// until lets time pass until the condition holds, and returns how long that took.
func (f *fleet) until(bound time.Duration, holds func() bool) (took time.Duration, held bool) {
	begin := f.w.Elapsed()
	for !holds() {
		if f.w.Elapsed()-begin >= bound {
			return bound, false
		}
		f.w.Run(glance)
	}
	return f.w.Elapsed() - begin, true
}

// hello is called with every hello that reaches a gateway.
func (f *fleet) hello(_ *sim.Gateway, h redirect.Hello) redirect.Hello {
	f.account.hello(h.Member, f.w.Elapsed())
	if len(h.Proof) > 0 {
		f.shown[h.Member] = h.Proof
	}
	if from, ok := f.stolen[h.Member]; ok {
		delete(f.stolen, h.Member)
		h.Proof = f.shown[from]
	}
	return h
}

// heard is called with everything that a gateway's roster is told.
func (f *fleet) heard(g *sim.Gateway, ev roster.Event) roster.Event {
	if len(f.garbled) == 0 {
		return ev
	}
	received, ok := ev.(roster.Received)
	if !ok {
		return ev
	}
	delta, ok := received.Message.(roster.Delta)
	link := [2]string{string(received.From), string(g.ID)}
	if !ok || len(delta.Changes) == 0 || !f.garbled[link] {
		return ev
	}
	delete(f.garbled, link)
	delta.Changes = nil
	received.Message = delta
	return received
}
