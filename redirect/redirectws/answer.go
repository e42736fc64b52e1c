// SPDX-License-Identifier: Apache-2.0

package redirectws

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/evenring/evenring/redirect"
)

const (
	// DefaultLinger is the default of [Transport.Linger].
	DefaultLinger = 10 * time.Second

	answersAtOnce = 1024 // on one stream
)

// answers is the requests that a stream's program works on.
type answers struct {
	serve func(context.Context, []byte) ([]byte, error) // nil: it answers none
	tasks sync.WaitGroup

	mu      sync.Mutex
	running map[uint64]*task
	closed  bool
	idle    chan struct{} // closed: none is left, and none comes any more
}

// task is one request.
type task struct {
	cancel   context.CancelFunc
	answered bool // or it is too late
}

// begin takes a request; nil: it is turned away, with the error.
func (a *answers) begin(id uint64, cancel context.CancelFunc) (*task, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.serve == nil:
		return nil, redirect.ErrNotAnswering
	case a.closed:
		return nil, redirect.ErrNotHere
	case len(a.running) >= answersAtOnce:
		return nil, errorf(http.StatusTooManyRequests, "%d requests are being answered", answersAtOnce)
	}
	if a.running == nil {
		a.running = make(map[uint64]*task)
	}
	t := &task{cancel: cancel}
	a.running[id] = t
	return t, nil
}

// claim returns whether t's answer is still wanted. It is so once.
func (a *answers) claim(t *task) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	first := !t.answered
	t.answered = true
	return first
}

func (a *answers) end(id uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.running, id)
	a.settle()
}

func (a *answers) cancel(id uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if t := a.running[id]; t != nil {
		t.cancel()
	}
}

// close turns requests away from now on, and returns a channel that is closed when none is left.
func (a *answers) close() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.closed, a.idle = true, make(chan struct{})
		a.settle()
	}
	return a.idle
}

func (a *answers) settle() {
	if a.closed && len(a.running) == 0 {
		select {
		case <-a.idle:
		default:
			close(a.idle)
		}
	}
}

// giveUp ends what is running, and returns the IDs of what is left without an answer.
func (a *answers) giveUp() []uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	var left []uint64
	for id, t := range a.running {
		t.cancel()
		if !t.answered {
			t.answered = true
			left = append(left, id)
		}
	}
	return left
}

// gotRequest answers a request, in a goroutine of its own.
func (s *Stream) gotRequest(r *requestWord) {
	ctx, cancel := bounded(s.life, r.Timeout)
	id, payload := uint64(r.ID), some(r.Payload)
	t, err := s.answers.begin(id, cancel)
	s.answers.tasks.Go(func() {
		defer cancel()
		if t == nil {
			s.reply(id, nil, err)
			return
		}
		defer s.answers.end(id)
		answer, err := s.answers.serve(ctx, payload)
		if err == nil {
			err = tooLong("answer", answer, MaxCallBytes)
		}
		// That it gave up because the stream has ended is nobody's answer.
		if s.life.Err() == nil && s.answers.claim(t) {
			s.reply(id, answer, err)
		}
	})
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
	idle := s.answers.close()
	timer := time.NewTimer(s.linger)
	defer timer.Stop()
	select {
	case <-idle:
	case <-s.ended:
	case <-timer.C:
	}
}
