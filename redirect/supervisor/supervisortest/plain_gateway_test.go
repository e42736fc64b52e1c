// SPDX-License-Identifier: Apache-2.0

package supervisortest

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/carry"
	"github.com/evenring/evenring/ring"
)

// serve is the gateway's end.
func (f fault) serve(_ testing.TB, l net.Listener, g Gate) func(context.Context) {
	var accepting, running sync.WaitGroup
	var mu sync.Mutex
	conns := make(map[net.Conn]bool)
	members := make(map[ring.MemberID]net.Conn)
	cut := func() {
		_ = l.Close()
		mu.Lock()
		defer mu.Unlock()
		for conn := range conns {
			_ = conn.Close()
		}
	}
	accepting.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns[conn] = true
			mu.Unlock()
			running.Go(func() {
				defer conn.Close()
				member, err := f.attend(newTalk(conn, f), g, func(m ring.MemberID) {
					mu.Lock()
					defer mu.Unlock()
					members[m] = conn
				})
				mu.Lock()
				if newest := members[member]; f == endsTheMemberNotTheStream && newest != nil {
					_ = newest.Close()
				}
				mu.Unlock()
				if f == diesOfGarbage && member == "" && err != nil {
					cut()
				}
			})
		}
	})
	return func(ctx context.Context) {
		_ = l.Close()
		accepting.Wait()
		done := make(chan struct{})
		go func() { defer close(done); running.Wait() }()
		if f != stopsUnderCalls {
			select {
			case <-done:
			case <-ctx.Done():
			}
		}
		cut()
		<-done
	}
}

var errStranger = errors.New("no hello")

// attend has one conversation, whatever it is about.
func (f fault) attend(t *talk, g Gate, attached func(ring.MemberID)) (ring.MemberID, error) {
	for {
		first, err := t.hear(true)
		switch {
		case err != nil:
			return "", errStranger
		case first.Ask != nil:
			answer := g.Gateway.Asked(*first.Ask)
			return "", t.say(line{Answer: &answer})
		case first.Request != nil:
			return "", f.called(t, g, *first.Request)
		case first.Hello != nil:
			return first.Hello.Member, f.admit(t, g, first, attached)
		}
	}
}

