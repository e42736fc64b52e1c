// SPDX-License-Identifier: Apache-2.0

package handoff

import (
	"cmp"
	"slices"
	"time"

	"github.com/evenring/evenring/ring"
)

// Machine decides whom to tell to move and when. It drains once. It is not
// safe for concurrent use; the actions that it returns belong to the caller.
// A step costs O(log n) for n supervisors, the first and the last O(n log n).
type Machine struct {
	cfg  Config
	plan Plan

	state State
	began time.Time
	ended time.Time // once it is over

	members  []*member // sorted by ID
	byID     map[ring.MemberID]*member
	turns    turns     // of the movable ones that are here and have no order under way
	inFlight int       // orders without a result
	toMove   int       // movable and still here
	lastGone time.Time // zero, which is long ago: nobody yet
	open     int       // streams told to end that have not
	giveUpAt time.Time // when they are waited for no more
	orders   int       // given so far, repeated ones included
}

// member is one supervisor and what became of it.
type member struct {
	Member
	fate     fate
	to       ring.GatewayID // moved: where
	ordering bool           // an order is under way
	asked    bool           // an order was given
	told     bool           // and it was told to move

	turn  time.Time // when it is to be asked (again)
	place int       // in turns; -1: not there
}

type fate uint8

const (
	here   fate = iota
	moved       // attached elsewhere
	closed      // its stream ended by itself
	ending      // left behind: its stream was told to end
	ended       // left behind: and it has
)

// New returns a machine that has not begun, or every fault of the configuration.
func New(cfg Config) (*Machine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.resolved()
	return &Machine{cfg: cfg, plan: cfg.plan()}, nil
}

// State returns where the machine is.
func (m *Machine) State() State { return m.state }

// Plan returns the times that the machine keeps to.
func (m *Machine) Plan() Plan { return m.plan }

// Deadline returns when the machine wants a [Tick], and whether it wants one.
func (m *Machine) Deadline() (time.Time, bool) {
	switch m.state {
	case Announced:
		return m.handingAt(), true
	case Handing:
		next := m.endAt()
		if len(m.turns) > 0 && m.inFlight < m.cfg.InFlight && m.turns[0].turn.Before(next) {
			next = m.turns[0].turn
		}
		return next, true
	case Closing:
		return m.giveUpAt, true
	default:
		return time.Time{}, false
	}
}

func (m *Machine) handingAt() time.Time { return m.began.Add(m.plan.Propagation) }
func (m *Machine) deadline() time.Time  { return m.began.Add(m.plan.Deadline()) }

// endAt is when the handing over ends if nothing more happens: at the deadline,
// or, if there is nobody left to move, some time after the last one has gone.
func (m *Machine) endAt() time.Time {
	if lingered := m.lastGone.Add(m.cfg.Linger); m.toMove == 0 && lingered.Before(m.deadline()) {
		return lingered
	}
	return m.deadline()
}

// Step takes one event and returns what is to be done, in order. Every event is
// legal in every state; one that means nothing there changes nothing.
func (m *Machine) Step(now time.Time, event Event) []Action {
	switch e := event.(type) {
	case Begin:
		if m.state != Idle {
			return []Action{AlreadyBegun{}}
		}
		m.begin(now, e.Members)
	case Ordered:
		m.ordered(now, e)
	case Moved:
		if m.movedTo(now, e) && m.over() {
			return []Action{Finished{m.Report(now)}}
		}
	case Closed:
		m.streamClosed(now, e)
	case Abort:
		if !m.running() {
			return nil
		}
		m.state, m.ended = Aborted, now
		return []Action{Resume{}, Finished{m.Report(now)}}
	}
	if m.state == Announced && !now.Before(m.handingAt()) {
		m.state = Handing
	}
	var actions []Action
	if m.state == Handing {
		if now.Before(m.endAt()) {
			return m.order(now)
		}
		actions = m.closeRest(now)
	}
	if m.state == Closing && (m.open == 0 || !now.Before(m.giveUpAt)) {
		m.state, m.ended = Done, now
		actions = append(actions, Finished{m.Report(now)})
	}
	return actions
}

func (m *Machine) running() bool {
	return m.state == Announced || m.state == Handing || m.state == Closing
}
func (m *Machine) over() bool { return m.state == Done || m.state == Aborted }

