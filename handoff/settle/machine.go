// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/evenring/evenring/handoff"
	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// Machine decides whom to move, where to and when. It settles once. It is not
// safe for concurrent use; the actions that it returns belong to the caller. A
// step costs O(gateways), and O(supervisors) if it gives an order.
type Machine struct {
	cfg Config

	state  State
	ending Ending
	began  time.Time
	ended  time.Time // once it is over
	first  redirect.Sight
	sight  redirect.Sight // the last one

	unrest     string    // what keeps the fleet from being stable, or did last
	calm       bool      // there is no unrest now
	calmSince  time.Time // no gateway has changed since
	progressed time.Time // when the settle last got on
	restedFrom time.Time // since when there has been nothing to give
	stirredAt  time.Time // when the counts last changed

	listed  bool
	members []*member // sorted by ID; who was attached when moving began, and can move
	byID    map[ring.MemberID]*member
	leavers placement.Leavers // those of them who may be told to move
	watched []*member         // told, and not seen elsewhere
	asking  map[ring.GatewayID]int
	resting map[ring.GatewayID]refusal // who is not to be asked again for a while
	told    int
	refused int
	nextAt  time.Time // no order sooner
	behind  time.Time // since when others were to give before this gateway gives one more; zero: it is not so
	turnAt  time.Time // when it no longer waits for them; zero: it does not
	wakeAt  time.Time // zero: no tick is wanted
}

// member is one supervisor and what became of it.
type member struct {
	id    ring.MemberID
	from  ring.GatewayID // who served it before
	fate  fate
	to    ring.GatewayID // where it was told to go; moved: where it is
	limit int            // that its target was asked with
	due   time.Time      // told: when it counts as failed
	at    ring.GatewayID // told: where it was when last seen; empty: nowhere
}

// refusal is a gateway's no to a question. What it is asked with a higher limit is another question.
type refusal struct {
	until time.Time // not to ask again before
	limit int
}

type fate uint8

const (
	here   fate = iota
	asking      // its target is asked
	told        // to move
	moved       // attached elsewhere
	failed      // it did not move in time
	absent      // it left by itself
)

// New returns a machine that has not begun, or every fault of the configuration.
func New(cfg Config) (*Machine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Machine{
		cfg: cfg.resolved(), byID: make(map[ring.MemberID]*member),
		asking: make(map[ring.GatewayID]int), resting: make(map[ring.GatewayID]refusal),
	}, nil
}

// State returns where the machine is.
func (m *Machine) State() State { return m.state }

// Deadline returns when the machine wants a [Tick], and whether it wants one.
func (m *Machine) Deadline() (time.Time, bool) { return m.wakeAt, !m.wakeAt.IsZero() }

// Watched returns those whose whereabouts the next look should have, in ID order.
func (m *Machine) Watched() []ring.MemberID {
	all := make([]ring.MemberID, len(m.watched))
	for i, one := range m.watched {
		all[i] = one.id
	}
	slices.Sort(all)
	return all
}

func (m *Machine) running() bool { return m.state == Waiting || m.state == Moving }
func (m *Machine) over() bool    { return m.state == Done || m.state == Ended }

// Step takes one event and returns what is to be done, in order. Every event is
// legal in every state; one that means nothing there changes nothing.
func (m *Machine) Step(now time.Time, event Event) []Action {
	if e, ok := event.(Begin); ok {
		if m.state != Idle {
			return []Action{AlreadyBegun{}}
		}
		m.state, m.began, m.progressed, m.first = Waiting, now, now, e.Sight
		m.calmSince, m.sight = now, e.Sight
		m.look(now, e.Sight)
		return m.goOn(now)
	}
	if !m.running() {
		if e, ok := event.(Ordered); ok { // it was under way at the end
			m.ordered(now, e)
		}
		return nil
	}
	switch e := event.(type) {
	case Seen:
		m.look(now, e.Sight)
	case Listed:
		m.list(e.Members)
	case Ordered:
		m.ordered(now, e)
	case Abort:
		return m.end(now, Aborted)
	}
	return m.goOn(now)
}

