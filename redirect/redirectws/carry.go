// SPDX-License-Identifier: Apache-2.0

package redirectws

import (
	"context"
	"time"

	"github.com/evenring/evenring/redirect"
)

// carry is the stream's [redirect.Carry].
func (s *ServerStream) carry(ctx context.Context, payload []byte) ([]byte, error) {
	if err := tooLong("request", payload, MaxCallBytes); err != nil {
		return nil, err
	}
	id, replies := s.carrier.Add()
	if id == 0 {
		return nil, redirect.ErrNotHere
	}
	defer s.carrier.Remove(id)
	request, err := encode(word{Request: &requestWord{ID: number(id), Payload: payload, Timeout: timeLeft(ctx)}})
	if err != nil {
		return nil, err
	}
	select {
	case s.requests <- request:
	case <-s.written:
		return nil, redirect.ErrNotHere
	case <-s.over:
		return nil, redirect.ErrNotHere
	case <-s.ctx.Done():
		return nil, redirect.ErrNotHere
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case r := <-replies:
		return r.Payload, r.Err
	case <-s.over:
	case <-s.ctx.Done():
	case <-ctx.Done():
		select {
		case s.cancels <- id:
		default: // it has its time limit
		}
		return nil, ctx.Err()
	}
	select {
	case r := <-replies:
		return r.Payload, r.Err
	default:
	}
	if s.saidGoodbye() {
		return nil, redirect.ErrNotHere
	}
	return nil, redirect.ErrUncertain
}

// timeLeft returns how long ctx has left; 0: for ever.
func timeLeft(ctx context.Context) span {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return span(max(time.Until(deadline), 1))
}

// bounded is its inverse, at the other end.
func bounded(ctx context.Context, left span) (context.Context, context.CancelFunc) {
	if left == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Duration(left))
}

// settle waits until every request on the stream has its answer, while more
// are turned away. Whatever ends the stream ends it.
func (s *ServerStream) settle(limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-s.carrier.Close():
	case <-s.over:
	case <-s.written:
	case <-s.ctx.Done():
	case <-timer.C:
	}
}
