// SPDX-License-Identifier: Apache-2.0

package supervisortest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// soon bounds a dial that cannot succeed.
const soon = 100 * time.Millisecond

func newcomer(m ring.MemberID, g placement.Generation) redirect.Hello {
	return redirect.Hello{Member: m, Generation: g, Stay: true, CanRedirect: true}
}

// accept: what is said is heard, at both ends, whatever it says.
func accept(e *exam) {
	g, tr := e.start("a", Gate{}), e.transport()
	for i, hello := range []redirect.Hello{
		{Member: "m", Generation: 1},
		{Member: "ü\u2028\x00\"<m>", Generation: 1<<63 - 1, Stay: true, CanRedirect: true},
		{
			Member: "all", Generation: 1<<53 + 1, Stay: true, Hops: 2, Cap: 1 << 30, Avoid: []ring.GatewayID{"x", "y"},
			Full: []ring.GatewayID{"z"}, CanRedirect: true, Home: "h", Proof: []byte{0, 0xff, '\n'},
		},
		{Member: "all", Session: "s", Generation: 3},
		{Member: ring.MemberID(strings.Repeat("long", 1000)), Generation: 5},
	} {
		e.accepted(tr, g, g.addr, hello)
		if s := g.Stats(); s.Served+s.Sessions != i+1 {
			e.fatal("after %d accepts %d are served", i+1, s.Served+s.Sessions)
		}
	}
}

// redirected: the verdict arrives with all that it takes to go where it points.
func redirected(e *exam) {
	a, b := e.pair()
	tr := e.transport()
	if _, err := a.StartDrain(func(redirect.Departure) {}); err != nil {
		e.fatal("%v", err)
	}
	hello := newcomer("m", 1)
	verdict, stream := e.dial(tr, a, a.addr, hello)
	if stream != nil || verdict.Outcome != redirect.Redirect || verdict.Endpoint != b.addr {
		e.fatal("the verdict is %+v; it should be a redirect to b at %s", verdict, b.addr)
	}
	hello.Hops, hello.Cap, hello.Full, hello.Proof = 1, verdict.Cap, verdict.Full, verdict.Proof
	e.accepted(tr, b, verdict.Endpoint, hello)
	b.counts(e.patience, 1, 0)
}

// refusal: with how long it is for, or what is in the way.
func refusal(e *exam) {
	g, tr := e.start("a", Gate{}), e.transport()
	e.accepted(tr, g, g.addr, newcomer("m", 1<<60))
	verdict, _ := e.dial(tr, g, g.addr, newcomer("m", 1<<60-1))
	if verdict.Outcome != redirect.Refuse || verdict.Generation != 1<<60 {
		e.fatal("the verdict on an older generation is %+v", verdict)
	}
	if _, err := g.StartDrain(func(redirect.Departure) {}); err != nil {
		e.fatal("%v", err)
	}
	verdict, _ = e.dial(tr, g, g.addr, newcomer("n", 1))
	if verdict.Outcome != redirect.Refuse || verdict.RetryAfter <= 0 {
		e.fatal("the verdict of a gateway that drains alone is %+v", verdict)
	}
	g.counts(e.patience, 1, 0)
}

// contexts: the dial's context is the dial's, and not the stream's.
func contexts(e *exam) {
	g, tr := e.start("a", Gate{}), e.transport()
	over, cancel := context.WithCancel(e.ctx)
	cancel()
	verdict, stream, err := tr.Dial(over, g.addr, newcomer("m", 1))
	e.failed(verdict, stream, err, "a dial whose context has ended")

	ctx, cancel := context.WithTimeout(e.ctx, e.patience)
	defer cancel()
	verdict, stream, err = tr.Dial(ctx, g.addr, newcomer("m", 2))
	if err != nil {
		e.fatal("dial: %v", err)
	}
	e.consistent(verdict, stream)
	if stream == nil {
		e.fatal("the verdict is %+v", verdict)
	}
	cancel()
	s := e.hear(stream)
	s.lasts(soon)
	if !g.End("m", redirect.ReasonExpired) {
		e.fatal("the stream has ended with the context of its dial")
	}
	s.says(g.ending(redirect.ReasonExpired))
	s.ends(e.patience, "it was told to")
}

