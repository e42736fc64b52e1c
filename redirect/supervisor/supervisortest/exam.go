// SPDX-License-Identifier: Apache-2.0

package supervisortest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// exam is one trial of one transport. Its methods are called by the goroutine
// that runs the trial.
type exam struct {
	t        testing.TB
	subject  Subject
	trial    string
	patience time.Duration
	ctx      context.Context // ends with the trial
	starts   placement.Incarnation
	proofs   redirect.Proofs // of the gateways
	over     chan struct{}   // closed when the trial is, before anything is tidied up
	running  sync.WaitGroup  // what the trial has begun
	once     sync.Once
	calls    Caller // made once

	mu    sync.Mutex
	gates map[ring.GatewayID]*gate // those that live
}

func newExam(t testing.TB, s Subject, patience time.Duration) *exam {
	ctx, cancel := context.WithCancel(context.Background())
	e := &exam{
		t: t, subject: s, patience: patience, ctx: ctx, over: make(chan struct{}), gates: make(map[ring.GatewayID]*gate),
		proofs: redirect.Proofs{Keys: [][]byte{bytes.Repeat([]byte("k"), 32)}}, // so that there are some to carry
	}
	t.Cleanup(func() { cancel(); e.running.Wait() })
	return e
}

// sit takes a trial.
func (e *exam) sit(tr trial) {
	defer close(e.over)
	e.trial = tr.name
	tr.run(e)
}

func (e *exam) fatal(format string, args ...any) {
	e.t.Helper()
	e.t.Fatalf("supervisortest: %s: %s", e.trial, fmt.Sprintf(format, args...))
}

// bounded returns a context with which nothing takes for ever.
func (e *exam) bounded() context.Context {
	ctx, cancel := context.WithTimeout(e.ctx, e.patience)
	e.t.Cleanup(cancel)
	return ctx
}

// eventually waits until wrong returns nothing, and fails with what it returned last.
func (e *exam) eventually(within time.Duration, wrong func() string) {
	e.t.Helper()
	by, tick := time.Now().Add(within), time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		text := wrong()
		if text == "" {
			return
		}
		if time.Now().After(by) {
			e.fatal("after %v %s", within, text)
		}
		<-tick.C
	}
}

// gate is a gateway that serves.
type gate struct {
	*redirect.Gateway
	exam  *exam
	addr  string
	peers Peers // nil: there are none
	stop  func(context.Context)

	mu     sync.Mutex
	judged map[attempt]redirect.Observation
}

// attempt names a hello.
type attempt struct {
	member     ring.MemberID
	session    redirect.SessionID
	generation placement.Generation
}

func attemptOf(h redirect.Hello) attempt { return attempt{h.Member, h.Session, h.Generation} }

// start starts a gateway. g says how its end is started; what it leaves out of
// the gateway and the calls is the exam's.
func (e *exam) start(id ring.GatewayID, how Gate) *gate {
	e.t.Helper()
	l := e.listen()
	e.starts++
	g := &gate{exam: e, addr: l.Addr().String(), judged: make(map[attempt]redirect.Observation)}
	cfg := redirect.Config{
		Gateway:     id,
		Incarnation: e.starts,
		Endpoint:    g.addr,
		Proofs:      e.proofs,
		AskTimeout:  e.patience, // a busy machine is no dead peer
	}
	if e.subject.Peers != nil {
		g.peers = e.subject.Peers(e.t)
		cfg.Peers = g.peers
	}
	gw, err := redirect.NewGateway(cfg, redirect.Hooks{Verdict: g.note})
	if err != nil {
		e.fatal("%v", err)
	}
	g.Gateway, how.Gateway = gw, gw
	if calls(e.subject) {
		var c Calls
		if how.Calls != nil {
			c = *how.Calls
		}
		c.Peers = g.peers
		how.Calls = &c
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { gw.Run(ctx, from{e, id}) })
	e.t.Cleanup(func() { cancel(); running.Wait() })
	stop := e.subject.Serve(e.t, l, how)
	var once sync.Once
	g.stop = func(ctx context.Context) { once.Do(func() { stop(ctx) }) }
	e.t.Cleanup(g.die)

	e.mu.Lock()
	defer e.mu.Unlock()
	e.gates[id] = g
	return g
}

// die ends a gateway's end as if its process had died.
func (g *gate) die() {
	g.exam.forget(g)
	over, cancel := context.WithCancel(context.Background())
	cancel()
	g.stop(over)
}

// retire ends it as a gateway is stopped that has drained.
func (g *gate) retire() {
	g.EndAll(redirect.ReasonStopped)
	g.stop(g.exam.bounded())
	g.exam.forget(g)
	for _, other := range g.exam.all() {
		other.Step(roster.Departed{Gateway: g.ID()})
	}
}

// forget lets no more of the roster's messages through.
func (e *exam) forget(g *gate) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gates[g.ID()] == g {
		delete(e.gates, g.ID())
	}
}

