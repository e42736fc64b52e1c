// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/evenring/evenring/ring"
)

// forecast is a fleet on paper: a view, and who is where.
type forecast struct {
	view    *View
	on      map[ring.GatewayID][]*resident
	waiting []*resident
	all     []*resident               // in the order in which they came, those who left included
	named   map[ring.MemberID]bool    // whose names are not made up
	gone    map[ring.GatewayID]string // the endpoints of those that are no longer in the fleet
	seated  int
	arrived int         // the next newcomer's number
	newest  Incarnation // of any gateway so far

	moved   int              // since the step began
	unknown []ring.GatewayID // whose load was not known at the start
	gaps    gaps
}

// resident is one supervisor.
type resident struct {
	id    ring.MemberID
	last  ring.GatewayID // who served it last; empty: nobody yet
	from  ring.GatewayID // who served it before that one; empty: nobody that is known
	moves int
}

// newcomers is what the made-up names of those who arrive begin with.
const newcomers = "arrival"

// newForecast takes the fleet from a view. Whoever counts for a gateway is
// attached to it: held, reserved or promised, it will be by the time that a plan begins.
func newForecast(v *View, who map[ring.GatewayID][]ring.MemberID) (*forecast, error) {
	f := &forecast{
		on: make(map[ring.GatewayID][]*resident), named: make(map[ring.MemberID]bool), gone: make(map[ring.GatewayID]string),
	}
	for id := range who {
		if v.position(id) < 0 {
			return nil, fmt.Errorf("members are named of gateway %q, which the view does not have", id)
		}
	}
	gateways := slices.Clone(v.gateways)
	for i := range gateways {
		g := &gateways[i]
		n := 0
		if g.Known {
			n = max(0, g.weighed(1))
		}
		if members, told := who[g.ID]; told {
			g.Known = true
			n = len(members)
			for _, m := range members {
				if f.named[m] {
					return nil, fmt.Errorf("member %q is named twice", m)
				}
				f.named[m] = true
			}
		}
		if !g.Known {
			f.unknown = append(f.unknown, g.ID)
		}
		if err := f.room(n); err != nil {
			return nil, err
		}
		g.Counts = Counts{Incarnation: g.Incarnation, Sequence: g.Sequence, Attached: n}
		g.Promised = 0
		f.newest = max(f.newest, g.Incarnation)
		f.seated += n
	}
	f.all = make([]*resident, 0, f.seated)
	for i := range gateways {
		g := &gateways[i]
		members, told := who[g.ID]
		next := 0
		here := make([]*resident, 0, g.Attached)
		for k := range g.Attached {
			var m ring.MemberID
			if told {
				m = members[k]
			} else {
				m = f.name(g.ID, &next)
			}
			here = append(here, f.add(m, g.ID))
		}
		f.on[g.ID] = here
		if g.ID == newcomers {
			f.arrived = next
		}
	}
	f.view = v
	f.redraw(v.ring, gateways)
	f.gaps.enough = f.view.placeable
	return f, nil
}

// room reports whether there may be n supervisors more.
func (f *forecast) room(n int) error {
	if n > MaxPredicted-max(f.seated, len(f.all)) {
		return fmt.Errorf("there are more than %d supervisors in all, which is the limit", MaxPredicted)
	}
	return nil
}

// name makes up a name from the next number that is not taken.
func (f *forecast) name(from ring.GatewayID, next *int) ring.MemberID {
	for {
		m := ring.MemberID(string(from) + "/" + strconv.Itoa(*next))
		*next++
		if !f.named[m] {
			return m
		}
	}
}

func (f *forecast) add(m ring.MemberID, at ring.GatewayID) *resident {
	r := &resident{id: m, last: at}
	f.all = append(f.all, r)
	return r
}

// redraw makes the view anew, for another ring.
func (f *forecast) redraw(circle *ring.Ring, gateways []Gateway) {
	f.view = NewView(Picture{
		Self: f.view.self, Ring: circle, Gateways: gateways, Live: f.seated,
		Asking: f.view.asking, Version: f.view.version, Age: f.view.age,
	})
}

// apply carries out a step.
func (f *forecast) apply(s Step) error {
	f.moved = 0
	switch s := s.(type) {
	case Stop:
		return f.stop(s)
	case Start:
		return f.start(s)
	case Crash:
		return f.crash(s)
	case Join:
		return f.join(s)
	case Arrive:
		return f.arrive(s)
	case Leave:
		return f.leave(s)
	case Settle:
		return f.settle(s)
	default:
		return errors.New("no step")
	}
}