// silence: whoever takes the connection says nothing.
func silence(e *exam) {
	tr, mute := e.transport(), e.impostor(nil, false)
	for _, row := range []struct {
		what string
		end  func(context.CancelFunc)
	}{
		{"a dial that runs out of time", func(context.CancelFunc) {}},
		{"a dial that is given up", func(cancel context.CancelFunc) { time.AfterFunc(soon/2, cancel) }},
	} {
		ctx, cancel := context.WithTimeout(e.ctx, soon)
		row.end(cancel)
		e.inTime(row.what, func() {
			verdict, stream, err := tr.Dial(ctx, mute.addr, newcomer("m", 1))
			e.failed(verdict, stream, err, row.what)
		})
		cancel()
	}
	mute.deserted()
}

// inTime runs f, which should not take long, on the trial's goroutine.
func (e *exam) inTime(what string, f func()) {
	e.t.Helper()
	started := time.Now()
	f()
	if took := time.Since(started); took > e.patience {
		e.fatal("%s took %v", what, took)
	}
}

// nobodyThere: an address that refuses is an error at once.
func nobodyThere(e *exam) {
	l := e.listen()
	if err := l.Close(); err != nil {
		e.fatal("%v", err)
	}
	ctx := e.bounded()
	verdict, stream, err := e.transport().Dial(ctx, l.Addr().String(), newcomer("m", 1))
	e.failed(verdict, stream, err, "a dial of an address that refuses")
	if ctx.Err() != nil {
		e.fatal("a dial of an address that refuses waited until its context ended")
	}
}

// rubbish is what no end of any transport says.
func rubbish() [][]byte {
	return [][]byte{
		nil,
		{0},
		[]byte("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n"),
		[]byte("SSH-2.0-nobody\r\n"),
		{0x15, 3, 3, 0, 2, 2, 40},
		bytes.Repeat([]byte{0xff}, 1<<16),
		make([]byte, 1<<16),
		[]byte(strings.Repeat("{", 1<<16) + "\n"),
		[]byte(strings.Repeat("rubbish\r\n", 1<<10)),
	}
}

// garbageDown: what cannot be understood is an error, and no verdict.
func garbageDown(e *exam) {
	tr := e.transport()
	for i, words := range rubbish() {
		for _, hangUp := range []bool{true, false} {
			what := fmt.Sprintf("garbage %d, hanging up: %t", i, hangUp)
			odd := e.impostor(words, hangUp)
			ctx, cancel := context.WithTimeout(e.ctx, soon)
			e.inTime(what, func() {
				verdict, stream, err := tr.Dial(ctx, odd.addr, newcomer("m", 1))
				e.failed(verdict, stream, err, what)
			})
			cancel()
			odd.deserted()
		}
	}
}

// garbageUp: it does no harm to others, neither to those who are there nor to those who come.
func garbageUp(e *exam) {
	g, tr := e.start("a", Gate{}), e.transport()
	old := e.accepted(tr, g, g.addr, newcomer("old", 1))
	for _, words := range rubbish() {
		conn, err := net.Dial("tcp", g.addr)
		if err != nil {
			e.fatal("%v", err)
		}
		e.t.Cleanup(func() { _ = conn.Close() })
		_, _ = conn.Write(words) // it may have closed by now
	}
	half, err := net.Dial("tcp", g.addr)
	if err != nil {
		e.fatal("%v", err)
	}
	defer func() { _ = half.Close() }()
	e.accepted(tr, g, g.addr, newcomer("new", 1))
	g.counts(e.patience, 2, 0)
	if !g.End("old", redirect.ReasonExpired) {
		e.fatal("garbage on another connection has ended a stream")
	}
	old.says(g.ending(redirect.ReasonExpired))
}

