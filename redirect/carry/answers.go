// SPDX-License-Identifier: Apache-2.0

package carry

import (
	"context"
	"fmt"
	"sync"

	"github.com/evenring/evenring/redirect"
)

// AtOnce is how many requests are answered at the same time on one stream.
const AtOnce = 1024

// ErrTooMany turns a request away: [AtOnce] are being answered. It was not executed.
var ErrTooMany = fmt.Errorf("%d requests are being answered", AtOnce)

// Answers are the requests of one stream that a supervisor's program works on.
// Its fields are set before it is used.
type Answers struct {
	// Serve answers a request, in a goroutine of its own. nil: requests are
	// turned away with [redirect.ErrNotAnswering].
	Serve func(ctx context.Context, payload []byte) ([]byte, error)

	book  book[*task]
	tasks sync.WaitGroup
}

// task is one request.
type task struct {
	cancel   context.CancelFunc
	answered bool // or it is too late
}

// Start answers a request, in a goroutine of its own, which calls reply: with
// what Serve has returned, or why it was turned away, [redirect.ErrNotHere]
// after Close and [ErrTooMany] among the errors. It does not call it once the
// request has been given up, or life, the stream's, has ended: that Serve gave up because of
// that is nobody's answer. ctx is Serve's, and cancel ends it.
func (a *Answers) Start(ctx, life context.Context, cancel context.CancelFunc, id uint64, payload []byte, reply func([]byte, error)) {
	t, err := a.begin(id, cancel)
	a.tasks.Go(func() {
		defer cancel()
		if t == nil {
			reply(nil, err)
			return
		}
		defer a.end(id)
		answer, err := a.Serve(ctx, payload)
		if life.Err() == nil && a.claim(t) {
			reply(answer, err)
		}
	})
}

// begin takes a request; nil: it is turned away, with the error.
func (a *Answers) begin(id uint64, cancel context.CancelFunc) (*task, error) {
	a.book.Lock()
	defer a.book.Unlock()
	switch {
	case a.Serve == nil:
		return nil, redirect.ErrNotAnswering
	case a.book.closed:
		return nil, redirect.ErrNotHere
	case len(a.book.open) >= AtOnce:
		return nil, ErrTooMany
	}
	t := &task{cancel: cancel}
	a.book.enter(id, t)
	return t, nil
}

// claim returns whether t's answer is still wanted. It is so once.
func (a *Answers) claim(t *task) bool {
	a.book.Lock()
	defer a.book.Unlock()
	first := !t.answered
	t.answered = true
	return first
}

func (a *Answers) end(id uint64) {
	a.book.Lock()
	defer a.book.Unlock()
	a.book.remove(id)
}

// Cancel ends the context of a request, whose answer nobody waits for.
func (a *Answers) Cancel(id uint64) {
	a.book.Lock()
	defer a.book.Unlock()
	if t := a.book.open[id]; t != nil {
		t.cancel()
	}
}

// Close turns requests away from now on, and returns a channel that is closed when none is left.
func (a *Answers) Close() <-chan struct{} {
	a.book.Lock()
	defer a.book.Unlock()
	return a.book.close()
}

// GiveUp ends what is running, and returns the numbers of what is left without an answer.
func (a *Answers) GiveUp() []uint64 {
	a.book.Lock()
	defer a.book.Unlock()
	var left []uint64
	for id, t := range a.book.open {
		t.cancel()
		if !t.answered {
			t.answered = true
			left = append(left, id)
		}
	}
	return left
}

// Wait returns once nothing runs for the stream any more. Nothing may be
// started meanwhile.
func (a *Answers) Wait() { a.tasks.Wait() }