// all returns the gateways that live, in the order of their IDs.
func (e *exam) all() []*gate {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.SortedFunc(maps.Values(e.gates), func(a, b *gate) int { return cmp.Compare(a.ID(), b.ID()) })
}

// meet makes the gateways know each other, and know that they are all.
func (e *exam) meet() {
	e.t.Helper()
	gates := e.all()
	var ids []ring.GatewayID
	for _, g := range gates {
		ids = append(ids, g.ID())
		for _, other := range gates {
			if other != g {
				g.Step(roster.LinkUp{Gateway: other.ID()})
			}
		}
	}
	for _, g := range gates {
		g.Step(roster.Discovered{Gateways: ids})
	}
	for _, g := range gates {
		e.eventually(patience, func() string {
			if n := g.Stats().Placeable; n != len(gates) {
				return fmt.Sprintf("%s knows %d gateways", g.ID(), n)
			}
			if ready := g.Ready(); !ready.Supervisors.OK || !ready.Callers.OK || g.where("stranger") != roster.Nobody {
				return fmt.Sprintf("%s is not ready: %+v", g.ID(), ready)
			}
			return ""
		})
	}
}

func (g *gate) where(m ring.MemberID) roster.Where {
	route, _ := g.Route(m, "")
	return route.Where
}

// knows waits until g has heard where a member is.
func (g *gate) knows(m ring.MemberID, want roster.Where) {
	g.exam.t.Helper()
	g.exam.eventually(g.exam.patience, func() string {
		if where := g.where(m); where != want {
			return fmt.Sprintf("%s has %s %v; it should be %v", g.ID(), m, where, want)
		}
		return ""
	})
}

// pair starts two gateways that know each other.
func (e *exam) pair() (a, b *gate) {
	e.t.Helper()
	a, b = e.start("a", Gate{}), e.start("b", Gate{})
	e.meet()
	return a, b
}

// from is one gateway's end of the roster's transport, which is memory.
type from struct {
	exam *exam
	id   ring.GatewayID
}

// Send implements [roster.Transport].
func (f from) Send(to ring.GatewayID, message []byte) error {
	m, err := roster.Decode(message)
	if err != nil {
		return err
	}
	var targets []*gate
	f.exam.mu.Lock()
	_, alive := f.exam.gates[f.id]
	for id, g := range f.exam.gates {
		if alive && (id == to || to == "" && id != f.id) {
			targets = append(targets, g)
		}
	}
	f.exam.mu.Unlock()
	for _, g := range targets {
		g.Step(roster.Received{From: f.id, Message: m})
	}
	return nil
}

// ending is what a stream is told that ends.
func (g *gate) ending(r redirect.Reason) redirect.Notice {
	return redirect.Notice{Kind: redirect.NoticeEnd, Reason: r, Gateway: g.ID(), Incarnation: g.Incarnation()}
}

func (g *gate) note(o redirect.Observation) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.judged[attemptOf(o.Hello)] = o
}

func (g *gate) observed(h redirect.Hello) (redirect.Observation, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	o, ok := g.judged[attemptOf(h)]
	return o, ok
}

// counts waits until so many supervisors are served, and so many expected back.
func (g *gate) counts(within time.Duration, served, held int) {
	g.exam.t.Helper()
	g.exam.eventually(within, func() string {
		if s := g.Stats(); s.Served != served || s.Held != held {
			return fmt.Sprintf("%s serves %d and holds %d; it should be %d and %d", g.ID(), s.Served, s.Held, served, held)
		}
		return ""
	})
}

// dial dials addr, where g can be reached, and checks that both ends understood each other.
func (e *exam) dial(tr redirect.Transport, g *gate, addr string, hello redirect.Hello) (redirect.Verdict, redirect.Stream) {
	e.t.Helper()
	verdict, stream, err := tr.Dial(e.bounded(), addr, hello)
	if err != nil {
		e.fatal("dial of %s with %+v: %v", g.ID(), hello, err)
	}
	e.consistent(verdict, stream)
	o, ok := g.observed(hello)
	if !ok {
		e.fatal("%s did not hear %+v", g.ID(), hello)
	}
	if heard, said := helloOf(o.Hello), helloOf(hello); !reflect.DeepEqual(heard, said) {
		e.fatal("%s heard %+v; it was said %+v", g.ID(), heard, said)
	}
	if !reflect.DeepEqual(verdictOf(verdict), verdictOf(o.Verdict)) {
		e.fatal("%+v arrived; %s said %+v", verdict, g.ID(), o.Verdict)
	}
	return verdict, stream
}

// consistent checks that there is a stream exactly if there is an Accept.
func (e *exam) consistent(verdict redirect.Verdict, stream redirect.Stream) {
	e.t.Helper()
	if stream != nil {
		e.t.Cleanup(func() { _ = stream.Close() })
	}
	if accepted := verdict.Outcome == redirect.Accept; accepted != (stream != nil) {
		e.fatal("the verdict is %+v, and the stream of type %T; there is one exactly after an accept", verdict, stream)
	}
}

