// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/supervisor"
	"github.com/evenring/evenring/ring"
)

// action is one thing that may happen next.
type action struct {
	kind kind
	a, b int           // positions: of gateways, supervisors, conns or questions
	due  dueIn         // due: of gateway a
	at   time.Duration // due, tick: when
}

type kind uint8

const (
	start   kind = iota // supervisor a begins
	tick                // the timer of supervisor a has run out
	due                 // a timer of gateway a has run out
	arrive              // what conn a has for its gateway first; from the Service to gateway b
	back                // what conn a has for its supervisor first
	deliver             // the first message from gateway a to b
	late                // a message of a link before
	carry               // question a, or its answer
	restart             // gateway a starts again
	revive              // supervisor a starts again

	// What takes from the budget.
	breaks // conn a breaks
	parts  // the link between gateways a and b
	crash  // gateway a
	kill   // supervisor a
	drain  // gateway a
)

// fair reports whether an action happens by itself if one only waits.
func (a action) fair() bool { return a.kind < breaks }

// actions returns everything that may happen next, in an order that depends on the state alone.
func (f *fleet) actions(s *state) []action {
	var all []action
	add := func(k kind, a, b int) { all = append(all, action{kind: k, a: a, b: b}) }
	for i, c := range s.conns {
		if len(c.up) > 0 {
			if c.gw >= 0 {
				add(arrive, i, int(c.gw))
			} else {
				f.choices(s, i, add)
			}
		}
		if len(c.down) > 0 {
			add(back, i, 0)
		}
	}
	for i := range f.gateways {
		for j := range f.gateways {
			if len(s.links[i][j].queue) > 0 {
				add(deliver, i, j)
			}
			if s.links[i][j].late != 0 {
				add(late, i, j)
			}
		}
	}
	for i := range s.asks {
		add(carry, i, 0)
	}
	for i := range f.sups {
		switch {
		case s.sups[i].started == 0:
			add(start, i, 0)
		case s.sups[i].proc == 0:
			add(revive, i, 0)
		}
	}
	for i := range f.gateways {
		if s.gws[i].proc == 0 && !s.gws[i].exited {
			add(restart, i, 0)
		}
	}
	all = append(all, f.timers(s)...)
	return append(all, f.troubles(s)...)
}

// choices are the gateways that the Service may pick for conn i: any that runs.
func (f *fleet) choices(s *state, i int, add func(k kind, a, b int)) {
	n := 0
	for j := range f.gateways {
		if s.gws[j].proc != 0 {
			add(arrive, i, j)
			n++
		}
	}
	if n == 0 {
		add(arrive, i, -1)
	}
}

// timers are those that run out first, each in its turn.
func (f *fleet) timers(s *state) []action {
	var first []action
	soonest := int64(-1)
	consider := func(at time.Time, a action) {
		when := max(f.since(at), s.now)
		a.at = time.Duration(when)
		switch {
		case soonest < 0 || when < soonest:
			soonest, first = when, append(first[:0], a)
		case when == soonest:
			first = append(first, a)
		}
	}
	for i := range f.sups {
		if p := s.sups[i].proc; p != 0 {
			if at, ok := f.procs[p].(*sup).machine.Deadline(); ok {
				consider(at, action{kind: tick, a: i})
			}
		}
	}
	for i := range f.gateways {
		if p := s.gws[i].proc; p != 0 {
			f.procs[p].(*gateway).deadlines(func(at time.Time, d dueIn) { consider(at, action{kind: due, a: i, due: d}) })
		}
	}
	return first
}

// troubles are what the budget still allows.
func (f *fleet) troubles(s *state) []action {
	var all []action
	add := func(k kind, a, b int) { all = append(all, action{kind: k, a: a, b: b}) }
	if s.budget.breaks > 0 {
		for i, c := range s.conns {
			if c.client == dialing || c.client == streaming {
				add(breaks, i, 0)
			}
		}
	}
	for i := range f.gateways {
		if s.gws[i].proc == 0 {
			continue
		}
		if s.budget.crashes > 0 {
			add(crash, i, 0)
		}
		if s.budget.drains > 0 && !s.gws[i].draining {
			add(drain, i, 0)
		}
		for j := i + 1; j < f.gateways && s.budget.parts > 0; j++ {
			if s.gws[j].proc != 0 {
				add(parts, i, j)
			}
		}
	}
	for i := range f.sups {
		if s.budget.kills > 0 && s.sups[i].proc != 0 {
			add(kill, i, 0)
		}
	}
	return all
}

