// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"sync"

	"github.com/evenring/evenring/placement/roster"
)

// inbox holds the events on their way to the replica, in order. memberlist's
// goroutines fill it, which must not block; one goroutine empties it.
type inbox struct {
	limit int // of the bytes of messages

	mu     sync.Mutex
	events []delivery
	bytes  int
	wake   chan struct{}
}

// delivery is one event and the size of the message that it carries, if it carries one.
type delivery struct {
	event roster.Event
	size  int
}

func newInbox(limit int) *inbox { return &inbox{limit: limit, wake: make(chan struct{}, 1)} }

// put queues the event; false: it is a message, and too many wait.
func (b *inbox) put(ev roster.Event, size int) bool {
	b.mu.Lock()
	fits := size == 0 || b.bytes+size <= b.limit
	if fits {
		b.events = append(b.events, delivery{ev, size})
		b.bytes += size
	}
	b.mu.Unlock()
	if fits {
		signal(b.wake)
	}
	return fits
}

// take empties the inbox. What it has taken still counts until release.
func (b *inbox) take() []delivery {
	b.mu.Lock()
	defer b.mu.Unlock()
	events := b.events
	b.events = nil
	return events
}

func (b *inbox) release(size int) {
	b.mu.Lock()
	b.bytes -= size
	b.mu.Unlock()
}

// signal wakes whoever waits on c, or the next who will.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
