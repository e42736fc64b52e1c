// SPDX-License-Identifier: Apache-2.0

package supervisortest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/forward"
	"github.com/evenring/evenring/ring"
)

// reply is what became of a call.
type reply struct {
	answer string
	err    error
}

// call makes a request at g, and waits for what becomes of it.
func (e *exam) call(g *gate, req redirect.Request) reply {
	return e.callFor(e.bounded(), g, req)
}

func (e *exam) callFor(ctx context.Context, g *gate, req redirect.Request) reply {
	answer, err := e.caller().Call(ctx, g.addr, req)
	return reply{string(answer), err}
}

// caller returns the trial's caller, and makes it the first time.
func (e *exam) caller() Caller {
	e.once.Do(func() { e.calls = e.subject.Caller(e.t) })
	return e.calls
}

// calling does not wait.
func (e *exam) calling(g *gate, req redirect.Request) <-chan reply {
	replies, ctx := make(chan reply, 1), e.bounded()
	e.running.Go(func() { replies <- e.callFor(ctx, g, req) })
	return replies
}

func ask(m ring.MemberID, payload string) redirect.Request {
	return redirect.Request{Member: m, Payload: []byte(payload)}
}

// as answers with its name and what it was sent.
func as(name string) func(context.Context, []byte) ([]byte, error) {
	return func(_ context.Context, request []byte) ([]byte, error) {
		return []byte(name + ": " + string(request)), nil
	}
}

// answered checks that a call has its answer.
func (e *exam) answered(r reply, want, what string) {
	e.t.Helper()
	if r.err != nil || r.answer != want {
		e.fatal("%s: the answer is %.100q, with error %v; it should be %.100q", what, r.answer, r.err, want)
	}
}

// unanswered checks why a call has no answer.
func (e *exam) unanswered(r reply, want forward.Reason, what string) {
	e.t.Helper()
	var failed *forward.Error
	if !errors.As(r.err, &failed) || failed.Reason != want {
		e.fatal("%s: the answer is %.100q, with error %v; it should be %v", what, r.answer, r.err, want)
	}
}

// is checks what a call's error is.
func (e *exam) is(err, want error, what string) {
	e.t.Helper()
	if !errors.Is(err, want) {
		e.fatal("%s: the error is %v; it should be: %v", what, err, want)
	}
}

// turnedAway checks that a call was answered by an error, and by none that says what became of it.
func (e *exam) turnedAway(r reply, text, what string) {
	e.t.Helper()
	var failed *forward.Error
	vague := errors.Is(r.err, redirect.ErrUncertain) || errors.Is(r.err, redirect.ErrNotHere) ||
		errors.Is(r.err, redirect.ErrNotAnswering) || errors.Is(r.err, forward.ErrNotSent)
	if r.err == nil || errors.As(r.err, &failed) || vague || !strings.Contains(r.err.Error(), text) {
		e.fatal("%s: the answer is %.100q, with error %v; it should be an error of its own, with %q", what, r.answer, r.err, text)
	}
}

// couple starts two gateways, of which the first has supervisor s, and the second knows it.
func (e *exam) couple(answer func(context.Context, []byte) ([]byte, error)) (a, b *gate, s *hearing) {
	e.t.Helper()
	a, b = e.pair()
	s = e.accepted(e.answering(answer), a, a.addr, newcomer("s", 1))
	b.knows("s", roster.Elsewhere)
	return a, b, s
}

// wrongGateway (S21): a caller at b for s on a gets its answer from there; for one
// that nobody has, and for one that perhaps somebody has, it gets two different ones.
func wrongGateway(e *exam) {
	b := e.start("b", Gate{})
	e.unanswered(e.call(b, ask("s", "hi")), forward.Incomplete, "a call at a gateway that knows of no other yet")
	a := e.start("a", Gate{})
	e.meet()
	e.accepted(e.answering(as("s")), a, a.addr, newcomer("s", 1))
	b.knows("s", roster.Elsewhere)
	for _, g := range []*gate{a, b} {
		at := fmt.Sprintf(" at %s for s at a", g.ID())
		e.answered(e.call(g, ask("s", "hi")), "s: hi", "a call"+at)
		e.unanswered(e.call(g, ask("stranger", "hi")), forward.Nobody, "a call for one that nobody has")
		e.turnedAway(e.call(g, ask("", "hi")), "", "a call for a member without a name")
	}
}