// turn is one action under way, which changes the state in place.
type turn struct {
	*state
	fleet *fleet
	fault string
	lines []string // what happened, if it is told
	told  bool
}

func (t *turn) say(format string, args ...any) {
	if t.told {
		t.lines = append(t.lines, fmt.Sprintf(format, args...))
	}
}

// follow returns the state after an action, and what was wrong with it, if anything was.
func (f *fleet) follow(s *state, a action) (*state, string) {
	t := turn{state: s.copy(), fleet: f}
	t.take(a)
	return t.state, t.fault
}

// copy shares the queues, which are never written to.
func (s *state) copy() *state {
	c := *s
	c.conns = slices.Clone(s.conns)
	c.asks = slices.Clone(s.asks)
	return &c
}

func (t *turn) take(a action) {
	switch a.kind {
	case start:
		t.launch(a.a)
	case revive:
		t.say("%s starts again", member(a.a))
		t.launch(a.a)
	case tick:
		t.now = int64(a.at)
		t.say("the timer of %s", member(a.a))
		t.sup(a.a, supervisor.Tick{})
	case due:
		t.now = int64(a.at)
		t.say("%s", t.fleet.timerName(t.state, a))
		t.gateway(a.a, a.due)
	case arrive:
		t.arrive(a.a, a.b)
	case back:
		t.comeBack(a.a)
	case deliver:
		l := &t.links[a.a][a.b]
		first := l.queue[0]
		l.queue = l.queue[1:]
		t.say("%s hears %s: %s", gatewayID(a.b), gatewayID(a.a), t.fleet.describe(first))
		t.gatewayEvent(a.b, first)
	case late:
		l := &t.links[a.a][a.b]
		first := l.late
		l.late = 0
		t.say("%s hears %s, late: %s", gatewayID(a.b), gatewayID(a.a), t.fleet.describe(first))
		t.gatewayEvent(a.b, first)
	case carry:
		t.carry(a.a)
	case restart:
		t.boot(a.a)
	default:
		t.trouble(a)
	}
	t.tidy()
}

// tidy forgets streams that are over on both sides.
func (t *turn) tidy() {
	t.conns = slices.DeleteFunc(t.conns, func(c conn) bool {
		return c.client == closed && len(c.up) == 0 && len(c.down) == 0
	})
}

func (t *turn) launch(i int) {
	at := &t.sups[i]
	at.proc = t.fleet.proc(t.fleet.newSup(i, int(at.started)))
	at.started++
	t.sup(i, supervisor.Start{})
}

// boot starts a gateway and lets it and the others learn of each other.
func (t *turn) boot(i int) {
	at := &t.gws[i]
	at.started++
	at.draining = false
	at.proc = t.fleet.proc(t.fleet.newGateway(t.fleet.at(t.now), i, placement.Incarnation(at.started)))
	t.say("%s starts, process %d", gatewayID(i), at.started)
	t.gateway(i, serveIn{})
	for j := range t.fleet.gateways {
		if j != i && t.gws[j].proc != 0 {
			t.push(i, j, linkIn{roster.LinkUp{Gateway: gatewayID(i)}})
			t.push(j, i, linkIn{roster.LinkUp{Gateway: gatewayID(j)}})
		}
	}
}

func (t *turn) push(from, to int, event any) {
	l := &t.links[from][to]
	l.queue = append(slices.Clip(l.queue), t.fleet.value(event))
}

// sup gives a supervisor an event and carries out what follows.
func (t *turn) sup(i int, event supervisor.Event) { t.supEvent(i, t.fleet.value(event)) }

