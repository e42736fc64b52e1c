// SPDX-License-Identifier: Apache-2.0

package redirectws

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/carry"
)

const (
	payloadQueue = 16          // each way
	flushTimeout = time.Second // for the last words of a stream to be written
)

// ServerStream is an accepted stream, seen from the gateway's application. Its
// methods may be called at once, from any goroutine.
type ServerStream struct {
	ctx    context.Context    // the application's
	timeUp context.CancelFunc // ends it
	life   context.Context    // the connection's, which lasts longer, for the end to be told
	link   *link
	tasks  sync.WaitGroup // all that runs for it

	hello    redirect.Hello
	greeted  chan struct{} // closed: hello is set
	incoming chan []byte   // nil: not wanted
	over     chan struct{} // closed: nothing more comes, for err
	err      error         // nil: it said goodbye

	urgent   chan redirect.Notice
	beats    chan struct{} // one is wanted out of turn
	requests chan []byte   // words; taken as they are written
	cancels  chan uint64
	outgoing chan []byte
	last     chan struct{} // closed: write what is queued, and no more
	written  chan struct{} // closed: nothing more is written, for writeErr
	writeErr error

	carrier carry.Requests
}

// newServerStream returns a stream, and what ends all of it.
func newServerStream(ctx context.Context, l *link, payloads bool) (*ServerStream, context.CancelFunc) {
	s := &ServerStream{
		link:     l,
		greeted:  make(chan struct{}),
		over:     make(chan struct{}),
		urgent:   make(chan redirect.Notice, noticeQueue),
		beats:    make(chan struct{}, 1),
		requests: make(chan []byte),
		cancels:  make(chan uint64, noticeQueue),
		outgoing: make(chan []byte, payloadQueue),
		last:     make(chan struct{}),
		written:  make(chan struct{}),
	}
	if payloads {
		s.incoming = make(chan []byte, payloadQueue)
	}
	s.ctx, s.timeUp = context.WithCancel(ctx)
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	s.life = life
	return s, func() { s.timeUp(); end() }
}

// Hello returns the hello that the stream was accepted with. Its slices must not be written to.
func (s *ServerStream) Hello() redirect.Hello { return s.hello }

// Recv blocks until a payload has come, and gives it away. Its error is
// [io.EOF] after the supervisor has said goodbye and every payload has been
// returned; what is sent then may still arrive, for about a second. Any other
// error means that the stream was lost or has been ended by the gateway. A
// supervisor whose payloads are not taken is slowed down, and its goodbye waits
// behind them.
func (s *ServerStream) Recv() ([]byte, error) {
	select {
	case payload := <-s.incoming:
		return payload, nil
	default:
	}
	select {
	case payload := <-s.incoming:
		return payload, nil
	case <-s.over:
	case <-s.ctx.Done():
	}
	select {
	case payload := <-s.incoming:
		return payload, nil
	default:
	}
	if s.saidGoodbye() {
		return nil, io.EOF
	}
	select {
	case <-s.over:
		return nil, s.err
	default:
		return nil, s.ctx.Err()
	}
}