// goodbye: who closes does not come back, and closing twice, or from many sides, is closing.
func goodbye(e *exam) {
	g, tr := e.start("a", Gate{}), e.transport()
	s := e.accepted(tr, g, g.addr, newcomer("m", 1))
	var closing sync.WaitGroup
	for range 3 {
		closing.Go(func() { _ = s.Close() })
	}
	closing.Wait()
	s.ends(e.patience, "it was closed")
	if _, err := s.Notice(); err == nil {
		e.fatal("there is a notice after Close")
	}
	_ = s.Close()
	g.counts(e.patience, 0, 0)

	// It is so too if the stream is gone before.
	s = e.accepted(tr, g, g.addr, newcomer("m", 2))
	g.End("m", redirect.ReasonExpired)
	s.says(g.ending(redirect.ReasonExpired))
	s.ends(e.patience, "it was told to")
	_ = s.Close()
	e.accepted(tr, g, g.addr, newcomer("m", 3))
}

// loss: a connection that breaks is no goodbye.
func loss(e *exam) {
	g, tr := e.start("a", Gate{}), e.transport()
	w := e.wire(g)
	s := e.accepted(tr, g, w.addr, newcomer("m", 1))
	w.cut()
	s.ends(e.patience, "its connection is cut")
	g.counts(e.patience, 0, 1)
	_ = s.Close()
	e.accepted(tr, g, w.addr, newcomer("m", 2))
	g.counts(e.patience, 1, 0)
}

// notices: each arrives, whole and in order; an end is followed by the end.
func notices(e *exam) {
	a, b := e.pair()
	tr := e.transport()
	s := e.accepted(tr, a, a.addr, newcomer("m", 1))
	for range 3 {
		told, err := a.MoveAway(e.bounded(), "m")
		if err != nil {
			e.fatal("%v", err)
		}
		if told.Gateway != b.ID() {
			e.fatal("a says %+v", told)
		}
		s.says(told)
	}
	a.EndAll(redirect.ReasonStopped)
	s.says(a.ending(redirect.ReasonStopped))
	s.ends(e.patience, "it was told to")
}

// drain: told to move, it is served at the target before it leaves, and told so.
func drain(e *exam) {
	a, b := e.pair()
	tr := e.transport()
	old := e.accepted(tr, a, a.addr, newcomer("m", 1))
	departures := make(chan redirect.Departure, 4)
	served, err := a.StartDrain(func(d redirect.Departure) { departures <- d })
	if err != nil || len(served) != 1 {
		e.fatal("the drain begins with %v, and error %v; one should be served", served, err)
	}
	told, err := a.MoveAway(e.bounded(), "m")
	if err != nil {
		e.fatal("%v", err)
	}
	old.says(told)
	if want := (redirect.Notice{
		Kind: redirect.NoticeMove, Reason: redirect.ReasonDraining, Gateway: b.ID(), Endpoint: b.addr, Incarnation: b.Incarnation(),
		Cap: told.Cap, Proof: told.Proof,
	}); !reflect.DeepEqual(told, want) {
		e.fatal("a says %+v; it should be %+v", told, want)
	}
	hello := newcomer("m", 2)
	hello.Cap, hello.Hops, hello.Proof = told.Cap, 1, told.Proof
	e.accepted(tr, b, told.Endpoint, hello)
	if left, want := receive(e, departures, "departure from a"), (redirect.Departure{Member: "m", To: b.ID()}); left != want {
		e.fatal("a hears of departure %+v; it should be %+v", left, want)
	}
	_ = old.Close()
	a.counts(e.patience, 0, 0)
	b.counts(e.patience, 1, 0)
}

// lateClose: what becomes of an old stream does not touch the new one.
func lateClose(e *exam) {
	g, tr := e.start("a", Gate{}), e.transport()
	w := e.wire(g)
	for generation := placement.Generation(1); generation < 7; generation += 2 {
		old := e.accepted(tr, g, w.addr, newcomer("m", generation))
		s := e.accepted(tr, g, g.addr, newcomer("m", generation+1))
		switch generation {
		case 1: // the new one first, the old one as it is told
			old.says(g.ending(redirect.ReasonSuperseded))
			old.ends(e.patience, "it was told to")
			_ = old.Close()
		case 3: // at once
			_ = old.Close()
		default: // it breaks
			w.cut()
			old.exam.eventually(e.patience, func() string {
				for {
					select {
					case _, more := <-old.notices:
						if !more {
							return ""
						}
					default:
						return "the old stream has not ended"
					}
				}
			})
		}
		g.counts(e.patience, 1, 0)
		if !g.End("m", redirect.ReasonExpired) {
			e.fatal("the new stream has ended with the old one")
		}
		s.says(g.ending(redirect.ReasonExpired))
		s.ends(e.patience, "it was told to")
	}
}

