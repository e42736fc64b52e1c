// SPDX-License-Identifier: Apache-2.0

package redirectws

import (
	"context"
	"sync"
	"time"

	"github.com/evenring/evenring/redirect"
)

// carrier is the requests on one stream that are without an answer.
type carrier struct {
	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan *replyWord // each with room for one
	closed  bool
	idle    chan struct{} // closed: none is left, and none comes any more
}

// add takes one more request and returns its ID, 0 if the stream takes no more.
func (c *carrier) add() (uint64, <-chan *replyWord) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, nil
	}
	if c.waiting == nil {
		c.waiting = make(map[uint64]chan *replyWord)
	}
	c.last++
	replies := make(chan *replyWord, 1)
	c.waiting[c.last] = replies
	return c.last, replies
}

// answer passes a reply on. One that nobody waits for is dropped.
func (c *carrier) answer(r *replyWord) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := uint64(r.ID)
	if replies := c.waiting[id]; replies != nil {
		replies <- r
		delete(c.waiting, id)
		c.settle()
	}
}

func (c *carrier) remove(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, id)
	c.settle()
}

// close lets no more requests in, and returns a channel that is closed when none is left.
func (c *carrier) close() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed, c.idle = true, make(chan struct{})
		c.settle()
	}
	return c.idle
}

func (c *carrier) settle() {
	if c.closed && len(c.waiting) == 0 {
		select {
		case <-c.idle:
		default:
			close(c.idle)
		}
	}
}

// carry is the stream's [redirect.Carry].
func (s *ServerStream) carry(ctx context.Context, payload []byte) ([]byte, error) {
	if err := tooLong("request", payload, MaxCallBytes); err != nil {
		return nil, err
	}
	id, replies := s.carrier.add()
	if id == 0 {
		return nil, redirect.ErrNotHere
	}
	defer s.carrier.remove(id)
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
		return replyFromWire(r)
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
		return replyFromWire(r)
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
	case <-s.carrier.close():
	case <-s.over:
	case <-s.written:
	case <-s.ctx.Done():
	case <-timer.C:
	}
}