// Send queues a payload, of [MaxPayloadBytes] at most. It blocks while the
// supervisor does not keep up, until the stream has ended. The payload must not be
// changed afterwards. Notices overtake queued payloads. No error means that it is queued, not that it has
// arrived; an error, that nothing arrives any more, or that this payload is too long.
func (s *ServerStream) Send(payload []byte) error {
	if err := tooLong("payload", payload, MaxPayloadBytes); err != nil {
		return err
	}
	select {
	case <-s.written:
		return ErrClosed
	case <-s.ctx.Done():
		return s.ctx.Err()
	default:
	}
	select {
	case s.outgoing <- payload:
		return nil
	case <-s.written:
		return ErrClosed
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

// greeting waits for the hello.
func (s *ServerStream) greeting(limit time.Duration) (redirect.Hello, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-s.greeted:
		return s.hello, nil
	case <-s.over:
		if s.err != nil {
			return redirect.Hello{}, s.err
		}
		select {
		case <-s.greeted: // and the goodbye came with it
			return s.hello, nil
		default:
			return redirect.Hello{}, ends(websocket.StatusProtocolError, "goodbye before the hello")
		}
	case <-timer.C:
		return redirect.Hello{}, ends(websocket.StatusPolicyViolation, "no hello within %v", limit)
	}
}

// read takes apart what comes, until nothing does. Once the connection is lost,
// or about a second after a goodbye, the application's time is up.
func (s *ServerStream) read() {
	defer s.timeUp()
	s.err = s.listen()
	close(s.over)
	if s.err != nil {
		return
	}
	timer := time.AfterFunc(2*closeTimeout, s.timeUp)
	defer timer.Stop()
	for {
		if _, _, err := s.link.read(s.life); err != nil {
			return
		}
	}
}

// listen returns nil after the goodbye.
func (s *ServerStream) listen() error {
	hailed := false
	for {
		kind, data, err := s.link.read(s.life)
		if err != nil {
			return fmt.Errorf("redirectws: the stream ended without a goodbye: %w", err)
		}
		if kind == websocket.MessageBinary {
			if !hailed {
				return ends(websocket.StatusProtocolError, "a payload before the hello")
			}
			if err := s.gotPayload(data); err != nil {
				return err
			}
			continue
		}
		var w word
		if err := decode(data, &w); err != nil {
			return ends(websocket.StatusInvalidFramePayloadData, "not a word: %v", err)
		}
		switch {
		case w.Hello != nil && hailed:
			return ends(websocket.StatusProtocolError, "a second hello")
		case w.Hello != nil:
			hailed = true
			s.hello = helloFromWire(w.Hello)
			close(s.greeted)
		case w.Reply != nil:
			answer, err := replyFromWire(w.Reply)
			s.carrier.Answer(uint64(w.Reply.ID), carry.Reply{Payload: answer, Err: err})
		case w.Goodbye != nil:
			return nil
		}
	}
}

func (s *ServerStream) gotPayload(payload []byte) error {
	if s.incoming == nil {
		return nil
	}
	select {
	case s.incoming <- payload:
		return nil
	default:
	}
	s.link.park()
	defer s.link.unpark()
	select {
	case s.incoming <- payload:
		return nil
	case <-s.link.gone:
		return s.link.cause
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

// saidGoodbye reports whether the supervisor has left for good.
func (s *ServerStream) saidGoodbye() bool {
	select {
	case <-s.over:
		return s.err == nil
	default:
		return false
	}
}

// whyOver returns with what a stream ends whose context has ended.
func (s *ServerStream) whyOver() error {
	select {
	case <-s.over:
		return s.err
	default:
		return ends(websocket.StatusGoingAway, "%v", errStopped)
	}
}

// notify queues a notice; false: there is no room.
func (s *ServerStream) notify(n redirect.Notice) bool {
	select {
	case s.urgent <- n:
		return true
	default:
		return false
	}
}

// sign asks for a heartbeat out of turn, for nothing else may be said.
func (s *ServerStream) sign() error {
	select {
	case s.beats <- struct{}{}:
	default:
	}
	return nil
}

// flush lets what is queued be written.
func (s *ServerStream) flush() error {
	close(s.last)
	timer := time.NewTimer(flushTimeout)
	defer timer.Stop()
	select {
	case <-s.written:
		return s.writeErr
	case <-s.ctx.Done():
		return s.whyOver()
	case <-timer.C:
		return ends(websocket.StatusTryAgainLater, "the supervisor does not take what it is sent")
	}
}

// write is the one who sends. It stops at an error, when the stream has ended,
// and after flush when nothing is left.
func (s *ServerStream) write(heartbeat time.Duration, beat func() redirect.Notice) {
	defer close(s.written)
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for s.writeErr == nil {
		select {
		case n := <-s.urgent:
			s.writeErr = s.sendNotice(n)
			continue
		default:
		}
		select {
		case n := <-s.urgent:
			s.writeErr = s.sendNotice(n)
		case r := <-s.requests:
			s.writeErr = s.say(r)
		case id := <-s.cancels:
			s.writeErr = s.sendCancel(id)
		case payload := <-s.outgoing:
			s.writeErr = s.link.write(s.life, websocket.MessageBinary, payload)
		case <-ticker.C:
			s.writeErr = s.sendNotice(beat())
		case <-s.beats:
			s.writeErr = s.sendNotice(beat())
		case <-s.last:
			s.writeRest()
			return
		case <-s.ctx.Done():
			return
		}
	}
}

func (s *ServerStream) writeRest() {
	for s.writeErr == nil {
		select {
		case n := <-s.urgent:
			s.writeErr = s.sendNotice(n)
			continue
		default:
		}
		select {
		case payload := <-s.outgoing:
			s.writeErr = s.link.write(s.life, websocket.MessageBinary, payload)
		default:
			return
		}
	}
}

func (s *ServerStream) sendNotice(n redirect.Notice) error {
	data, err := encodeNotice(n)
	if err != nil {
		return err
	}
	return s.say(data)
}

func (s *ServerStream) sendCancel(id uint64) error {
	data, err := encode(word{Cancel: &cancelWord{ID: number(id)}})
	if err != nil {
		return err
	}
	return s.say(data)
}

func (s *ServerStream) say(data []byte) error {
	return s.link.write(s.life, websocket.MessageText, data)
}