// many: streams come and go side by side over one transport.
func many(e *exam) {
	const all = 50
	g, tr := e.start("a", Gate{}), e.transport()
	streams, errs := make([]redirect.Stream, all), make([]error, all)
	var dialling sync.WaitGroup
	ctx := e.bounded()
	for i := range all {
		dialling.Go(func() {
			_, streams[i], errs[i] = tr.Dial(ctx, g.addr, newcomer(ring.MemberID(fmt.Sprint(i)), 1))
		})
	}
	dialling.Wait()
	for i, s := range streams {
		if errs[i] != nil || s == nil {
			for _, other := range streams {
				if other != nil {
					_ = other.Close()
				}
			}
			e.fatal("%d dials at once: %v, stream %v", all, errs[i], s)
		}
	}
	g.counts(e.patience, all, 0)
	heard := make([]*hearing, all)
	for i, s := range streams {
		heard[i] = e.hear(s)
	}
	for i, s := range heard {
		if i%2 == 0 {
			g.End(ring.MemberID(fmt.Sprint(i)), redirect.ReasonExpired)
			s.says(g.ending(redirect.ReasonExpired))
			s.ends(e.patience, "it was told to")
		}
	}
	for i, s := range heard {
		if i%2 == 1 {
			dialling.Go(func() { _ = s.Close() })
		}
	}
	dialling.Wait()
	e.eventually(e.patience, func() string {
		if n := g.Stats().Served; n > 0 {
			return fmt.Sprintf("%d are served; all have ended", n)
		}
		return ""
	})
}

// vanish: both ends still have their connection, and nothing comes any more.
func vanish(e *exam) {
	g, tr := e.start("a", Gate{}), e.transport()
	w := e.wire(g)
	s := e.accepted(tr, g, w.addr, newcomer("m", 1))
	other := e.accepted(tr, g, g.addr, newcomer("other", 1))
	w.silent.Store(true)
	// A busy machine is late, and that is no fault.
	bound := e.subject.Keepalive + e.patience
	s.ends(bound, "the gateway has vanished")
	g.counts(bound, 1, 1)
	if !g.End("other", redirect.ReasonExpired) {
		e.fatal("a stream that was only quiet has been given up")
	}
	other.says(g.ending(redirect.ReasonExpired))
}

// heartbeat (S42): the stream tells which start of the gateway it is attached to,
// as often as it was asked for, and if it was not, by itself.
func heartbeat(e *exam) {
	g := e.start("a", Gate{})
	quick := e.start("b", Gate{Heartbeat: time.Millisecond})
	tr := e.transport()
	s := e.accepted(tr, g, g.addr, newcomer("m", 1))
	often := e.accepted(tr, quick, quick.addr, newcomer("n", 1))
	for range 3 {
		often.beat(quick, e.patience)
	}
	s.beat(g, e.subject.Heartbeat+e.patience)
}

// beat waits for the next heartbeat, which is g's.
func (h *hearing) beat(g *gate, within time.Duration) redirect.Notice {
	h.exam.t.Helper()
	select {
	case n := <-h.beats:
		if n.Gateway != g.ID() || n.Incarnation != g.Incarnation() {
			h.exam.fatal("the heartbeat is %+v; the gateway is %s, %d", n, g.ID(), g.Incarnation())
		}
		return n
	case <-time.After(within):
		h.exam.fatal("after %v there is no heartbeat", within)
		return redirect.Notice{}
	}
}

// renewal: a stream that outlives the proof of its accept is given others.
func renewal(e *exam) {
	e.proofs.Home = 10 * time.Millisecond
	g := e.start("a", Gate{Heartbeat: time.Millisecond})
	verdict, stream := e.dial(e.transport(), g, g.addr, newcomer("m", 1))
	if stream == nil || len(verdict.Proof) == 0 {
		e.fatal("the verdict is %+v; it should be an accept with a proof", verdict)
	}
	s := e.hear(stream)
	by := time.Now().Add(e.patience)
	for last, renewed := verdict.Proof, 0; renewed < 3; {
		n := s.beat(g, e.patience)
		switch {
		case len(n.Proof) > 0 && bytes.Equal(n.Proof, last):
			e.fatal("the proof of a heartbeat is the one before")
		case len(n.Proof) > 0:
			last, renewed = n.Proof, renewed+1
		case time.Now().After(by):
			e.fatal("after %v heartbeats have brought %d proofs; it should be 3", e.patience, renewed)
		}
	}
}