func (f *forecast) stop(ids []ring.GatewayID) error {
	if err := f.present(ids); err != nil {
		return err
	}
	for _, id := range ids {
		f.change(id, func(g *Gateway) { g.State = Draining })
	}
	for _, id := range ids {
		youngest := f.view.Youngest(id)
		for _, r := range byID(f.on[id]) {
			f.displace(r, Request{Member: r.id, Home: id, Avoid: []ring.GatewayID{id}, Prefer: youngest})
		}
	}
	f.remove(ids)
	return nil
}

func (f *forecast) crash(ids []ring.GatewayID) error {
	if err := f.present(ids); err != nil {
		return err
	}
	var lost []*resident
	for _, id := range ids {
		f.change(id, func(g *Gateway) { g.Suspect = true })
		lost = append(lost, f.on[id]...)
	}
	for _, r := range byID(lost) {
		f.displace(r, Request{Member: r.id, Home: r.last, Avoid: []ring.GatewayID{r.last}})
	}
	f.remove(ids)
	return nil
}

// displace places somebody whose gateway goes.
func (f *forecast) displace(r *resident, q Request) {
	d := f.view.Place(q)
	f.count(q.Home, -1)
	if d.Gateway == "" {
		f.waiting = append(f.waiting, r)
		f.live(-1)
		return
	}
	f.seat(r, d.Gateway)
}

// remove takes gateways out of the fleet, and whoever is still listed there.
func (f *forecast) remove(ids []ring.GatewayID) {
	var rest []Gateway
	for _, g := range f.view.gateways {
		if slices.Contains(ids, g.ID) {
			delete(f.on, g.ID)
			f.gone[g.ID] = g.Endpoint
			continue
		}
		rest = append(rest, g)
	}
	f.redraw(f.view.ring.Without(ids...), rest)
	f.gaps.closed()
}

func (f *forecast) start(ids []ring.GatewayID) error {
	if err := distinct(ids); err != nil {
		return err
	}
	var up []Gateway
	for _, id := range ids {
		g, here := f.view.Gateway(id)
		endpoint, gone := f.gone[id]
		switch {
		case here && g.State != Starting:
			return fmt.Errorf("gateway %q has not stopped", id)
		case !here && !gone:
			return fmt.Errorf("%w; one that is new joins", unknown(id))
		case gone:
			g = Gateway{ID: id, Endpoint: endpoint}
		}
		up = append(up, g)
	}
	if err := f.open(up); err != nil {
		return err
	}
	for _, id := range ids {
		delete(f.gone, id)
	}
	return nil
}

func (f *forecast) join(ids []ring.GatewayID) error {
	if err := distinct(ids); err != nil {
		return err
	}
	var up []Gateway
	for _, id := range ids {
		if _, here := f.view.Gateway(id); here {
			return fmt.Errorf("gateway %q is there already", id)
		}
		if _, gone := f.gone[id]; gone {
			return fmt.Errorf("gateway %q was there before: it can start, but not join", id)
		}
		up = append(up, Gateway{ID: id, Endpoint: string(id)})
	}
	return f.open(up)
}

// open makes these gateways ready; then those who wait arrive.
func (f *forecast) open(up []Gateway) error {
	var ids []ring.GatewayID
	for i := range up {
		g := &up[i]
		g.State, g.Suspect, g.Known = Ready, false, true
		if g.Incarnation == 0 {
			f.newest++
			g.Incarnation = f.newest
		}
		ids = append(ids, g.ID)
	}
	circle, err := f.view.ring.With(ids...)
	if err != nil {
		return err
	}
	f.gaps.opened(ids, f.view.placeable)
	rest := slices.DeleteFunc(slices.Clone(f.view.gateways), func(g Gateway) bool { return slices.Contains(ids, g.ID) })
	f.redraw(circle, append(rest, up...))
	waiting := f.waiting
	f.waiting = nil
	for _, r := range byID(waiting) {
		f.welcome(r)
	}
	return nil
}

func (f *forecast) arrive(s Arrive) error {
	if s.Count < 0 {
		return errors.New("it is negative")
	}
	if err := f.room(s.Count); err != nil {
		return err
	}
	for range s.Count {
		f.welcome(f.add(f.name(newcomers, &f.arrived), ""))
	}
	return nil
}

// welcome places a newcomer.
func (f *forecast) welcome(r *resident) {
	d := f.view.Place(Request{Member: r.id})
	if d.Gateway == "" {
		f.waiting = append(f.waiting, r)
		return
	}
	f.seat(r, d.Gateway)
	f.live(+1)
}