func (f fault) admit(t *talk, g Gate, first line, attached func(ring.MemberID)) error {
	hello := *first.Hello
	if g.Authorize != nil && f != asksNobody {
		if err := g.Authorize(first.Token); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	v, a := g.Gateway.Admit(ctx, hello)
	if a == nil {
		return t.say(verdictLine(v))
	}
	attached(hello.Member)
	s := &served{talk: t, ctx: ctx, payloads: make(chan []byte, 2*few), parted: make(chan struct{})}
	defer func() {
		clean := s.saidGoodbye() || f == takesLossForGoodbye
		if f == sessionsStay && hello.Session != "" {
			return
		}
		a.Leave(clean)
	}()
	if err := t.say(verdictLine(v)); err != nil {
		return err
	}
	a.Carry(s.carry) // no request may overtake the verdict
	var talking sync.WaitGroup
	defer talking.Wait()
	defer t.Close()
	defer cancel()
	talking.Go(func() {
		t.ping(ctx, cmp.Or(g.Heartbeat, f.keepalive()/8), func() line {
			beat := a.Heartbeat()
			if f == otherIncarnation {
				beat.Incarnation++
			}
			if f == losesRenewals {
				beat.Proof = nil
			}
			return noticeLine(beat)
		})
	})
	talking.Go(func() { defer cancel(); s.listen() })
	returned := make(chan struct{})
	if g.Serve != nil {
		talking.Go(func() { defer close(returned); _ = g.Serve(ctx, s) })
	}
	return s.follow(a, returned, g.Serve != nil)
}

// served is a stream at the gateway's end.
type served struct {
	*talk
	ctx      context.Context
	requests carry.Requests
	payloads chan []byte

	parted  chan struct{} // closed: nothing comes any more, and it is known whether there was a goodbye
	goodbye bool
}

func (s *served) saidGoodbye() bool {
	select {
	case <-s.parted:
		return s.goodbye
	default:
		return false
	}
}

// listen takes apart what comes, until the supervisor hangs up.
func (s *served) listen() {
	part := sync.OnceFunc(func() { close(s.parted) })
	defer part()
	for {
		l, err := s.hear(s.fault == gatewayWithoutKeepalive)
		switch {
		case err != nil:
			return
		case l.Goodbye:
			s.goodbye = true
			part()
		case l.Reply != nil:
			answer, err := l.Reply.read()
			s.requests.Answer(l.ID, carry.Reply{Payload: answer, Err: err})
		case l.Payload != nil:
			select {
			case s.payloads <- l.Payload:
			case <-s.ctx.Done():
			}
		}
	}
}

// follow passes notices on, until the stream is to end.
func (s *served) follow(a *redirect.Attachment, returned <-chan struct{}, application bool) error {
	var held *redirect.Notice
	notices, parted := a.Notices(), s.parted
	for {
		select {
		case n, more := <-notices:
			switch {
			case !more:
				s.end()
				return nil
			case s.fault == losesNotices:
				continue
			case s.fault == swapsNotices && held == nil && n.Kind == redirect.NoticeMove:
				held = &n
				continue
			}
			if n.Kind == redirect.NoticeEnd && s.fault != waitsForTheDeaf {
				_ = s.SetWriteDeadline(time.Now().Add(short))
			}
			if err := s.say(noticeLine(n)); err != nil {
				select { // there may be a goodbye to be read
				case <-s.parted:
				case <-time.After(short):
				}
				return err
			}
			if held != nil {
				_ = s.say(noticeLine(*held))
				held = nil
			}
		case <-returned:
			s.end()
			return nil
		case <-parted:
			if !s.goodbye || !application {
				return s.say(line{Over: true})
			}
			a.Leave(s.fault != goodbyeIsALossToApplications)
			notices, parted = nil, nil // the application may still be at what came before
		case <-s.ctx.Done():
			return nil
		}
	}
}

// end waits for the answers that are on their way, says that it is over, and
// waits until the supervisor hangs up.
func (s *served) end() {
	limit := time.NewTimer(s.fault.keepalive())
	defer limit.Stop()
	if s.fault != dropsAnswersAtTheEnd {
		select {
		case <-s.requests.Close():
		case <-s.ctx.Done():
		case <-limit.C:
		}
	}
	if s.fault == takesTheEndForALoss || s.say(line{Over: true}) != nil {
		return
	}
	select {
	case <-s.ctx.Done():
	case <-limit.C:
	}
}

var errLost = errors.New("the stream is lost")

// Recv implements [Payloads].
func (s *served) Recv() ([]byte, error) {
	if s.fault == forgetsPayloadsAtGoodbye && s.saidGoodbye() {
		return nil, io.EOF
	}
	select {
	case p := <-s.payloads:
		return p, nil
	case <-s.parted:
	case <-s.ctx.Done():
	}
	select {
	case p := <-s.payloads:
		return p, nil
	default:
	}
	if s.saidGoodbye() || s.fault == takesEveryEndForAGoodbye {
		return nil, io.EOF
	}
	return nil, errLost
}

// Send implements [Payloads].
func (s *served) Send(payload []byte) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	return s.say(line{Payload: append([]byte{}, payload...)})
}

// carry is the stream's [redirect.Carry].
func (s *served) carry(ctx context.Context, payload []byte) ([]byte, error) {
	if s.fault != breaksOnSize && len(payload) > plainBytes {
		return nil, errTooLong
	}
	id, replies := s.requests.Add()
	if id == 0 {
		return nil, redirect.ErrNotHere
	}
	defer s.requests.Remove(id)
	// If it cannot be said, the stream has ended, and how is found out by reading.
	_ = s.say(line{ID: id, Request: &plainRequest{Payload: payload, Left: s.fault.left(ctx)}})
	select {
	case r := <-replies:
		return r.Payload, r.Err
	case <-s.parted:
	case <-s.ctx.Done():
	case <-ctx.Done():
		if s.fault != neverCancels {
			_ = s.say(line{ID: id, Cancel: true})
		}
		return nil, ctx.Err()
	}
	select {
	case r := <-replies:
		return r.Payload, r.Err
	default:
	}
	if s.saidGoodbye() || s.fault == callsAgain {
		return nil, redirect.ErrNotHere
	}
	return nil, redirect.ErrUncertain
}
