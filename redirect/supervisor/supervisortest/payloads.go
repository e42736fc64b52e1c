// SPDX-License-Identifier: Apache-2.0

package supervisortest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/evenring/evenring/redirect"
)

// few is how many payloads each end keeps at least.
const few = 10

// talking dials g, and expects to be served by a stream that carries payloads.
func (e *exam) talking(g *gate, addr string) (*hearing, Payloads) {
	e.t.Helper()
	s := e.accepted(e.transport(), g, addr, newcomer("m", 1))
	p, ok := s.Stream.(Payloads)
	if !ok {
		e.fatal("the stream, %T, carries no payloads", s.Stream)
	}
	return s, p
}

// received is what a Recv has returned.
type received struct {
	payload string
	err     error
}

func recv(p Payloads) received {
	payload, err := p.Recv()
	return received{string(payload), err}
}

// gets receives all payloads that are wanted, in order.
func (e *exam) gets(p Payloads, want ...string) {
	e.t.Helper()
	for i, w := range want {
		got := make(chan received, 1)
		e.running.Go(func() { got <- recv(p) })
		if r := receive(e, got, fmt.Sprintf("payload %d of %d", i+1, len(want))); r.err != nil || r.payload != w {
			e.fatal("payload %d of %d is %q, with error %v; it should be %q", i+1, len(want), r.payload, r.err, w)
		}
	}
}

func numbers(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint(i)
	}
	return all
}