// sessionCalls: a call waits for the session where its supervisor is, and finds
// it where it has a stream.
func sessionCalls(e *exam) {
	a, b, _ := e.couple(as("s"))
	req := redirect.Request{Member: "s", Session: "x", Payload: []byte("hi")}
	early := e.calling(b, req)
	e.accepted(e.answering(as("x")), a, a.addr, redirect.Hello{Member: "s", Session: "x", Generation: 1})
	e.answered(receive(e, early, "answer of a session"), "x: hi", "a call for a session that comes later")
	e.accepted(e.answering(as("s")), b, b.addr, newcomer("s", 2))
	a.knows("s", roster.Elsewhere)
	e.answered(e.call(a, req), "x: hi", "a call for a session whose supervisor has moved on")
}

// memberAnswers: whatever it is, it reaches the caller as it is.
func memberAnswers(e *exam) {
	a, b, _ := e.couple(func(_ context.Context, request []byte) ([]byte, error) {
		if string(request) == "fail" {
			return nil, errors.New("broken")
		}
		return nil, nil
	})
	e.accepted(e.transport(), a, a.addr, newcomer("old", 1)) // has never heard of requests
	b.knows("old", roster.Elsewhere)
	for _, g := range []*gate{a, b} {
		at := fmt.Sprintf(" at %s for one at a", g.ID())
		e.turnedAway(e.call(g, ask("s", "fail")), "broken", "a call that the member answers with an error,"+at)
		e.answered(e.call(g, ask("s", "nothing")), "", "a call that it answers with nothing,"+at)
		e.is(e.call(g, ask("old", "hi")).err, redirect.ErrNotAnswering, "a call that it cannot answer,"+at)
	}
}

// witness is what a member sees of one request, which it does not answer in time.
type witness struct {
	limit chan time.Time // that it has until
	cause chan error     // why nobody waits any more
}

// deadlines: the caller's is the member's, and so is its giving up.
func deadlines(e *exam) {
	var witnesses sync.Map // by payload
	watch := func(payload string) witness {
		w := witness{make(chan time.Time, 1), make(chan error, 1)}
		witnesses.Store(payload, w)
		return w
	}
	a, b, _ := e.couple(func(ctx context.Context, request []byte) ([]byte, error) {
		found, _ := witnesses.Load(string(request))
		w := found.(witness)
		limit, _ := ctx.Deadline()
		w.limit <- limit
		select {
		case <-ctx.Done():
			w.cause <- ctx.Err()
		case <-e.over:
		}
		return nil, ctx.Err() // an answer instead might still be in time for the caller
	})
	for _, g := range []*gate{a, b} {
		at := fmt.Sprintf(" at %s for one at a", g.ID())
		deadline, payload := time.Now().Add(time.Hour), "hour"+at
		w := watch(payload)
		ctx, cancel := context.WithDeadline(e.ctx, deadline)
		replies := make(chan reply, 1)
		e.running.Go(func() { replies <- e.callFor(ctx, g, ask("s", payload)) })
		if limit := receive(e, w.limit, "request"+at); limit.Sub(deadline).Abs() > time.Minute {
			cancel()
			e.fatal("the member of a call%s has until %v; it should be %v", at, limit, deadline)
		}
		cancel()
		r := receive(e, replies, "end of a call that is given up,"+at)
		e.unanswered(r, forward.Stopped, "a call that is given up,"+at)
		e.is(r.err, context.Canceled, "a call that is given up,"+at)
		e.is(receive(e, w.cause, "word to the member that nobody waits,"+at), context.Canceled, "the member of a call that is given up,"+at)

		for limit := soon; ; limit *= 2 {
			payload := fmt.Sprint(limit, at)
			w := watch(payload)
			short, cancel := context.WithTimeout(e.ctx, limit)
			r := e.callFor(short, g, ask("s", payload))
			cancel()
			if r.err == nil {
				e.fatal("a call%s that ran out of time has answer %q", at, r.answer)
			}
			if len(w.limit) > 0 {
				_ = receive(e, w.cause, "word to the member that time is over,"+at)
				break
			}
			if limit > e.patience { // a busy machine is late
				e.fatal("a call%s has not reached its member within %v", at, limit)
			}
		}
	}
}