// sessions: one comes and goes beside its supervisor.
func sessions(e *exam) {
	g, tr := e.start("a", Gate{}), e.transport()
	hello := redirect.Hello{Member: "m", Session: "s", Stay: true}
	s := e.accepted(tr, g, g.addr, hello)
	served := func(want int) {
		e.t.Helper()
		e.eventually(e.patience, func() string {
			if n := g.Stats().Sessions; n != want {
				return fmt.Sprintf("%d sessions are served; it should be %d", n, want)
			}
			return ""
		})
	}
	served(1)
	g.counts(e.patience, 0, 0)
	_ = s.Close()
	served(0)
}

// credentials: each dial brings those of its time, and none is let in without.
func credentials(e *exam) {
	var mu sync.Mutex
	current, seen := "", []string(nil)
	g := e.start("a", Gate{Authorize: func(token string) error {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, token)
		if token != current {
			return errors.New("that token has expired")
		}
		return nil
	}})
	mine := ""
	tr := e.subject.Transport(e.t, Supervisor{Token: func() string {
		mu.Lock()
		defer mu.Unlock()
		return mine
	}})
	refresh := func(valid, held string) {
		mu.Lock()
		defer mu.Unlock()
		current, mine = valid, held
	}
	for i := range 3 {
		token := fmt.Sprint("token-", i)
		refresh(token, token)
		e.accepted(tr, g, g.addr, newcomer("m", placement.Generation(2*i+1)))
		refresh("another", token)
		verdict, stream, err := tr.Dial(e.bounded(), g.addr, newcomer("m", placement.Generation(2*i+2)))
		if stream != nil || err == nil && verdict.Outcome == redirect.Accept {
			e.fatal("a token that has expired is accepted: %+v", verdict)
		}
		g.counts(e.patience, 1, 0)
	}
	mu.Lock()
	defer mu.Unlock()
	if want := "token-0 token-0 token-1 token-1 token-2 token-2"; strings.Join(seen, " ") != want {
		e.fatal("the gateway saw %q; it should be %q", strings.Join(seen, " "), want)
	}
}

// laterGateway: what is not known is passed over, and what is known still holds.
func laterGateway(e *exam) {
	l := e.listen()
	e.subject.Later(e.t, l)
	verdict, stream, err := e.transport().Dial(e.bounded(), l.Addr().String(), newcomer("m", 1))
	if err != nil {
		e.fatal("dial of a later gateway: %v", err)
	}
	e.consistent(verdict, stream)
	if verdict.Outcome != redirect.Accept || verdict.Reason != redirect.ReasonUnknown {
		e.fatal("the verdict is %+v; it should be an accept for a reason that is not known", verdict)
	}
	s := e.hear(stream)
	s.says(redirect.Notice{Kind: redirect.NoticeMove})
	s.says(redirect.Notice{Kind: redirect.NoticeEnd, Reason: redirect.ReasonStopped})
	s.ends(e.patience, "it was told to")
	if errors.Is(s.err, io.ErrUnexpectedEOF) {
		e.fatal("a stream that ended in good order ended with %v", s.err)
	}
}

// laterSupervisor: likewise.
func laterSupervisor(e *exam) {
	g := e.start("a", Gate{})
	hello := newcomer("m", 1)
	if outcome := e.subject.LaterHello(e.t, g.addr, hello); outcome != redirect.Accept {
		e.fatal("a later supervisor's outcome is %v", outcome)
	}
	o, _ := g.observed(hello)
	if heard := helloOf(o.Hello); !reflect.DeepEqual(heard, hello) {
		e.fatal("the gateway heard %+v of a later supervisor; it was said %+v", heard, hello)
	}
	g.counts(e.patience, 1, 0)
}