// bothWays: payloads arrive whole and in order, while heartbeats come between them.
func bothWays(e *exam) {
	const all = 500
	g := e.start("a", Gate{Heartbeat: time.Millisecond, Serve: func(_ context.Context, s Payloads) error {
		for {
			payload, err := s.Recv()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if err := s.Send(payload); err != nil {
				return err
			}
		}
	}})
	s, p := e.talking(g, g.addr)
	sent := make(chan error, 1)
	e.running.Go(func() {
		for _, payload := range numbers(all) {
			if err := p.Send([]byte(payload)); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	})
	e.gets(p, numbers(all)...)
	if err := receive(e, sent, "end of sending"); err != nil {
		e.fatal("sending: %v", err)
	}
	s.beat(g, e.patience)
	_ = s.Close()
	g.counts(e.patience, 0, 0)
}

// underway: a goodbye is one, and a loss is one, whatever the application is at.
func underway(e *exam) {
	for _, row := range []struct {
		name string
		end  func(*hearing, *wire)
		held int
	}{
		{"goodbye", func(s *hearing, _ *wire) { _ = s.Close() }, 0},
		{"loss", func(_ *hearing, w *wire) { w.cut() }, 1},
	} {
		g := e.start("a", Gate{Serve: func(ctx context.Context, _ Payloads) error { <-ctx.Done(); return ctx.Err() }})
		w := e.wire(g)
		s, _ := e.talking(g, w.addr)
		row.end(s, w)
		g.counts(e.patience, 0, row.held)
		s.ends(e.patience, row.name)
	}
}

// lastWords (S44): what was sent before the goodbye is delivered, however late it is read.
func lastWords(e *exam) {
	begin, got := make(chan struct{}), make(chan received, few+1)
	g := e.start("a", Gate{Serve: func(ctx context.Context, s Payloads) error {
		select {
		case <-begin:
		case <-ctx.Done():
			got <- received{err: errors.New("the stream ended first")}
			return nil
		}
		for more := true; more; {
			r := recv(s)
			got <- r
			more = r.err == nil
		}
		return nil
	}})
	s, p := e.talking(g, g.addr)
	for _, payload := range numbers(few) {
		if err := p.Send([]byte(payload)); err != nil {
			e.fatal("sending: %v", err)
		}
	}
	closed := make(chan struct{})
	e.running.Go(func() { defer close(closed); _ = s.Close() })
	g.counts(e.patience, 0, 0)
	close(begin)
	for _, want := range numbers(few) {
		if r := receive(e, got, "payload "+want); r.err != nil || r.payload != want {
			e.fatal("the application gets %q, with error %v; it was sent %q before the goodbye", r.payload, r.err, want)
		}
	}
	if r := receive(e, got, "goodbye"); !errors.Is(r.err, io.EOF) {
		e.fatal("the application gets error %v at the goodbye; it should be io.EOF", r.err)
	}
	receive(e, closed, "end of Close")
}

// finished: an application that returns ends its stream in good order, once what
// it has sent is delivered; the supervisor is expected back.
func finished(e *exam) {
	g := e.start("a", Gate{Serve: func(_ context.Context, s Payloads) error {
		for _, payload := range numbers(few) {
			if err := s.Send([]byte(payload)); err != nil {
				return err
			}
		}
		return nil
	}})
	s, p := e.talking(g, g.addr)
	e.gets(p, numbers(few)...)
	ended := make(chan received, 1)
	e.running.Go(func() { ended <- recv(p) })
	if r := receive(e, ended, "end of the stream"); !errors.Is(r.err, io.EOF) {
		e.fatal("the supervisor gets %q, with error %v; it should be io.EOF", r.payload, r.err)
	}
	s.ends(e.patience, "the application has returned")
	g.counts(e.patience, 0, 1)
}

// toldOfTheEnd: of one that is not a goodbye, in each way there is.
func toldOfTheEnd(e *exam) {
	for _, row := range []struct {
		name string
		end  func(*gate, *wire)
	}{
		{"the gateway ends it", func(g *gate, _ *wire) { g.End("m", redirect.ReasonExpired) }},
		{"it is lost", func(_ *gate, w *wire) { w.cut() }},
	} {
		begun, ends, sends := make(chan struct{}), make(chan error, 1), make(chan error, 1)
		g := e.start("a", Gate{Serve: func(ctx context.Context, s Payloads) error {
			close(begun)
			_, err := s.Recv()
			ends <- err
			<-ctx.Done()
			for {
				if err := s.Send(nil); err != nil {
					sends <- err
					return err
				}
			}
		}})
		w := e.wire(g)
		s, _ := e.talking(g, w.addr)
		receive(e, begun, "application")
		row.end(g, w)
		if err := receive(e, ends, "word to the application, though "+row.name); err == nil || errors.Is(err, io.EOF) {
			e.fatal("%s, and the application gets error %v; io.EOF would be a goodbye", row.name, err)
		}
		_ = receive(e, sends, "error of Send, though "+row.name)
		if row.name == "it is lost" {
			s.ends(e.patience, row.name)
			continue
		}
		s.says(g.ending(redirect.ReasonExpired))
		s.ends(e.patience, row.name)
	}
}

// deaf: a supervisor that takes nothing cannot keep a stream that the gateway has ended.
func deaf(e *exam) {
	var sent atomic.Int64
	done := make(chan error, 1)
	g := e.start("a", Gate{Serve: func(_ context.Context, s Payloads) error {
		for {
			if err := s.Send(bytes.Repeat([]byte("x"), 1<<12)); err != nil {
				done <- err
				return err
			}
			sent.Add(1)
		}
	}})
	e.talking(g, g.addr)
	last, since := int64(0), time.Now()
	e.eventually(e.patience, func() string { // nothing has gone out for a while
		if n := sent.Load(); n != last || n == 0 {
			last, since = n, time.Now()
		}
		if time.Since(since) < soon {
			return fmt.Sprintf("the supervisor has taken %d payloads that nobody receives", last)
		}
		return ""
	})
	if !g.End("m", redirect.ReasonExpired) {
		e.fatal("the stream has ended with what its supervisor does not read")
	}
	_ = receive(e, done, "end of sending")
	e.eventually(e.patience, func() string {
		if n := g.Stats().Served; n > 0 {
			return fmt.Sprintf("%d are served; the one there was has been told to end", n)
		}
		return ""
	})
}