// brokenCalls: who may have executed a request is not asked again, unless that does no harm.
func brokenCalls(e *exam) {
	a, b := e.pair()
	w := e.wire(a)
	for i, idempotent := range []bool{false, true} {
		begun := make(chan struct{}, 1)
		holding := e.answering(func(ctx context.Context, _ []byte) ([]byte, error) {
			begun <- struct{}{}
			select {
			case <-ctx.Done():
			case <-e.over:
			}
			return nil, errors.New("the stream has ended")
		})
		m := ring.MemberID(fmt.Sprint("s", i))
		e.accepted(holding, a, w.addr, newcomer(m, 1))
		b.knows(m, roster.Elsewhere)
		req := ask(m, "hi")
		req.Idempotent = idempotent
		replies := e.calling(b, req)
		receive(e, begun, "request")
		w.cut()
		e.accepted(e.answering(as("again")), b, b.addr, newcomer(m, 2))
		r := receive(e, replies, "end of a call whose stream has broken")
		if idempotent {
			e.answered(r, "again: hi", "a call that may be executed twice, whose stream has broken")
		} else {
			e.unanswered(r, forward.Lost, "a call that may not be executed twice, whose stream has broken")
		}
	}
}

// unreachable: a gateway that is gone has certainly not executed anything.
func unreachable(e *exam) {
	a := e.start("a", Gate{})
	b := e.start("b", Gate{Calls: &Calls{Forward: forward.Config{Patience: e.patience}}})
	e.meet()
	e.accepted(e.answering(as("s")), a, a.addr, newcomer("s", 1))
	b.knows("s", roster.Elsewhere)
	a.die()
	replies := e.calling(b, ask("s", "hi"))
	e.accepted(e.answering(as("again")), b, b.addr, newcomer("s", 2))
	e.answered(receive(e, replies, "end of a call"), "again: hi", "a call whose gateway was gone")

	link := e.subject.Peers(e.t)
	for what, endpoint := range map[string]string{"a gateway that is gone": a.addr, "one without an endpoint": ""} {
		_, err := link.Forward(e.bounded(), placement.Gateway{ID: "a", Endpoint: endpoint}, ask("s", "hi"))
		e.is(err, forward.ErrNotSent, "a call that is forwarded to "+what)
	}
	e.is(e.call(a, ask("s", "hi")).err, forward.ErrNotSent, "a call at a gateway that is gone")
}

// diesWithCall: one that was executing something may have executed it.
func diesWithCall(e *exam) {
	link := e.subject.Peers(e.t)
	for what, call := range map[string]func(*gate) error{
		"a call": func(g *gate) error { return e.call(g, ask("s", "hi")).err },
		"a call that is forwarded": func(g *gate) error {
			_, err := link.Forward(e.bounded(), placement.Gateway{ID: g.ID(), Endpoint: g.addr}, ask("s", "hi"))
			return err
		},
	} {
		g, begun := e.start("a", Gate{}), make(chan struct{}, 1)
		e.meet()
		e.accepted(e.answering(func(ctx context.Context, _ []byte) ([]byte, error) {
			begun <- struct{}{}
			select {
			case <-ctx.Done():
			case <-e.over:
			}
			return nil, errors.New("the stream has ended")
		}), g, g.addr, newcomer("s", 1))
		errs := make(chan error, 1)
		e.running.Go(func() { errs <- call(g) })
		receive(e, begun, "request")
		g.die()
		e.is(receive(e, errs, "end of "+what), redirect.ErrUncertain, what+" at a gateway that dies of it")
	}
}