func (t *turn) supEvent(i int, event id) {
	at := &t.sups[i]
	s := t.fleet.step(at.proc, event, t.now)
	at.proc = s.proc
	t.blame(s.fault)
	for _, n := range s.out {
		switch o := t.fleet.values[n].(type) {
		case dialOut:
			t.say("  %s dials %s, generation %d%s", member(i), o.addr, o.gen, staying(o.hello))
			c := conn{stream: o.stream, gw: -1, up: []id{t.fleet.value(helloIn{o.stream, o.hello})}}
			if o.addr != service {
				c.gw = int8(addressed(o.addr))
			}
			at, _ := slices.BinarySearchFunc(t.conns, c, func(a, b conn) int {
				return cmp.Or(cmp.Compare(a.sup, b.sup), cmp.Compare(a.gen, b.gen))
			})
			t.conns = slices.Insert(t.conns, at, c)
		case abandonOut:
			t.say("  %s waits no more for generation %d", member(i), o.gen)
			if c := t.conn(o.stream); c != nil && c.client == dialing {
				c.client = abandoned
				c.send(t.fleet.value(goneIn{o.stream, false}))
			}
		case closeOut:
			t.say("  %s closes generation %d", member(i), o.gen)
			if c := t.conn(o.stream); c != nil && c.client != closed {
				c.client, c.down = closed, nil
				c.send(t.fleet.value(goneIn{o.stream, true}))
			}
		case adoptOut:
			t.say("  %s is attached, generation %d", member(i), o.gen)
		}
	}
}

func staying(h redirect.Hello) string {
	if h.Stay {
		return fmt.Sprintf(", staying, after %d redirects", h.Hops)
	}
	return ""
}

func addressed(addr string) int {
	return gatewayIndex(ring.GatewayID(addr[len(addr)-1:]))
}

// send puts something in the queue to the gateway, unless nobody is there.
func (c *conn) send(n id) {
	if !c.reached || c.gw >= 0 {
		c.up = append(slices.Clip(c.up), n)
	}
}

func (t *turn) conn(of stream) *conn {
	for i := range t.conns {
		if t.conns[i].stream == of {
			return &t.conns[i]
		}
	}
	return nil
}

func (t *turn) blame(fault string) {
	if t.fault == "" {
		t.fault = fault
	}
}

// gateway gives a gateway an event and carries out what follows.
func (t *turn) gateway(i int, event any) { t.gatewayEvent(i, t.fleet.value(event)) }

func (t *turn) gatewayEvent(i int, event id) {
	at := &t.gws[i]
	if at.proc == 0 {
		return
	}
	s := t.fleet.step(at.proc, event, t.now)
	at.proc = s.proc
	t.blame(s.fault)
	exits := false
	for _, n := range s.out {
		switch o := t.fleet.values[n].(type) {
		case verdictOut:
			t.verdict(i, n, o)
		case noticeOut:
			t.notice(i, n, o)
		case rosterOut:
			for j := range t.fleet.gateways {
				if j != i && t.gws[j].proc != 0 && (o.to == "" || o.to == gatewayID(j)) {
					t.push(i, j, rosterIn{o.message})
				}
			}
		case questionOut:
			t.say("  %s asks %s about %s below %d (insist: %t)", gatewayID(i), o.to, member(o.sup), o.question.Limit, o.question.Insist)
			t.question(ask{from: int8(i), to: int8(gatewayIndex(o.to)), place: o.place, question: t.fleet.value(questionIn{o.place, o.question})})
		case answerOut:
			t.say("  %s answers %t", gatewayID(i), o.answer.Yes)
			for k, a := range t.asks {
				if int(a.to) == i && a.answer == 0 && a.place == o.place {
					t.asks[k].answer = t.fleet.value(answerIn{place: o.place, answer: o.answer})
					break
				}
			}
		case exitOut:
			exits = true
		}
	}
	if exits {
		t.say("  %s is drained and exits", gatewayID(i))
		t.fall(i, true)
	}
}

func (t *turn) question(a ask) {
	at, _ := slices.BinarySearchFunc(t.asks, a, func(a, b ask) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), cmp.Compare(a.question, b.question))
	})
	t.asks = slices.Insert(t.asks, at, a)
	if t.gws[a.to].proc == 0 {
		t.asks[at].answer = t.fleet.value(answerIn{place: a.place, refused: true})
	}
}

func (t *turn) verdict(i int, n id, o verdictOut) {
	t.say("  %s says %s to %s (%s) %s", gatewayID(i), o.verdict.Outcome, member(o.sup), o.verdict.Reason, o.verdict.Gateway)
	if o.verdict.Outcome == redirect.Accept {
		t.sups[o.sup].accepted = max(t.sups[o.sup].accepted, o.gen)
	}
	if c := t.conn(o.stream); c != nil && c.client != closed {
		c.down = append(slices.Clip(c.down), n)
	}
}