// look takes in the fleet as it is now.
func (m *Machine) look(now time.Time, s redirect.Sight) {
	if change := changed(m.sight, s); change != "" {
		m.disturbed(now, change)
	}
	switch trouble := troubled(s); {
	case trouble != "":
		m.calm = false
		m.disturbed(now, trouble)
	case !m.calm:
		m.calm, m.calmSince = true, now
	}
	if !slices.Equal(m.sight.Gateways, s.Gateways) {
		m.stirredAt = now
	}
	m.sight = s
	for _, w := range s.Where {
		m.seenAt(now, w)
	}
	m.watched = slices.DeleteFunc(m.watched, func(one *member) bool { return one.fate == moved })
}

// disturbed notes that the fleet is not stable, and why. Nobody moves until it is again.
func (m *Machine) disturbed(now time.Time, why string) {
	m.unrest, m.calmSince = why, now
	if m.state == Moving {
		m.state, m.progressed = Waiting, now
	}
}

// seenAt notes where one that was told to move is.
func (m *Machine) seenAt(now time.Time, w redirect.Whereabouts) {
	one := m.byID[w.Member]
	if one == nil || one.fate != told && one.fate != failed {
		return
	}
	one.at = w.At
	if w.At != "" && w.At != m.sight.Self {
		one.fate, one.to = moved, w.At
		m.progressed = now
	}
}

// list takes in who may be moved.
func (m *Machine) list(members []redirect.Supervisor) {
	if !m.listed || m.members != nil {
		return
	}
	m.members = []*member{}
	for _, s := range members {
		if s.Movable && m.byID[s.Member] == nil {
			one := &member{id: s.Member, from: s.From}
			m.byID[s.Member] = one
			m.members = append(m.members, one)
		}
	}
	slices.SortFunc(m.members, func(a, b *member) int { return cmp.Compare(a.id, b.id) })
	for _, one := range m.members {
		m.leavers.Add(one.id, one.from)
	}
}

// ordered notes the result of an order.
func (m *Machine) ordered(now time.Time, e Ordered) {
	one := m.byID[e.Member]
	if one == nil || one.fate != asking {
		return
	}
	if m.asking[one.to]--; m.asking[one.to] == 0 {
		delete(m.asking, one.to)
	}
	switch e.Result {
	case Told:
		one.fate, one.due, one.at = told, now.Add(m.cfg.MoveTimeout), m.sight.Self
		m.watched = append(m.watched, one)
		m.told++
		m.progressed = now
	case Absent:
		one.fate = absent
	default:
		m.refused++
		m.resting[one.to] = refusal{until: now.Add(m.cfg.RetryPause), limit: one.limit}
		one.fate, one.to = here, ""
		m.leavers.Add(one.id, one.from)
	}
}

// goOn does what is to be done now, and finds out when to look again.
func (m *Machine) goOn(now time.Time) []Action {
	m.wakeAt = time.Time{}
	if m.sight.Over {
		return m.end(now, Draining)
	}
	m.expire(now)
	if m.state == Waiting && m.calm {
		m.wait(now)
	}
	var actions []Action
	if m.state == Moving {
		if !m.listed {
			m.listed = true
			return []Action{List{}}
		}
		if m.members == nil {
			return nil
		}
		actions = m.move(now)
	}
	if m.running() && m.idle() && !now.Before(m.progressed.Add(m.cfg.Patience)) {
		return append(actions, m.end(now, m.gaveUp())...)
	}
	m.wake(m.progressed.Add(m.cfg.Patience), now)
	return actions
}

// idle reports whether nobody is under way.
func (m *Machine) idle() bool { return len(m.asking) == 0 && m.outgoing().Pending == 0 }

// gaveUp is the ending when nothing has got on for too long.
func (m *Machine) gaveUp() Ending {
	if m.state == Waiting {
		return Unstable
	}
	return m.settled()
}

