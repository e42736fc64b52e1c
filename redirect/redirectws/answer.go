// SPDX-License-Identifier: Apache-2.0

package redirectws

import (
	"context"
	"time"
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
			err = tooLong("answer", answer, MaxCallBytes)
		}
		return answer, err
	}
}

// gotRequest answers a request, in a goroutine of its own.
func (s *Stream) gotRequest(r *requestWord) {
	ctx, cancel := bounded(s.life, r.Timeout)
	id := uint64(r.ID)
	s.answers.Start(ctx, s.life, cancel, id, some(r.Payload), func(answer []byte, err error) { s.reply(id, answer, err) })
}

// reply ignores errors: the stream has ended, then, and the gateway knows what that means.
func (s *Stream) reply(id uint64, answer []byte, err error) {
	r := replyToWire(answer, err)
	r.ID = number(id)
	s.sending.Lock()
	defer s.sending.Unlock()
	if !s.parted {
		s.say(word{Reply: r})
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
