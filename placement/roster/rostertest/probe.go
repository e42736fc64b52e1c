// SPDX-License-Identifier: Apache-2.0

package rostertest

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/ring"
)

// probe is a replica that keeps track of single messages. It answers every
// request at once, out of Step.
type probe struct {
	post      *post
	id        ring.GatewayID
	transport atomic.Pointer[roster.Transport]
	stop      func() // once
	stopped   atomic.Bool
}

// post knows every letter that is under way.
type post struct {
	exam   *exam
	probes []*probe

	mu      sync.Mutex
	letters map[uint64]letter
	arrived map[uint64]map[ring.GatewayID]bool
}

// letter is a message with a number of its own, whom it is for, or "" for all
// but its sender, and what it looks like.
type letter struct {
	from, to ring.GatewayID
	bytes    []byte
	request  bool // it is answered
}

// write makes a letter. Without a size it is a small one, and a request if it is to one
// gateway; otherwise it is an answer to the request of that number, or to none, of
// hardly less than size bytes.
func (p *post) write(from, to ring.GatewayID, size int, answers uint64) (number uint64, b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	number = uint64(len(p.letters) + 1)
	origin := roster.Origin{Gateway: from, Endpoint: string(to), Counts: placement.Counts{Incarnation: 1, Sequence: number}}
	var m roster.Message
	switch {
	case size == 0 && to != "":
		m = roster.SnapshotRequest{From: from, Gateway: to, Incarnation: 1, Have: number}
	case size == 0:
		m = roster.Heartbeat{Origin: origin}
	default:
		page := roster.Snapshot{Origin: origin, Digest: answers, Pages: 1}
		for i := range size / entrySize {
			page.Entries = append(page.Entries, roster.Entry{Member: name(i), Generation: placement.Generation(number)})
		}
		m = page
	}
	b = roster.Append(nil, m)
	p.letters[number] = letter{from: from, to: to, bytes: bytes.Clone(b), request: size == 0 && to != ""}
	return number, b
}

// An entry has a name, two lengths, and a number.
const (
	nameSize  = 40
	entrySize = nameSize + 8
)

func name(i int) ring.MemberID { return ring.MemberID(fmt.Sprintf("%0*d", nameSize, i)) }

// receive takes what has arrived at a gateway.
func (p *post) receive(at ring.GatewayID, r roster.Received) {
	if r.Message == nil {
		p.exam.fault("%s was given no message", at)
		return
	}
	number := speaker(r.Message).Sequence
	if q, ok := r.Message.(roster.SnapshotRequest); ok {
		number = q.Have
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	l, ok := p.letters[number]
	switch {
	case !ok || !bytes.Equal(l.bytes, roster.Append(nil, r.Message)):
		p.exam.fault("%s was given a %T that nobody sent", at, r.Message)
	case r.From != "" && r.From != l.from:
		p.exam.fault("%s was given a message of %s as one of %s", at, l.from, r.From)
	case at == l.from:
		p.exam.fault("%s was given its own %T", at, r.Message)
	case l.to != "" && at != l.to:
		p.exam.fault("%s was given a %T that is for %s", at, r.Message, l.to)
	default:
		p.note(number, at)
		if answer, ok := r.Message.(roster.Snapshot); ok {
			p.note(answer.Digest, at)
		}
	}
}

// note is called under the lock.
func (p *post) note(number uint64, at ring.GatewayID) {
	if p.arrived[number] == nil {
		p.arrived[number] = make(map[ring.GatewayID]bool)
	}
	p.arrived[number][at] = true
}

// missing says who has yet to get the letter, or the answer to it; "": nobody.
func (p *post) missing(number uint64) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.letters[number]
	for _, to := range p.probes {
		switch arrived := p.arrived[number][to.id]; {
		case arrived:
		case to.id == l.from && l.request:
			return fmt.Sprintf("%s did not get an answer, sent out of Step, from %s", l.from, l.to)
		case to.id != l.from && l.to == to.id:
			return fmt.Sprintf("%s did not get a message of %d bytes that %s sent to it", to.id, len(l.bytes), l.from)
		case to.id != l.from && l.to == "":
			return fmt.Sprintf("%s did not get a message of %d bytes that %s sent to all", to.id, len(l.bytes), l.from)
		}
	}
	return ""
}

// Step implements [roster.Replica].
func (p *probe) Step(ev roster.Event) {
	if p.stopped.Load() {
		p.post.exam.fault("%s was stepped with %T after its transport had been stopped", p.id, ev)
	}
	r, ok := ev.(roster.Received)
	if !ok {
		return
	}
	p.post.receive(p.id, r)
	if q, ok := r.Message.(roster.SnapshotRequest); ok {
		_, answer := p.post.write(p.id, q.From, entrySize, q.Have)
		p.send(q.From, answer)
	}
}

func (p *probe) send(to ring.GatewayID, b []byte) {
	if transport := p.transport.Load(); transport != nil {
		_ = (*transport).Send(to, b) // it is sent again if it does not arrive
	}
}

// deliver sends letters of a size from everybody, to everybody by name and to
// all at once, until each has arrived: what is lost is sent again.
func (p *post) deliver(size int) {
	p.exam.t.Helper()
	type errand struct {
		from   *probe
		to     ring.GatewayID
		number uint64
		bytes  []byte
	}
	var open []errand
	write := func(from *probe, to ring.GatewayID) {
		number, b := p.write(from.id, to, size, 0)
		open = append(open, errand{from, to, number, b})
	}
	for _, from := range p.probes {
		write(from, "")
		for _, to := range p.probes {
			if to != from {
				write(from, to.id)
			}
		}
	}
	missing := func() (text string) {
		open = slices.DeleteFunc(open, func(o errand) bool {
			lacks := p.missing(o.number)
			if lacks != "" {
				text = lacks
			}
			return lacks == ""
		})
		return text
	}
	var again time.Time
	p.exam.eventually(func() string {
		text := missing()
		if now := time.Now(); text != "" && !now.Before(again) {
			again = now.Add(5 * heartbeat)
			var senders sync.WaitGroup
			for _, o := range open {
				senders.Go(func() { o.from.send(o.to, bytes.Clone(o.bytes)) })
			}
			senders.Wait()
		}
		return text
	})
}

// messagesArrive: single messages arrive where they ought to, whole, and nowhere else.
func messagesArrive(e *exam) {
	p := &post{exam: e, letters: make(map[uint64]letter), arrived: make(map[uint64]map[ring.GatewayID]bool)}
	for i := range gateways {
		p.probes = append(p.probes, &probe{post: p, id: gatewayID(i)})
	}
	for _, pr := range p.probes {
		transport, stop := e.join(e.t, Node{Gateway: pr.id, Incarnation: 1, Replica: pr})
		pr.transport.Store(&transport)
		pr.stop = sync.OnceFunc(func() {
			stop()
			pr.stopped.Store(true)
		})
		e.t.Cleanup(pr.stop)
	}
	for _, size := range []int{0, entrySize, 70_000, 1 << 20} {
		p.deliver(size)
	}
	first := p.probes[0]
	first.send("gw-nobody", roster.Append(nil, roster.SnapshotRequest{From: first.id, Gateway: "gw-nobody", Incarnation: 1}))

	// Who is stopped is silent, while the others speak.
	first.stop()
	for _, pr := range p.probes[1:] {
		for _, to := range []ring.GatewayID{"", first.id} {
			_, b := p.write(pr.id, to, 0, 0)
			pr.send(to, b)
		}
	}
	e.pause(2 * heartbeat)
	if e.report() {
		e.t.FailNow()
	}
}