func (f *forecast) leave(s Leave) error {
	var from []*resident
	if s.From == "" {
		from = append(from, f.waiting...)
		for _, g := range f.view.gateways {
			from = append(from, f.on[g.ID]...)
		}
	} else {
		if err := f.present([]ring.GatewayID{s.From}); err != nil {
			return err
		}
		from = append(from, f.on[s.From]...)
	}
	switch {
	case s.Count < 0:
		return errors.New("it is negative")
	case s.Count > len(from):
		return fmt.Errorf("there are only %d", len(from))
	}
	type turn struct {
		slot int
		*resident
	}
	turns := make([]turn, len(from))
	for i, r := range from {
		turns[i] = turn{slot: f.view.ring.Slot(r.id), resident: r}
	}
	slices.SortFunc(turns, func(a, b turn) int { return cmp.Or(cmp.Compare(a.slot, b.slot), cmp.Compare(a.id, b.id)) })
	left := make(map[*resident]bool, s.Count)
	for _, t := range turns[:s.Count] {
		left[t.resident] = true
	}
	goes := func(r *resident) bool { return left[r] }
	f.waiting = slices.DeleteFunc(f.waiting, goes)
	for id, here := range f.on {
		stay := slices.DeleteFunc(here, goes)
		f.on[id] = stay
		f.count(id, len(stay)-len(here))
		f.live(len(stay) - len(here))
		f.gaps.left(id, len(here)-len(stay))
	}
	return nil
}

func (f *forecast) settle(s Settle) error {
	if s.Budget < 0 {
		return errors.New("its budget is negative")
	}
	if Unrest(f.view.gateways) != "" {
		return nil
	}
	type house struct {
		leavers Leavers
		here    map[ring.MemberID]*resident
	}
	all := sides(f.view.gateways)
	givers := make([]*house, len(all))
	settle(all, s.Budget, func(from, to int) {
		h := givers[from]
		if h == nil { // the first that it gives
			h = &house{here: make(map[ring.MemberID]*resident)}
			for _, r := range byID(f.on[all[from].id]) {
				h.leavers.Add(r.id, r.from)
				h.here[r.id] = r
			}
			givers[from] = h
		}
		m, _ := h.leavers.Take(all[to].id)
		r := h.here[m]
		delete(h.here, m)
		f.count(all[from].id, -1)
		f.seat(r, all[to].id)
	})
	for i, h := range givers {
		if h != nil {
			id := all[i].id
			f.on[id] = slices.DeleteFunc(f.on[id], func(r *resident) bool { return h.here[r.id] == nil })
		}
	}
	return nil
}

// seat attaches r to the gateway.
func (f *forecast) seat(r *resident, id ring.GatewayID) {
	if r.last != "" && r.last != id {
		r.moves++
		f.moved++
	}
	r.last, r.from = id, r.last
	if r.from == id { // it is there anew
		r.from = ""
	}
	f.on[id] = append(f.on[id], r)
	f.count(id, +1)
}

// count adds n to the gateway's supervisors.
func (f *forecast) count(id ring.GatewayID, n int) {
	f.change(id, func(g *Gateway) { g.Attached += n })
}

// live adds n to those who are attached anywhere.
func (f *forecast) live(n int) {
	f.seated += n
	f.view.SetLive(f.seated)
}

func (f *forecast) change(id ring.GatewayID, to func(*Gateway)) {
	g, _ := f.view.Gateway(id)
	to(&g)
	f.view.Set(g)
}

// present reports what is wrong with these if they are to be in the fleet.
func (f *forecast) present(ids []ring.GatewayID) error {
	if err := distinct(ids); err != nil {
		return err
	}
	for _, id := range ids {
		_, gone := f.gone[id]
		switch _, here := f.view.Gateway(id); {
		case gone:
			return fmt.Errorf("gateway %q is gone already", id)
		case !here:
			return unknown(id)
		}
	}
	return nil
}

func unknown(id ring.GatewayID) error { return fmt.Errorf("gateway %q is unknown", id) }

// distinct reports whether it is any gateways, each once.
func distinct(ids []ring.GatewayID) error {
	if len(ids) == 0 {
		return errNoGateway
	}
	for i, id := range ids {
		if slices.Contains(ids[:i], id) {
			return fmt.Errorf("gateway %q is named twice", id)
		}
	}
	return nil
}

// byID returns them in the order of their IDs, in a slice of its own.
func byID(some []*resident) []*resident {
	return slices.SortedFunc(slices.Values(some), func(a, b *resident) int { return cmp.Compare(a.id, b.id) })
}
