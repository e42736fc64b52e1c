// SPDX-License-Identifier: Apache-2.0

package supervisortest

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/carry"
)

// Dial implements [redirect.Transport].
func (p *plainTransport) Dial(ctx context.Context, addr string, hello redirect.Hello) (redirect.Verdict, redirect.Stream, error) {
	if p.fault == ignoresTheContext {
		ctx = context.WithoutCancel(ctx)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		if p.fault == retriesTheRefused {
			<-ctx.Done()
		}
		return redirect.Verdict{}, nil, err
	}
	t := newTalk(conn, p.fault)
	verdict, err := p.greet(ctx, t, hello)
	if p.fault == trustsGarbage && err != nil && ctx.Err() == nil {
		verdict, err = redirect.Verdict{Outcome: redirect.Refuse}, nil
	}
	if err != nil || verdict.Outcome != redirect.Accept && p.fault != streamWithEveryVerdict || p.fault == noStream {
		if p.fault == leaksConnections {
			p.mu.Lock()
			p.leaked = append(p.leaked, conn)
			p.mu.Unlock()
		} else {
			_ = conn.Close()
		}
		return verdict, nil, err
	}
	s := newPlainStream(ctx, t, p.answer)
	if p.fault == tiesTheStreamToTheDial {
		context.AfterFunc(ctx, func() { _ = conn.Close() })
	}
	if p.fault == oneAtATime {
		p.mu.Lock()
		if p.latest != nil {
			_ = p.latest.Close()
		}
		p.latest = s
		p.mu.Unlock()
	}
	return verdict, s, nil
}

func (p *plainTransport) greet(ctx context.Context, t *talk, hello redirect.Hello) (redirect.Verdict, error) {
	if p.fault == ignoresTheContext {
		_ = t.SetReadDeadline(time.Now().Add(3 * short))
	} else {
		stop := context.AfterFunc(ctx, func() { _ = t.SetReadDeadline(time.Unix(1, 0)) })
		defer stop()
	}
	hello.Answers = p.answer != nil
	switch p.fault {
	case losesTheCap:
		hello.Cap = 0
	case roundsGenerations:
		hello.Generation = hello.Generation / 10 * 10
	case losesProofs:
		hello.Proof = nil
	}
	p.mu.Lock()
	if p.kept == "" || p.fault != keepsTheToken {
		p.kept = p.token()
	}
	token := p.kept
	p.mu.Unlock()
	if err := t.say(line{Hello: &hello, Token: token}); err != nil {
		return redirect.Verdict{}, err
	}
	for {
		l, err := t.hear(true)
		if err != nil {
			return redirect.Verdict{}, err
		}
		if l.Verdict == nil {
			continue
		}
		v := l.verdict()
		switch p.fault {
		case losesTheEndpoint:
			v.Endpoint = ""
		case losesRetryAfter:
			v.RetryAfter = 0
		}
		return v, nil
	}
}

// plainStream is an accepted stream.
type plainStream struct {
	*talk
	answers  carry.Answers
	notices  chan redirect.Notice
	payloads chan []byte
	end      context.CancelFunc
	life     context.Context

	once   sync.Once
	closed chan struct{}
	ended  chan struct{}
	err    error // after that
}

func newPlainStream(ctx context.Context, t *talk, answer func(context.Context, []byte) ([]byte, error)) *plainStream {
	s := &plainStream{
		talk: t, notices: make(chan redirect.Notice, 2*few), payloads: make(chan []byte, 2*few),
		closed: make(chan struct{}), ended: make(chan struct{}),
	}
	if answer != nil {
		s.answers.Serve = func(ctx context.Context, request []byte) ([]byte, error) {
			if s.fault == executesTwice {
				go func() { _, _ = answer(ctx, request) }()
			}
			payload, err := answer(ctx, request)
			if err == nil && len(payload) > plainBytes && s.fault != breaksOnSize {
				err = errTooLong
			}
			return payload, err
		}
	}
	s.life, s.end = context.WithCancel(context.WithoutCancel(ctx))
	go s.ping(s.life, s.fault.keepalive()/8, func() line { return line{} })
	go s.read()
	return s
}

// read takes apart what comes.
func (s *plainStream) read() {
	defer close(s.ended)
	defer s.Conn.Close()
	defer s.end()
	var held []byte
	for {
		l, err := s.hear(s.fault == noKeepalive)
		switch {
		case err != nil:
			s.err = errLost
			return
		case l.Over:
			s.err = io.EOF
			return
		}
		switch {
		case l.Notice != nil:
			s.got(l.notice())
		case l.Request != nil:
			ctx, cancel := l.Request.bounded(s.life)
			s.answers.Start(ctx, s.life, cancel, l.ID, l.Request.Payload, func(answer []byte, err error) {
				_ = s.say(line{ID: l.ID, Reply: s.fault.reply(answer, err)})
			})
		case l.Cancel:
			s.answers.Cancel(l.ID)
		case l.Payload != nil && s.fault == swapsPayloads && held == nil:
			held = l.Payload
		case l.Payload != nil:
			s.put(l.Payload)
			if held != nil {
				s.put(held)
			}
		}
	}
}

func (s *plainStream) put(payload []byte) {
	select {
	case s.payloads <- payload:
	case <-s.life.Done():
	case <-s.closed:
	}
}

func (s *plainStream) got(n redirect.Notice) {
	switch n.Kind {
	case redirect.NoticeNone:
	case redirect.NoticeHeartbeat:
		select {
		case s.notices <- n:
		default:
		}
	default:
		select {
		case s.notices <- n:
		case <-s.life.Done():
		case <-s.closed:
		}
	}
}

var errClosed = errors.New("closed here")

// take is what Notice and Recv do.
func take[T any](s *plainStream, queue <-chan T) (none T, err error) {
	select {
	case <-s.closed:
		if s.fault == closeLeavesNoticeWaiting {
			<-time.After(3 * short) // as if it had not been told; the test must end all the same
		}
		return none, errClosed
	case got := <-queue:
		return got, nil
	case <-s.ended:
	}
	select {
	case got := <-queue:
		return got, nil
	default:
		return none, s.err
	}
}

func (s *plainStream) Notice() (redirect.Notice, error) { return take(s, s.notices) }

// Recv implements [Payloads].
func (s *plainStream) Recv() ([]byte, error) { return take(s, s.payloads) }

// Send implements [Payloads].
func (s *plainStream) Send(payload []byte) error { return s.say(line{Payload: payload}) }

// Close has the answers go out first, and the gateway end the stream.
func (s *plainStream) Close() error {
	s.once.Do(func() {
		if s.fault == servesWhileClosing {
			// It takes requests as if it did not close, and has no answer to any.
			defer s.answers.GiveUp()
			s.part()
			return
		}
		idle := s.answers.Close()
		close(s.closed)
		if s.fault != dropsAnswersAtClose {
			select {
			case <-idle:
			case <-s.ended:
			case <-time.After(5 * time.Second):
			}
		}
		s.answers.GiveUp()
		s.part()
	})
	s.answers.Wait()
	return nil
}

// part says goodbye, and waits a while until the gateway hangs up.
func (s *plainStream) part() {
	if s.fault != closesWithoutGoodbye && s.say(line{Goodbye: true}) == nil {
		select {
		case <-s.ended:
		case <-time.After(short):
		}
	}
	_ = s.Conn.Close()
	<-s.ended
}