// held answers requests once it is let go, each with itself.
type held struct {
	begun   chan string
	release chan struct{}
}

func newHeld() held { return held{make(chan string, few), make(chan struct{})} }

func (h held) answer(e *exam) func(context.Context, []byte) ([]byte, error) {
	return func(_ context.Context, request []byte) ([]byte, error) {
		h.begun <- string(request)
		select {
		case <-h.release:
		case <-e.over:
		}
		return request, nil
	}
}

// closing: a stream that closes answers what it was asked, and is asked for nothing more.
func closing(e *exam) {
	a, h := e.start("a", Gate{}), newHeld()
	e.meet()
	s := e.accepted(e.answering(h.answer(e)), a, a.addr, newcomer("s", 1))
	first := e.calling(a, ask("s", "first"))
	receive(e, h.begun, "request")
	closed := make(chan struct{})
	e.running.Go(func() { defer close(closed); _ = s.Close() })
	s.ends(e.patience, "it is being closed")

	second := e.calling(a, ask("s", "second"))
	e.accepted(e.answering(as("newer")), a, a.addr, newcomer("s", 2))
	e.answered(receive(e, second, "answer to a call while a stream closes"), "newer: second", "a call while a stream closes")
	close(h.release)
	e.answered(receive(e, first, "answer to a call before a stream closes"), "first", "a call before a stream closes")
	receive(e, closed, "end of Close")
	if len(h.begun) > 0 {
		e.fatal("a stream that closes was given %q", <-h.begun)
	}
}

// lateAnswers: a stream that the gateway ends is kept for its answers.
func lateAnswers(e *exam) {
	a, h := e.start("a", Gate{}), newHeld()
	e.meet()
	s := e.accepted(e.answering(h.answer(e)), a, a.addr, newcomer("s", 1))
	replies := e.calling(a, ask("s", "late"))
	receive(e, h.begun, "request")
	a.EndAll(redirect.ReasonExpired)
	s.says(a.ending(redirect.ReasonExpired))
	close(h.release)
	e.answered(receive(e, replies, "answer to a call before the end"), "late", "a call before the gateway ends the stream")
	s.ends(e.patience, "it was told to")
}

// sizes: what is too long ends in an error, and not with the stream.
func sizes(e *exam) {
	const head = 4
	a, b, s := e.couple(func(_ context.Context, request []byte) ([]byte, error) {
		switch string(request[:head]) {
		case "more":
			return append(request, 0), nil
		case "text":
			return nil, errors.New(strings.Repeat("\xff", e.subject.CallBytes+1<<20))
		default:
			return request, nil
		}
	})
	longest := strings.Repeat("x", e.subject.CallBytes)
	for _, g := range []*gate{a, b} {
		at := fmt.Sprintf(" at %s for one at a", g.ID())
		e.answered(e.call(g, ask("s", longest)), longest, "the longest call"+at)
		e.turnedAway(e.call(g, ask("s", longest+"x")), "", "a call that is too long,"+at)
		e.turnedAway(e.call(g, ask("s", "more"+longest[head:])), "", "a call whose answer is too long,"+at)
		e.turnedAway(e.call(g, ask("s", "text")), "", "a call whose error is too long,"+at)
	}
	if _, err := a.Deliver(e.bounded(), ask("s", longest+"x")); err == nil || errors.Is(err, redirect.ErrUncertain) {
		e.fatal("a request that is too long, delivered at a: the error is %v; it should say so", err)
	}
	a.counts(e.patience, 1, 0)
	if !a.End("s", redirect.ReasonExpired) {
		e.fatal("a call that is too long has ended the stream")
	}
	s.says(a.ending(redirect.ReasonExpired))
}