// begin plans everybody's turn: the i-th of n somewhere in the i-th of n equal
// parts of the window.
func (m *Machine) begin(now time.Time, members []Member) {
	m.state, m.began = Announced, now
	m.byID = make(map[ring.MemberID]*member, len(members))
	for _, one := range members {
		if m.byID[one.ID] != nil {
			continue
		}
		added := &member{Member: one, place: -1}
		m.byID[one.ID] = added
		m.members = append(m.members, added)
		if one.Movable {
			m.toMove++
		}
	}
	slices.SortFunc(m.members, func(a, b *member) int { return cmp.Compare(a.ID, b.ID) })

	part := float64(m.plan.Window) / float64(max(m.toMove, 1))
	i := 0
	for _, one := range m.members {
		if !one.Movable {
			continue
		}
		into := time.Duration((float64(i) + m.jitter()) * part)
		m.turns.put(one, m.handingAt().Add(min(into, m.plan.Window)))
		i++
	}
}

// jitter keeps a Jitter that strays within its bounds.
func (m *Machine) jitter() float64 {
	j := m.cfg.Jitter()
	if j >= 0 && j < 1 {
		return j
	}
	return 0.5
}

// order tells those whose turn has come, as many as may be under way at once.
func (m *Machine) order(now time.Time) []Action {
	var actions []Action
	for m.inFlight < m.cfg.InFlight && len(m.turns) > 0 && !now.Before(m.turns[0].turn) {
		one := m.turns[0]
		m.turns.remove(one)
		one.asked, one.ordering = true, true
		m.inFlight++
		m.orders++
		actions = append(actions, Order{Member: one.ID, Until: m.deadline()})
	}
	return actions
}

// ordered notes the result of an order and plans the member's next turn.
func (m *Machine) ordered(now time.Time, e Ordered) {
	one := m.byID[e.Member]
	if one == nil || !one.ordering {
		return
	}
	one.ordering = false
	m.inFlight--
	again := m.cfg.RetryPause
	if e.Told {
		one.told = true
		again = m.cfg.OrderTimeout
	}
	if one.fate == here {
		m.turns.put(one, now.Add(again))
	}
}

// movedTo notes where a member is now, and reports whether that is news. Once
// streams are told to end only an order can still be the cause of a move.
func (m *Machine) movedTo(now time.Time, e Moved) bool {
	one := m.byID[e.Member]
	if one == nil || one.fate == moved && one.to == e.To {
		return false
	}
	if !one.told && (m.state == Closing || m.over()) {
		m.streamClosed(now, Closed{e.Member})
		return false
	}
	m.gone(now, one)
	one.fate, one.to = moved, e.To
	return true
}

// streamClosed notes that a member is gone.
func (m *Machine) streamClosed(now time.Time, e Closed) {
	one := m.byID[e.Member]
	switch {
	case one == nil || m.over():
	case one.fate == here:
		m.gone(now, one)
		one.fate = closed
	case one.fate == ending:
		m.gone(now, one)
		one.fate = ended
	}
}

// gone takes a member out of the plan, or out of the count of open streams.
func (m *Machine) gone(now time.Time, one *member) {
	switch one.fate {
	case here:
		m.turns.remove(one)
		m.lastGone = now
		if one.Movable {
			m.toMove--
		}
	case ending:
		m.open--
	}
}

// closeRest ends the streams that are left, unless they are to be kept.
func (m *Machine) closeRest(now time.Time) []Action {
	m.state = Closing
	m.giveUpAt = now.Add(m.plan.Margin / 2)
	var actions []Action
	for _, one := range m.members {
		if one.fate == here && !m.cfg.Keep {
			m.turns.remove(one)
			one.fate = ending
			m.open++
			actions = append(actions, Close{one.ID})
		}
	}
	return actions
}

// Report returns how things stand at now, at any time: whoever is still here
// counts as left behind, for the cause that would be named if it ended now.
func (m *Machine) Report(now time.Time) Report {
	r := Report{Orders: m.orders, Aborted: m.state == Aborted}
	switch {
	case m.over():
		r.Took = m.ended.Sub(m.began)
	case m.running():
		r.Took = now.Sub(m.began)
	}
	for _, one := range m.members {
		switch one.fate {
		case moved:
			r.Moved = append(r.Moved, Move{one.ID, one.to})
		case closed:
			r.Closed = append(r.Closed, one.ID)
		default:
			r.Left = append(r.Left, LeftBehind{one.ID, one.cause()})
		}
	}
	return r
}

func (one *member) cause() Cause {
	switch {
	case !one.Movable:
		return Immovable
	case one.told:
		return Silent
	case one.asked:
		return Nowhere
	default:
		return NotAsked
	}
}