// settled is the ending when there is nobody left to move.
func (m *Machine) settled() Ending {
	switch {
	case owed(m.sight) == 0:
		return Even
	case m.spent():
		return Spent
	default:
		return Stuck
	}
}

// wait goes over to moving once the fleet has been stable for long enough.
func (m *Machine) wait(now time.Time) {
	if stable := m.calmSince.Add(m.cfg.Stable); now.Before(stable) {
		m.wake(stable, now)
		return
	}
	if held := m.held(); held > 0 {
		m.unrest = fmt.Sprintf("%d supervisors on hold", held)
		if held == 1 {
			m.unrest = "1 supervisor on hold"
		}
		return
	}
	m.state, m.unrest, m.progressed = Moving, "", now
	m.restedFrom, m.behind, m.turnAt = time.Time{}, time.Time{}, time.Time{}
}

func (m *Machine) held() int {
	held := 0
	for i := range m.sight.Gateways {
		held += m.sight.Gateways[i].Held
	}
	return held
}

// move gives the orders that are due, or ends the settle.
func (m *Machine) move(now time.Time) []Action {
	var actions []Action
	for {
		g, next := m.plan(now)
		switch {
		case next.To == "" || m.leavers.Len() == 0 || m.spent():
			return append(actions, m.rest(now, g.Owes() && !m.spent())...)
		case m.underWay() >= m.cfg.InFlight:
			m.restedFrom = time.Time{}
			return actions
		case now.Before(m.nextAt):
			m.restedFrom = time.Time{}
			m.wake(m.nextAt, now)
			return actions
		}
		m.restedFrom = time.Time{}
		id, _ := m.leavers.Take(next.To)
		one := m.byID[id]
		one.fate, one.to, one.limit = asking, next.To, next.Limit
		m.asking[next.To]++
		m.nextAt = now.Add(m.cfg.Interval)
		actions = append(actions, Order{Member: one.id, To: next.To, Limit: next.Limit})
	}
}

// plan returns what this gateway may give by the last look, and the next move;
// without one, it has no target.
func (m *Machine) plan(now time.Time) (placement.Giver, placement.Offer) {
	g := placement.NewGiver(m.sight.Self, m.sight.Gateways, m.outgoing())
	return g, g.Next(m.waited(now, g.Behind()), func(o placement.Offer) bool {
		r := m.resting[o.To]
		if o.Limit > r.limit || !now.Before(r.until) {
			return false
		}
		m.wake(r.until, now)
		return true
	})
}

// waited reports whether this gateway has waited long enough for so many others to give
// one more before it does: Linger for each, so that they do not all lose patience at
// once, and MoveTimeout at most.
func (m *Machine) waited(now time.Time, behind int) bool {
	switch {
	case behind == 0:
		m.behind, m.turnAt = time.Time{}, time.Time{}
		return false
	case m.behind.IsZero():
		m.behind = now
	}
	m.turnAt = m.behind.Add(min(time.Duration(behind)*m.cfg.Linger, max(m.cfg.MoveTimeout, m.cfg.Linger)))
	m.wake(m.turnAt, now)
	return !now.Before(m.turnAt)
}

