// SPDX-License-Identifier: Apache-2.0

package redirectgrpc

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/evenring/evenring/redirect/redirectgrpc/evenringpb"
)

// DefaultLinger is the default of [Transport.Linger].
const DefaultLinger = 10 * time.Second

// limited is serve, with an error for an answer that would break the stream.
func limited(serve func(context.Context, []byte) ([]byte, error)) func(context.Context, []byte) ([]byte, error) {
	if serve == nil {
		return nil
	}
	return func(ctx context.Context, request []byte) ([]byte, error) {
		answer, err := serve(ctx, request)
		if err == nil {
			err = tooLong("answer", answer)
		}
		return answer, err
	}
}

// timed returns ctx with a time limit; nil: without one.
func timed(ctx context.Context, limit *durationpb.Duration) (context.Context, context.CancelFunc) {
	if limit == nil {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, limit.AsDuration())
}

// gotRequest answers a request, in a goroutine of its own.
func (s *Stream) gotRequest(r *evenringpb.Request) {
	ctx, cancel := timed(s.attach.Context(), r.GetTimeout())
	id := r.GetId()
	s.answers.Start(ctx, s.attach.Context(), cancel, id, r.GetPayload(), func(answer []byte, err error) { s.reply(id, answer, err) })
}

// reply ignores errors: the stream has ended, then, and the gateway knows what that means.
func (s *Stream) reply(id uint64, answer []byte, err error) {
	r := replyToWire(answer, err)
	r.Id = id
	s.sending.Lock()
	defer s.sending.Unlock()
	if !s.parted {
		_ = s.attach.Send(&evenringpb.ClientFrame{Frame: &evenringpb.ClientFrame_Reply{Reply: r}})
	}
}

// finish waits until every request has its answer, while more are turned away;
// not for longer than s.linger, nor than the stream lasts.
func (s *Stream) finish() {
	idle := s.answers.Close()
	timer := time.NewTimer(s.linger)
	defer timer.Stop()
	select {
	case <-idle:
	case <-s.ended:
	case <-timer.C:
	}
}
