// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/evenring/evenring/handoff"
	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// What reaches a gateway. A stream is named by its supervisor and generation.
type (
	helloIn struct {
		stream
		hello redirect.Hello
	}
	goneIn struct { // the other end of the stream is gone
		stream
		clean bool
	}
	rosterIn   struct{ message string } // as encoded
	linkIn     struct{ event roster.Event }
	questionIn struct {
		place
		question placement.Question
	}
	answerIn struct {
		place
		answer  placement.Answer
		refused bool // nobody is there
	}
	serveIn struct{} // it begins
	drainIn struct{}
	dueIn   struct { // a timer has run out
		part  part
		place place // of partAsk
	}
)

// What a gateway does.
type (
	verdictOut struct {
		stream
		verdict redirect.Verdict
	}
	noticeOut struct {
		stream
		notice redirect.Notice
	}
	rosterOut struct {
		to      ring.GatewayID // empty: all
		message string
	}
	questionOut struct {
		place
		to       ring.GatewayID
		question placement.Question
	}
	answerOut struct {
		place
		answer placement.Answer
	}
	exitOut struct{} // its drain is over
)

// stream names a stream.
type stream struct {
	sup int
	gen placement.Generation
}

// place names one question of one placement.
type place struct {
	stream
	leaving bool
	round   int
}

// part is what a timer belongs to.
type part uint8

const (
	partAdmission part = iota
	partAsk
	partDrain
)

// gateway is a gateway process: the real machines, and what a transport would keep.
type gateway struct {
	id     ring.GatewayID
	adm    *redirect.Admission
	drain  *handoff.Machine
	served int // when the drain began

	pending []*pending
	opened  []opened

	heard    map[ring.GatewayID]*heard // what the walk knows that it was told
	accepted [maxSupervisors]placement.Generation
}

// pending is a placement under way.
type pending struct {
	place
	put     int // questions so far
	expires time.Time
	p       *redirect.Admitting
	sent    placement.Generation // the generation that the supervisor has said
	stay    bool
	newest  placement.Generation // known here of the member when its hello came
}

// opened is an accepted stream.
type opened struct {
	stream
	key redirect.Key
}

// heard is what one gateway was told of another.
type heard struct {
	incarnation placement.Incarnation
	sequence    uint64
	state       placement.State
	suspect     bool
	departed    bool
}

// noPeers satisfies redirect.Peers; questions are carried by the walk.
type noPeers struct{}

func (noPeers) Ask(context.Context, placement.Gateway, placement.Question) (placement.Answer, error) {
	return placement.Answer{}, errors.New("explore: the walk carries questions")
}

func (f *fleet) newGateway(now time.Time, i int, incarnation placement.Incarnation) *gateway {
	cfg := redirect.Config{Gateway: gatewayID(i), Incarnation: incarnation, Endpoint: endpoint(i)}
	cfg.Roster.Ring.Slots = 13
	if !f.noAsks {
		cfg.Peers = noPeers{}
	}
	adm, err := redirect.NewAdmission(now, cfg)
	if err != nil {
		panic(err) // a fault of the test
	}
	return &gateway{id: cfg.Gateway, adm: adm, heard: make(map[ring.GatewayID]*heard)}
}

func (g *gateway) deadlines(visit func(at time.Time, due dueIn)) {
	if at, ok := g.adm.Deadline(); ok {
		visit(at, dueIn{part: partAdmission})
	}
	for _, p := range g.pending {
		if p.p.Ask != nil {
			visit(p.expires, dueIn{part: partAsk, place: p.place})
		}
	}
	if g.drain != nil {
		if at, ok := g.drain.Deadline(); ok {
			visit(at, dueIn{part: partDrain})
		}
	}
}

// gatewayStep is one step under way.
type gatewayStep struct {
	*gateway
	fleet *fleet
	now   time.Time
	out   []any
	todo  []handoff.Event
	fault string
}

func (s *gatewayStep) blame(format string, args ...any) {
	if s.fault == "" {
		s.fault = string(s.id) + ": " + fmt.Sprintf(format, args...)
	}
}

// step takes one thing that happened.
func (s *gatewayStep) step(event any) {
	before := s.facts()
	switch e := event.(type) {
	case helloIn:
		s.hello(e)
	case goneIn:
		s.gone(e)
	case rosterIn:
		s.receive(e.message)
	case linkIn:
		s.link(e.event)
	case questionIn:
		s.listen(e.question.From)
		s.emit(answerOut{e.place, s.adm.Asked(s.now, e.question)})
	case answerIn:
		s.answer(e)
	case serveIn:
		s.adm.Serve(s.now)
	case drainIn:
		s.beginDrain()
	case dueIn:
		s.due(e)
	}
	s.settle()
	s.check(before)
}

