// SPDX-License-Identifier: Apache-2.0

package redirectws

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/carry"
)

// ErrClosed says that this side has ended the stream.
var ErrClosed = errors.New("redirectws: stream closed")

// MaxPayloadBytes is how long a payload of the application may be.
const MaxPayloadBytes = 4 << 20

const noticeQueue = 16

// Stream is an accepted stream, seen from the supervisor's side. It is a
// [redirect.Stream] that carries payloads beside the notices. All methods may
// be called at once, from any goroutine. Once the stream has ended, whoever
// ended it, it holds no resources but the requests that [Transport.Serve] still
// works on; Close is then free.
//
// Notices and payloads arrive in one order. When [Transport.Payloads] of them
// wait for [Stream.Recv], the stream is read no further until one is taken:
// the gateway is slowed down, and later notices wait too. A connection that
// breaks meanwhile ends the stream within a few seconds all the same; one that
// falls silent is found out only when it is read again.
type Stream struct {
	link *link
	life context.Context
	end  context.CancelFunc

	sending  sync.Mutex
	parted   bool // nothing is sent any more
	close    sync.Once
	closed   chan struct{} // closed: by this side
	notices  chan redirect.Notice
	payloads chan []byte   // nil: not wanted
	ended    chan struct{} // closed: err is set, everything is released
	err      error

	answers carry.Answers
	linger  time.Duration
}

var _ redirect.Stream = (*Stream)(nil)

func (t Transport) newStream(ctx context.Context, l *link) *Stream {
	s := &Stream{
		link:    l,
		closed:  make(chan struct{}),
		notices: make(chan redirect.Notice, noticeQueue),
		ended:   make(chan struct{}),

		answers: carry.Answers{Serve: limited(t.Serve)},
		linger:  cmp.Or(t.Linger, DefaultLinger),
	}
	s.life, s.end = context.WithCancel(context.WithoutCancel(ctx))
	if t.Payloads > 0 {
		s.payloads = make(chan []byte, t.Payloads)
	}
	go s.run()
	return s
}

// Notice blocks until the gateway says something. Notices of a kind that this
// version does not know are not returned, nor heartbeats that came while 16
// notices waited. Once the stream has ended and every notice has been
// returned, it returns an error: [io.EOF] if the gateway ended it in good
// order, [ErrClosed] after Close, and otherwise one of which
// [websocket.CloseStatus] has the code, if the gateway said one.
func (s *Stream) Notice() (redirect.Notice, error) { return receive(s, s.notices) }

// Recv blocks until a payload has come, and gives it away. Its errors are those of
// Notice. If [Transport.Payloads] is 0, it waits for the end of the stream.
func (s *Stream) Recv() ([]byte, error) { return receive(s, s.payloads) }

func receive[T any](s *Stream, queue <-chan T) (T, error) {
	var none T
	select {
	case <-s.closed:
		return none, ErrClosed
	default:
	}
	select {
	case <-s.closed:
		return none, ErrClosed
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

// Send sends a payload, of [MaxPayloadBytes] at most. It blocks while the gateway
// does not keep up; Close ends that. The payload must not be changed afterwards.
// An error means that it is too long, or that the stream has ended or is about to: [ErrClosed], or one that
// wraps [io.EOF] if the other side was first; Notice says why.
func (s *Stream) Send(payload []byte) error {
	if err := tooLong("payload", payload, MaxPayloadBytes); err != nil {
		return err
	}
	s.sending.Lock()
	defer s.sending.Unlock()
	select {
	case <-s.closed:
		return ErrClosed
	default:
	}
	if err := s.link.write(s.life, websocket.MessageBinary, payload); err != nil {
		return fmt.Errorf("redirectws: send: %w: %w", io.EOF, err)
	}
	return nil
}

// Close waits until the requests that are being answered have their answers,
// for [Transport.Linger] at most, while further ones are turned away; says
// goodbye, waits up to a second for the gateway to end the stream, and then ends
// it. It returns nil, once no [Transport.Serve] runs for the stream any more.
// The gateway takes it that a request without an answer was not executed: those
// that were begun and are given up, it is told of.
func (s *Stream) Close() error {
	s.close.Do(func() {
		close(s.closed)
		s.finish()
		// It frees a Send that is stuck, too.
		deadline := time.AfterFunc(closeTimeout, func() { s.link.giveUp(ErrClosed) })
		defer deadline.Stop()
		for _, id := range s.answers.GiveUp() {
			s.reply(id, nil, redirect.ErrUncertain)
		}
		s.goodbye()
		<-s.ended
	})
	s.answers.Wait()
	return nil
}

// goodbye ignores errors: the stream has ended, then, and there is nobody to part from.
func (s *Stream) goodbye() {
	s.sending.Lock()
	defer s.sending.Unlock()
	s.parted = true
	s.say(word{Goodbye: new(struct{})})
}

// say writes a word, under the lock. An error is the reader's to find.
func (s *Stream) say(w word) {
	if data, err := encode(w); err == nil {
		_ = s.link.write(s.life, websocket.MessageText, data)
	}
}

// sign shows that somebody is here, by a word that says nothing.
func (s *Stream) sign() error {
	if !s.sending.TryLock() {
		return nil // what is being written shows it
	}
	defer s.sending.Unlock()
	if s.parted {
		return nil
	}
	return s.link.write(s.life, websocket.MessageText, []byte("{}"))
}

// run lives as long as the stream.
func (s *Stream) run() {
	var watching sync.WaitGroup
	defer close(s.ended)
	defer watching.Wait()
	watching.Go(func() { s.link.watch(s.life, s.sign) })
	s.err = s.read()
	s.end()
	s.link.drop()
}

// read takes apart what comes, and returns why nothing does any more.
func (s *Stream) read() error {
	for {
		kind, data, err := s.link.read(s.life)
		switch {
		case websocket.CloseStatus(err) == websocket.StatusNormalClosure:
			return io.EOF
		case err != nil:
			return fmt.Errorf("redirectws: stream ended: %w", err)
		case kind == websocket.MessageBinary:
			put(s, s.payloads, data)
			continue
		}
		var w word
		if err := decode(data, &w); err != nil {
			s.link.close(websocket.StatusInvalidFramePayloadData, "not a word: "+err.Error())
			return fmt.Errorf("redirectws: stream ended: not a word: %w", err)
		}
		switch {
		case w.Notice != nil:
			s.gotNotice(noticeFromWire(w.Notice))
		case w.Request != nil:
			s.gotRequest(w.Request)
		case w.Cancel != nil:
			s.answers.Cancel(uint64(w.Cancel.ID))
		}
	}
}

func (s *Stream) gotNotice(n redirect.Notice) {
	switch n.Kind {
	case redirect.NoticeNone:
	case redirect.NoticeHeartbeat:
		select {
		case s.notices <- n:
		default:
		}
	default:
		put(s, s.notices, n)
	}
}

// put queues what has come, and waits for room. A queue that is nil takes nothing.
func put[T any](s *Stream, queue chan<- T, what T) {
	if queue == nil {
		return
	}
	select {
	case queue <- what:
		return
	default:
	}
	s.link.park()
	defer s.link.unpark()
	select {
	case queue <- what:
	case <-s.closed:
	case <-s.link.gone:
	}
}