func (t *turn) notice(i int, n id, o noticeOut) {
	t.say("  %s tells %s, generation %d: %s (%s) %s", gatewayID(i), member(o.sup), o.gen, o.notice.Kind, o.notice.Reason, o.notice.Gateway)
	ends := o.notice.Kind == redirect.NoticeEnd
	if ends && o.notice.Reason != redirect.ReasonStopped && t.sups[o.sup].accepted <= o.gen {
		t.blame(fmt.Sprintf("%s: ends the stream of s%d (%s), which is its newest", gatewayID(i), o.sup+1, o.notice.Reason))
	}
	c := t.conn(o.stream)
	if c == nil {
		return
	}
	if c.client != closed {
		c.down = append(slices.Clip(c.down), n)
	}
	if ends { // the transport ends the stream then
		c.end(t)
	}
}

// end lets both sides see that the stream is over.
func (c *conn) end(t *turn) {
	c.lose(t)
	c.up = append(slices.Clip(c.up), t.fleet.value(goneIn{c.stream, false}))
}

// lose lets the supervisor see that the stream is over.
func (c *conn) lose(t *turn) {
	end := t.fleet.value(lostIn{})
	if c.client != closed && (len(c.down) == 0 || c.down[len(c.down)-1] != end) {
		c.down = append(slices.Clip(c.down), end)
	}
}

// lostIn ends a queue to a supervisor: the stream is over.
type lostIn struct{}

func (t *turn) arrive(i, gw int) {
	c := &t.conns[i]
	n := c.up[0]
	c.up = c.up[1:]
	if gw < 0 || t.gws[gw].proc == 0 {
		t.say("nobody listens for %s, generation %d", member(c.sup), c.gen)
		c.up, c.gw, c.reached = nil, -1, true
		c.lose(t)
		return
	}
	c.gw, c.reached = int8(gw), true
	of := c.stream
	t.say("%s gets %s of %s, generation %d", gatewayID(gw), t.fleet.describe(n), member(c.sup), c.gen)
	t.gatewayEvent(gw, n)
	if _, gone := t.fleet.values[n].(goneIn); gone {
		if c := t.conn(of); c != nil && c.client != closed {
			c.up = nil
			c.lose(t)
		}
	}
}

func (t *turn) comeBack(i int) {
	c := &t.conns[i]
	n := c.down[0]
	c.down = c.down[1:]
	sup, gen := c.sup, c.gen
	switch o := t.fleet.values[n].(type) {
	case verdictOut:
		t.say("%s gets the verdict on generation %d: %s", member(sup), gen, o.verdict.Outcome)
		if o.verdict.Outcome == redirect.Accept {
			if c.client == dialing {
				c.client = streaming
			}
		} else {
			c.client, c.down = closed, nil
		}
		t.supEvent(sup, t.fleet.answered(n))
	case noticeOut:
		t.say("%s is told on generation %d: %s (%s) %s", member(sup), gen, o.notice.Kind, o.notice.Reason, o.notice.Gateway)
		t.sup(sup, supervisor.Noticed{Generation: gen, Notice: o.notice})
	case lostIn:
		before := c.client
		c.client, c.down = closed, nil
		t.say("%s loses generation %d", member(sup), gen)
		if before == streaming {
			t.sup(sup, supervisor.Lost{Generation: gen})
		} else {
			t.sup(sup, supervisor.Failed{Generation: gen})
		}
	}
}

func (t *turn) carry(i int) {
	a := t.asks[i]
	if a.answer == 0 {
		t.say("the question about %s reaches %s", member(a.place.sup), gatewayID(int(a.to)))
		t.gatewayEvent(int(a.to), a.question)
		return
	}
	t.say("the answer about %s reaches %s", member(a.place.sup), gatewayID(int(a.from)))
	t.asks = slices.Delete(t.asks, i, i+1)
	t.gatewayEvent(int(a.from), a.answer)
}