func (s *gatewayStep) emit(out any) { s.out = append(s.out, out) }

func (s *gatewayStep) hello(e helloIn) {
	h := e.hello
	newest := s.accepted[e.sup]
	if _, at, ok := s.adm.Roster().Home(h.Member); ok {
		newest = max(newest, at.Generation)
	}
	p := &pending{place: place{stream: e.stream}, sent: h.Generation, stay: h.Stay, newest: newest}
	p.p = s.adm.Hello(s.now, s.fleet.faults.hello(s.gateway, h))
	s.pending = append(s.pending, p)
}

func (s *gatewayStep) gone(e goneIn) {
	for i, p := range s.pending {
		if p.stream == e.stream && !p.leaving {
			s.adm.Cancel(s.now, p.p)
			s.pending = remove(s.pending, i)
			return
		}
	}
	for i, o := range s.opened {
		if o.stream == e.stream {
			s.opened = remove(s.opened, i)
			s.adm.Leave(s.now, o.key, e.clean)
			return
		}
	}
}

// receive takes a roster message, and notes what it says for itself.
func (s *gatewayStep) receive(bytes string) {
	m, err := roster.Decode([]byte(bytes))
	if err != nil {
		s.blame("a message of the roster cannot be decoded: %v", err)
		return
	}
	from := ring.GatewayID("")
	if o, ok := roster.OriginOf(m); ok {
		from = o.Gateway
		h := s.heard[from]
		if h == nil {
			h = &heard{}
			s.heard[from] = h
		}
		if o.Incarnation > h.incarnation || o.Incarnation == h.incarnation && !h.departed {
			if o.Incarnation > h.incarnation || o.Sequence > h.sequence {
				h.state, h.sequence = o.State, o.Sequence
			}
			h.incarnation, h.suspect, h.departed = o.Incarnation, false, false
		}
	} else if r, ok := m.(roster.SnapshotRequest); ok {
		from = r.From
		s.listen(from)
	}
	s.feed(roster.Received{From: from, Message: m})
}

// listen notes a sign of life.
func (s *gatewayStep) listen(from ring.GatewayID) {
	if h := s.heard[from]; h != nil && !h.departed {
		h.suspect = false
	}
}

func (s *gatewayStep) link(event roster.Event) {
	switch e := event.(type) {
	case roster.LinkLost:
		if h := s.heard[e.Gateway]; h != nil {
			h.suspect = true
		}
	case roster.Departed:
		if h := s.heard[e.Gateway]; h != nil {
			h.departed = true
		}
	case roster.LinkUp:
		s.listen(e.Gateway)
	}
	s.feed(event)
}

func (s *gatewayStep) feed(event roster.Event) {
	if event = s.fleet.faults.roster(event); event != nil {
		s.adm.Step(s.now, event)
	}
}

func (s *gatewayStep) answer(e answerIn) {
	for _, p := range s.pending {
		if p.place != e.place || p.p.Ask == nil {
			continue
		}
		if e.refused {
			if h := s.heard[p.p.Ask.To.ID]; h != nil {
				h.suspect = true
			}
			s.adm.Unanswered(s.now, p.p, false)
		} else {
			s.listen(e.answer.Gateway)
			s.adm.Answered(s.now, p.p, s.fleet.faults.answer(e.answer))
		}
		return
	}
}

func (s *gatewayStep) beginDrain() {
	all, err := s.adm.StartDrain(s.now)
	if err != nil {
		s.blame("cannot drain: %v", err)
		return
	}
	m, err := handoff.New(handoff.Config{})
	if err != nil {
		panic(err) // a fault of the test
	}
	s.drain, s.served = m, len(all)
	members := make([]handoff.Member, len(all))
	for i, one := range all {
		members[i] = handoff.Member{ID: one.Member, Movable: one.Movable}
	}
	s.todo = append(s.todo, handoff.Begin{Members: members})
}

func (s *gatewayStep) due(e dueIn) {
	switch e.part {
	case partAdmission:
		s.adm.Step(s.now, roster.Tick{})
		if at, ok := s.adm.Deadline(); ok && !at.After(s.now) {
			s.blame("a tick leaves the deadline of the admission in the past")
		}
	case partAsk:
		for _, p := range s.pending {
			if p.place == e.place && p.p.Ask != nil {
				s.adm.Unanswered(s.now, p.p, true)
				break
			}
		}
	case partDrain:
		s.todo = append(s.todo, handoff.Tick{})
	}
}

