// SPDX-License-Identifier: Apache-2.0

package redirectgrpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/carry"
	"github.com/evenring/evenring/redirect/redirectgrpc/evenringpb"
)

// ErrClosed says that this side has ended the stream.
var ErrClosed = errors.New("redirectgrpc: stream closed")

const (
	closeTimeout = time.Second // for the goodbye to arrive and the other end to end
	noticeQueue  = 16
)

// Stream is an accepted stream, seen from the supervisor's side. It is a
// [redirect.Stream] that carries payloads beside the notices. All methods may
// be called at once, from any goroutine. Once the stream has ended, whoever
// ended it, it holds no resources but the requests that [Transport.Serve] still
// works on; Close is then free.
//
// Notices and payloads arrive in one order. When [Transport.Payloads] of them
// wait for [Stream.Recv], the stream is read no further until one is taken:
// the gateway is slowed down, and later notices wait too. A connection that
// breaks meanwhile ends the stream all the same.
type Stream struct {
	conn   *grpc.ClientConn
	attach evenringpb.Gateway_AttachClient
	end    context.CancelFunc
	gone   <-chan struct{} // closed: no connection left

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

func (t Transport) newStream(conn *grpc.ClientConn, attach evenringpb.Gateway_AttachClient, end context.CancelFunc, gone <-chan struct{}) *Stream {
	s := &Stream{
		conn:    conn,
		attach:  attach,
		end:     end,
		gone:    gone,
		closed:  make(chan struct{}),
		notices: make(chan redirect.Notice, noticeQueue),
		ended:   make(chan struct{}),

		answers: carry.Answers{Serve: limited(t.Serve)},
		linger:  cmp.Or(t.Linger, DefaultLinger),
	}
	if t.Payloads > 0 {
		s.payloads = make(chan []byte, t.Payloads)
	}
	go s.read()
	return s
}

// Notice blocks until the gateway says something. Notices of a kind that this
// version does not know are not returned, nor heartbeats that came while 16
// notices waited. Once the stream has ended and every notice has been
// returned, it returns an error: [io.EOF] if the gateway ended it in good
// order, the gRPC status otherwise, [ErrClosed] after Close.
func (s *Stream) Notice() (redirect.Notice, error) { return take(s, s.notices) }

// Recv blocks until a payload has come, and gives it away. Its errors are those of
// Notice. If [Transport.Payloads] is 0, it waits for the end of the stream.
func (s *Stream) Recv() ([]byte, error) { return take(s, s.payloads) }

func take[T any](s *Stream, queue <-chan T) (T, error) {
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

// Send sends a payload. It blocks while the gateway does not keep up; Close
// ends that. The payload must not be changed afterwards. An error means that
// the stream has ended or is about to: [ErrClosed], or one that wraps
// [io.EOF] if the other side was first; Notice says why.
func (s *Stream) Send(payload []byte) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	select {
	case <-s.closed:
		return ErrClosed
	default:
	}
	frame := &evenringpb.ClientFrame{Frame: &evenringpb.ClientFrame_Payload{Payload: payload}}
	if err := s.attach.Send(frame); err != nil {
		return fmt.Errorf("redirectgrpc: send: %w", err)
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
		deadline := time.AfterFunc(closeTimeout, s.end)
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
	frame := &evenringpb.ClientFrame{Frame: &evenringpb.ClientFrame_Goodbye{Goodbye: &evenringpb.Goodbye{}}}
	if s.attach.Send(frame) == nil {
		_ = s.attach.CloseSend()
	}
}

func (s *Stream) read() {
	defer close(s.ended)
	defer func() { _ = s.conn.Close() }()
	defer s.end()
	for {
		frame, err := s.attach.Recv()
		if errors.Is(err, io.EOF) {
			s.err = io.EOF
			return
		}
		if err != nil {
			s.err = fmt.Errorf("redirectgrpc: stream ended: %w", err)
			return
		}
		switch frame := frame.GetFrame().(type) {
		case *evenringpb.ServerFrame_Notice:
			s.gotNotice(noticeFromWire(frame.Notice))
		case *evenringpb.ServerFrame_Payload:
			put(s, s.payloads, frame.Payload)
		case *evenringpb.ServerFrame_Request:
			s.gotRequest(frame.Request)
		case *evenringpb.ServerFrame_Cancel:
			s.answers.Cancel(frame.Cancel.GetId())
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

// put queues what has come, and waits for room. A queue that is nil takes nothing. What there
// is room for is kept also if the connection has gone meanwhile: it may be why.
func put[T any](s *Stream, queue chan<- T, what T) {
	if queue == nil {
		return
	}
	select {
	case queue <- what:
		return
	default:
	}
	select {
	case queue <- what:
	case <-s.closed:
	case <-s.gone:
	}
}
