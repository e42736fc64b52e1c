// SPDX-License-Identifier: Apache-2.0

package redirectgrpc

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/redirectgrpc/evenringpb"
)

// carry is the stream's [redirect.Carry].
func (s *ServerStream) carry(ctx context.Context, payload []byte) ([]byte, error) {
	if err := tooLong("request", payload); err != nil {
		return nil, err
	}
	id, replies := s.carrier.Add()
	if id == 0 {
		return nil, redirect.ErrNotHere
	}
	defer s.carrier.Remove(id)
	request := &evenringpb.Request{Id: id, Payload: payload}
	if deadline, ok := ctx.Deadline(); ok {
		request.Timeout = durationpb.New(time.Until(deadline))
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