// rest ends the settle if there has been nothing to give for a while, or, if
// others may have to move first, if nobody has moved for a while.
func (m *Machine) rest(now time.Time, owes bool) []Action {
	if !m.idle() {
		m.restedFrom = time.Time{}
		return nil
	}
	if m.restedFrom.IsZero() {
		m.restedFrom = now
	}
	until := m.restedFrom.Add(m.cfg.Linger)
	if owes {
		until = latest(m.restedFrom, m.stirredAt).Add(max(m.cfg.MoveTimeout, m.cfg.Linger))
		until = latest(until, m.turnAt.Add(m.cfg.Linger))
	}
	if now.Before(until) {
		m.wake(until, now)
		return nil
	}
	return m.end(now, m.settled())
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// spent reports whether the budget is used up.
func (m *Machine) spent() bool { return m.cfg.Budget > 0 && m.told+m.askingNow() >= m.cfg.Budget }

// outgoing counts who goes from here.
func (m *Machine) outgoing() placement.Outgoing {
	out := placement.Outgoing{Asking: m.asking}
	for _, one := range m.watched {
		if one.fate == told {
			out.Pending++
		}
		if one.at == m.sight.Self {
			out.Here++
			if one.fate == failed {
				out.Failed++
			}
		}
	}
	return out
}

// underWay is how many are being moved at the moment.
func (m *Machine) underWay() int { return m.outgoing().Pending + m.askingNow() }

func (m *Machine) askingNow() int {
	n := 0
	for _, k := range m.asking {
		n += k
	}
	return n
}

// expire notes who has not moved in time.
func (m *Machine) expire(now time.Time) {
	for _, one := range m.watched {
		switch {
		case one.fate != told:
		case now.Before(one.due):
			m.wake(one.due, now)
		default:
			one.fate = failed
		}
	}
}

// wake wants a tick at that time, if that is to come.
func (m *Machine) wake(at, now time.Time) {
	if m.running() && at.After(now) && (m.wakeAt.IsZero() || at.Before(m.wakeAt)) {
		m.wakeAt = at
	}
}

// end ends the settle.
func (m *Machine) end(now time.Time, why Ending) []Action {
	m.state, m.ending, m.ended, m.wakeAt = Ended, why, now, time.Time{}
	if why == Even || why == Spent || why == Stuck {
		m.state = Done
	}
	return []Action{Finished{m.Report(now)}}
}

// Report returns how things stand at now, at any time.
func (m *Machine) Report(now time.Time) Report {
	r := Report{Ending: m.ending, Refused: m.refused, Unrest: m.unrest}
	if m.state == Idle {
		return r
	}
	r.Took = now.Sub(m.began)
	if m.over() {
		r.Took = m.ended.Sub(m.began)
	}
	r.Before, r.After, r.Left = balance(m.first), balance(m.sight), owed(m.sight)
	for _, one := range m.members {
		switch one.fate {
		case moved:
			r.Moved = append(r.Moved, handoff.Move{Member: one.id, To: one.to})
		case told, failed:
			r.Failed = append(r.Failed, Failure{one.id, one.to, m.cause(one)})
		}
	}
	return r
}

func (m *Machine) cause(one *member) Cause {
	switch {
	case one.at == "":
		return Vanished
	case one.fate == failed:
		return Silent
	default:
		return UnderWay
	}
}

// changed says in which way the gateways are others than before; empty: in none.
func changed(before, after redirect.Sight) string {
	was := make(map[ring.GatewayID]bool, len(before.Gateways))
	for i := range before.Gateways {
		g := &before.Gateways[i]
		was[g.ID] = true
		j := slices.IndexFunc(after.Gateways, func(a placement.Gateway) bool { return a.ID == g.ID })
		switch {
		case j < 0:
			return fmt.Sprintf("gateway %q has left", g.ID)
		case after.Gateways[j].Incarnation != g.Incarnation:
			return fmt.Sprintf("gateway %q has started anew", g.ID)
		}
	}
	for i := range after.Gateways {
		if id := after.Gateways[i].ID; !was[id] {
			return fmt.Sprintf("gateway %q has joined", id)
		}
	}
	return ""
}

// troubled says what is wrong with the fleet; empty: nothing.
func troubled(s redirect.Sight) string {
	if s.Stale {
		return "the view is stale"
	}
	return placement.Unrest(s.Gateways)
}

// balance returns how even the fleet is.
func balance(s redirect.Sight) placement.Balance {
	return placement.NewView(placement.Picture{Self: s.Self, Gateways: s.Gateways}).Balance()
}

// owed returns how many this gateway would have to give.
func owed(s redirect.Sight) (n int) {
	for _, t := range placement.NewView(placement.Picture{Self: s.Self, Gateways: s.Gateways}).Settle() {
		if t.From == s.Self {
			n += t.Count
		}
	}
	return n
}