// failed checks that a dial has failed as dials should.
func (e *exam) failed(verdict redirect.Verdict, stream redirect.Stream, err error, what string) {
	e.t.Helper()
	if stream != nil {
		_ = stream.Close()
		e.fatal("%s: there is a stream, and error %v", what, err)
	}
	if err == nil {
		e.fatal("%s: there is no error, and verdict %+v", what, verdict)
	}
}

// helloOf leaves out what a transport says for itself, and takes empty for absent.
func helloOf(h redirect.Hello) redirect.Hello {
	h.Answers = false
	h.Avoid, h.Full, h.Proof = some(h.Avoid), some(h.Full), some(h.Proof)
	return h
}

func verdictOf(v redirect.Verdict) redirect.Verdict {
	v.Full, v.Proof = some(v.Full), some(v.Proof)
	return v
}

func noticeOf(n redirect.Notice) redirect.Notice {
	n.Proof = some(n.Proof)
	return n
}

// some returns nil for a slice that is empty.
func some[S ~[]E, E any](s S) S {
	if len(s) == 0 {
		return nil
	}
	return s
}

// accepted dials g and expects to be served.
func (e *exam) accepted(tr redirect.Transport, g *gate, addr string, hello redirect.Hello) *hearing {
	e.t.Helper()
	verdict, stream := e.dial(tr, g, addr, hello)
	if stream == nil {
		e.fatal("%s does not accept: %+v", g.ID(), verdict)
	}
	return e.hear(stream)
}

// hearing is a stream whose notices are read.
type hearing struct {
	redirect.Stream
	exam    *exam
	notices chan redirect.Notice // closed when the stream has ended
	beats   chan redirect.Notice
	err     error // after that
}

func (e *exam) hear(stream redirect.Stream) *hearing {
	const plenty = 1024
	h := &hearing{Stream: stream, exam: e, notices: make(chan redirect.Notice, plenty), beats: make(chan redirect.Notice, 1)}
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(h.notices)
		for {
			n, err := stream.Notice()
			switch {
			case err != nil:
				h.err = err
				return
			case n.Kind == redirect.NoticeHeartbeat:
				select {
				case h.beats <- n:
				default:
				}
			case n.Kind != redirect.NoticeNone: // which is to be ignored
				select {
				case h.notices <- n:
				case <-e.ctx.Done():
					h.err = e.ctx.Err()
					return
				}
			}
		}
	})
	e.t.Cleanup(func() { _ = stream.Close(); reading.Wait() })
	return h
}

// says checks that the next notice is want.
func (h *hearing) says(want redirect.Notice) {
	h.exam.t.Helper()
	select {
	case got, more := <-h.notices:
		if !more {
			h.exam.fatal("the stream ended with %v; notice %+v is missing", h.err, want)
		}
		if !reflect.DeepEqual(noticeOf(got), noticeOf(want)) {
			h.exam.fatal("the notice is %+v; it should be %+v", got, want)
		}
	case <-time.After(h.exam.patience):
		h.exam.fatal("after %v there is no notice; it should be %+v", h.exam.patience, want)
	}
}

// ends checks that the stream ends and says no more before.
func (h *hearing) ends(within time.Duration, why string) {
	h.exam.t.Helper()
	select {
	case got, more := <-h.notices:
		if more {
			h.exam.fatal("the notice is %+v; the stream should end: %s", got, why)
		}
	case <-time.After(within):
		h.exam.fatal("after %v the stream has not ended: %s", within, why)
	}
}

// lasts checks that the stream goes on for a while, and says nothing.
func (h *hearing) lasts(d time.Duration) {
	h.exam.t.Helper()
	select {
	case got, more := <-h.notices:
		if more {
			h.exam.fatal("the notice is %+v; there should be none", got)
		}
		h.exam.fatal("the stream has ended with %v, and nobody has ended it", h.err)
	case <-time.After(d):
	}
}

// listen returns a listener on loopback, which the trial's end closes.
func (e *exam) listen() net.Listener {
	e.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		e.fatal("%v", err)
	}
	e.t.Cleanup(func() { _ = l.Close() })
	return l
}

// transport makes one whose dials need no token.
func (e *exam) transport() redirect.Transport {
	return e.answering(nil)
}

// answering makes one whose supervisors answer requests.
func (e *exam) answering(answer func(context.Context, []byte) ([]byte, error)) redirect.Transport {
	return e.subject.Transport(e.t, Supervisor{Token: func() string { return "" }, Answer: answer})
}

// receive waits for what must come from one of the trial's own goroutines.
func receive[T any](e *exam, from <-chan T, what string) (got T) {
	e.t.Helper()
	select {
	case got = <-from:
	case <-time.After(e.patience):
		e.fatal("after %v there is no %s", e.patience, what)
	}
	return got
}