func (t *turn) trouble(a action) {
	switch a.kind {
	case breaks:
		t.budget.breaks--
		c := &t.conns[a.a]
		t.say("generation %d of %s breaks", c.gen, member(c.sup))
		c.down, c.up = []id{t.fleet.value(lostIn{})}, nil
		if c.reached {
			c.up = []id{t.fleet.value(goneIn{c.stream, false})}
		}
		c.reached = true
	case parts:
		t.budget.parts--
		t.say("the link between %s and %s breaks", gatewayID(a.a), gatewayID(a.b))
		t.cut(a.a, a.b)
		t.cut(a.b, a.a)
		t.push(a.a, a.b, linkIn{roster.LinkUp{Gateway: gatewayID(a.a)}})
		t.push(a.b, a.a, linkIn{roster.LinkUp{Gateway: gatewayID(a.b)}})
	case crash:
		t.budget.crashes--
		t.say("%s crashes", gatewayID(a.a))
		t.fall(a.a, false)
	case kill:
		t.budget.kills--
		t.say("%s crashes", member(a.a))
		t.sups[a.a].proc = 0
		for i := range t.conns {
			if c := &t.conns[i]; c.sup == a.a && c.client != closed {
				c.client, c.down = closed, nil
				c.send(t.fleet.value(goneIn{c.stream, false}))
			}
		}
	case drain:
		t.budget.drains--
		t.say("%s begins to drain", gatewayID(a.a))
		t.gws[a.a].draining = true
		t.gateway(a.a, drainIn{})
	}
}

// cut breaks a link: what is under way is lost, but for its last message, which
// may arrive late, as gossip does.
func (t *turn) cut(from, to int) {
	l := &t.links[from][to]
	for _, n := range l.queue {
		if _, is := t.fleet.values[n].(rosterIn); is {
			l.late = n
		}
	}
	l.queue = []id{t.fleet.value(linkIn{roster.LinkLost{Gateway: gatewayID(from)}})}
}

// fall ends a gateway's process, with a word to its peers or without one.
func (t *turn) fall(i int, word bool) {
	at := &t.gws[i]
	at.proc, at.exited = 0, word
	for j := range t.fleet.gateways {
		if j == i {
			continue
		}
		t.links[j][i] = link{}
		switch {
		case t.gws[j].proc == 0:
		case word:
			t.push(i, j, linkIn{roster.Departed{Gateway: gatewayID(i), Incarnation: placement.Incarnation(at.started)}})
		default:
			t.cut(i, j)
		}
	}
	for k := range t.conns {
		c := &t.conns[k]
		if int(c.gw) != i || !c.reached {
			continue
		}
		c.up, c.down, c.gw = nil, nil, -1
		c.lose(t)
	}
	t.asks = slices.DeleteFunc(t.asks, func(a ask) bool { return int(a.from) == i })
	for k := range t.asks {
		if a := &t.asks[k]; int(a.to) == i && a.answer == 0 {
			a.answer = t.fleet.value(answerIn{place: a.place, refused: true})
		}
	}
}

// describe says in a few words what a message is.
func (f *fleet) describe(n id) string {
	switch v := f.values[n].(type) {
	case helloIn:
		return "the hello"
	case goneIn:
		return "the end"
	case linkIn:
		return fmt.Sprintf("%T", v.event)[len("roster."):]
	case rosterIn:
		m, err := roster.Decode([]byte(v.message))
		if err != nil {
			return err.Error()
		}
		switch m := m.(type) {
		case roster.Delta:
			return fmt.Sprintf("delta from %d to %d, %s, %v", m.From, m.Sequence, m.State, m.Changes)
		case roster.Snapshot:
			return fmt.Sprintf("snapshot at %d, %s, %v", m.Sequence, m.State, m.Entries)
		case roster.Heartbeat:
			return fmt.Sprintf("heartbeat at %d of process %d, %s", m.Sequence, m.Incarnation, m.State)
		default:
			return "asks for a snapshot"
		}
	default:
		return fmt.Sprintf("%T", v)
	}
}

func (f *fleet) timerName(_ *state, a action) string {
	what := map[part]string{partAdmission: "the admission's timer", partAsk: "the time for a question", partDrain: "the drain's timer"}[a.due.part]
	return fmt.Sprintf("%s: %s", gatewayID(a.a), what)
}
