// SPDX-License-Identifier: Apache-2.0

package redirectgrpc

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/carry"
	"github.com/evenring/evenring/redirect/redirectgrpc/evenringpb"
)

const (
	payloadQueue = 16          // each way
	flushTimeout = time.Second // for the last words of a stream to be written
)

// ServerStream is an accepted stream, seen from the gateway's application. Its
// methods may be called at once, from any goroutine.
type ServerStream struct {
	ctx    context.Context
	attach evenringpb.Gateway_AttachServer

	hello    redirect.Hello
	greeted  chan struct{} // closed: hello is set
	incoming chan []byte   // nil: not wanted
	over     chan struct{} // closed: nothing more comes, for err
	err      error         // nil: it said goodbye

	urgent   chan redirect.Notice
	requests chan *evenringpb.Request // taken as it is written
	cancels  chan uint64
	outgoing chan []byte
	last     chan struct{} // closed: write what is queued, and no more
	written  chan struct{} // closed: nothing more is written, for writeErr
	writeErr error

	carrier carry.Requests
}

func newServerStream(ctx context.Context, attach evenringpb.Gateway_AttachServer, payloads bool) *ServerStream {
	s := &ServerStream{
		ctx:      ctx,
		attach:   attach,
		greeted:  make(chan struct{}),
		over:     make(chan struct{}),
		urgent:   make(chan redirect.Notice, noticeQueue),
		requests: make(chan *evenringpb.Request),
		cancels:  make(chan uint64, noticeQueue),
		outgoing: make(chan []byte, payloadQueue),
		last:     make(chan struct{}),
		written:  make(chan struct{}),
	}
	if payloads {
		s.incoming = make(chan []byte, payloadQueue)
	}
	return s
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

// Send queues a payload. It blocks while the supervisor does not keep up, until
// the stream has ended. The payload must not be changed afterwards. Notices
// overtake queued payloads. No error means that it is queued, not that it has
// arrived; an error, that nothing arrives any more.
func (s *ServerStream) Send(payload []byte) error {
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
		if s.err == nil {
			return redirect.Hello{}, status.Error(codes.Aborted, "goodbye before the verdict")
		}
		return redirect.Hello{}, s.err
	case <-timer.C:
		return redirect.Hello{}, status.Errorf(codes.DeadlineExceeded, "no hello within %v", limit)
	}
}

// read takes apart what comes, until the stream is over.
func (s *ServerStream) read() {
	defer close(s.over)
	hailed := false
	for {
		frame, err := s.attach.Recv()
		if errors.Is(err, io.EOF) {
			s.err = status.Error(codes.Aborted, "the stream ended without a goodbye")
			return
		}
		if err != nil {
			s.err = err
			return
		}
		switch frame := frame.GetFrame().(type) {
		case *evenringpb.ClientFrame_Hello:
			if hailed {
				s.err = status.Error(codes.FailedPrecondition, "a second hello")
				return
			}
			hailed = true
			s.hello = helloFromWire(frame.Hello)
			close(s.greeted)
		case *evenringpb.ClientFrame_Payload:
			if !hailed {
				s.err = status.Error(codes.FailedPrecondition, "a payload before the hello")
				return
			}
			if s.incoming == nil {
				continue
			}
			select {
			case s.incoming <- frame.Payload:
			case <-s.ctx.Done():
				s.err = status.FromContextError(s.ctx.Err()).Err()
				return
			}
		case *evenringpb.ClientFrame_Reply:
			answer, err := replyFromWire(frame.Reply)
			s.carrier.Answer(frame.Reply.GetId(), carry.Reply{Payload: answer, Err: err})
		case *evenringpb.ClientFrame_Goodbye:
			return
		}
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

// notify queues a notice; false: there is no room.
func (s *ServerStream) notify(n redirect.Notice) bool {
	select {
	case s.urgent <- n:
		return true
	default:
		return false
	}
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
		return status.FromContextError(s.ctx.Err()).Err()
	case <-timer.C:
		return status.Error(codes.ResourceExhausted, "the supervisor does not take what it is sent")
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
			s.writeErr = s.send(&evenringpb.ServerFrame{Frame: &evenringpb.ServerFrame_Request{Request: r}})
		case id := <-s.cancels:
			s.writeErr = s.send(&evenringpb.ServerFrame{Frame: &evenringpb.ServerFrame_Cancel{Cancel: &evenringpb.Cancel{Id: id}}})
		case payload := <-s.outgoing:
			s.writeErr = s.sendPayload(payload)
		case <-ticker.C:
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
			s.writeErr = s.sendPayload(payload)
		default:
			return
		}
	}
}

func (s *ServerStream) sendNotice(n redirect.Notice) error {
	return s.send(&evenringpb.ServerFrame{Frame: &evenringpb.ServerFrame_Notice{Notice: noticeToWire(n)}})
}

func (s *ServerStream) sendPayload(payload []byte) error {
	return s.send(&evenringpb.ServerFrame{Frame: &evenringpb.ServerFrame_Payload{Payload: payload}})
}

func (s *ServerStream) send(frame *evenringpb.ServerFrame) error { return s.attach.Send(frame) }