// settle carries out what the machines want done, until they want no more.
func (s *gatewayStep) settle() {
	for more := true; more; {
		more = s.place()
		out := s.adm.Take()
		more = s.place() || more
		for _, t := range out.Tells {
			s.tell(t)
		}
		for _, send := range out.Sends {
			s.emit(rosterOut{to: send.To, message: string(roster.Append(nil, send.Message))})
		}
		if s.drain != nil {
			for _, d := range out.Departures {
				if d.To != "" {
					s.todo = append(s.todo, handoff.Moved{Member: d.Member, To: d.To})
				} else {
					s.todo = append(s.todo, handoff.Closed{Member: d.Member})
				}
			}
		}
		for len(s.todo) > 0 {
			event := s.todo[0]
			s.todo = s.todo[1:]
			s.handOver(event)
			more = true
		}
	}
}

// place goes on with every placement, and reports whether one went on.
func (s *gatewayStep) place() (more bool) {
	for i := 0; i < len(s.pending); i++ {
		p := s.pending[i]
		switch {
		case p.p.Done:
			s.pending = remove(s.pending, i)
			i--
			more = true
			s.placed(p)
		case p.p.Ask != nil && p.put < p.p.Asked:
			p.put = p.p.Asked
			p.round = p.put
			p.expires = s.now.Add(redirect.DefaultAskTimeout)
			s.emit(questionOut{p.place, p.p.Ask.To.ID, p.p.Ask.Question})
			if p.stay && !p.leaving && s.drain == nil {
				s.blame("asks about s%d, who asks to stay", p.sup+1)
			}
		}
	}
	return more
}

func (s *gatewayStep) placed(p *pending) {
	if p.leaving {
		if p.p.Err == nil {
			s.checkTarget(p.p.Notice.Gateway, p.p.Notice.Endpoint)
		}
		s.todo = append(s.todo, handoff.Ordered{Member: member(p.sup), Told: p.p.Err == nil, Target: p.p.Notice.Gateway})
		return
	}
	v := p.p.Verdict
	switch v.Outcome {
	case redirect.Accept:
		if p.sent <= max(p.newest, s.accepted[p.sup]) {
			s.blame("accepts generation %d of s%d, having accepted %d", p.sent, p.sup+1, max(p.newest, s.accepted[p.sup]))
		}
		s.accepted[p.sup] = p.sent
		s.opened = append(s.opened, opened{p.stream, p.p.Key})
	case redirect.Redirect:
		s.checkTarget(v.Gateway, v.Endpoint)
		if p.stay && s.drain == nil && v.Reason != redirect.ReasonPassedOn {
			s.blame("sends s%d away, who asks to stay", p.sup+1)
		}
	}
	s.emit(verdictOut{p.stream, v})
}

func (s *gatewayStep) tell(t redirect.Tell) {
	for _, o := range s.opened {
		if o.key == t.Key {
			if t.Notice.Kind == redirect.NoticeMove && s.drain == nil {
				s.blame("tells s%d to move without a drain", o.sup+1)
			}
			s.emit(noticeOut{o.stream, t.Notice})
			return
		}
	}
}

func (s *gatewayStep) handOver(event handoff.Event) {
	if s.drain == nil {
		return
	}
	for _, act := range s.drain.Step(s.now, event) {
		switch act := act.(type) {
		case handoff.Order:
			if !s.now.Before(act.Until) {
				s.blame("orders %s at or after the deadline", act.Member)
			}
			p, err := s.adm.MoveAway(s.now, act.Member)
			if err != nil {
				s.todo = append(s.todo, handoff.Ordered{Member: act.Member})
				continue
			}
			sup := supervisorOf(act.Member)
			s.pending = append(s.pending, &pending{place: place{stream: stream{sup, s.accepted[sup]}, leaving: true}, p: p})
		case handoff.Close:
			s.adm.End(act.Member, redirect.ReasonStopped)
		case handoff.Finished:
			if n := act.Report.Served(); n != s.served {
				s.blame("the drain accounts for %d of %d", n, s.served)
			}
			s.emit(exitOut{})
		}
	}
	if _, tick := event.(handoff.Tick); tick {
		if at, ok := s.drain.Deadline(); ok && !at.After(s.now) {
			s.blame("a tick leaves the deadline of the drain in the past")
		}
	}
}

func remove[T any](list []T, i int) []T {
	return append(list[:i:i], list[i+1:]...)
}
