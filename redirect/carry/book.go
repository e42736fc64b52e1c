// SPDX-License-Identifier: Apache-2.0

package carry

import "sync"

// book is what is open on a stream, by the number of its request. Every
// method is called under the lock.
type book[T any] struct {
	sync.Mutex
	open   map[uint64]T
	closed bool
	idle   chan struct{} // closed: nothing is open, and nothing comes any more
	rests  bool          // idle is closed
}

func (b *book[T]) enter(id uint64, entry T) {
	if b.open == nil {
		b.open = make(map[uint64]T)
	}
	b.open[id] = entry
}

func (b *book[T]) remove(id uint64) {
	delete(b.open, id)
	b.settle()
}

// close lets nothing more in, and returns a channel that is closed when nothing is open.
func (b *book[T]) close() <-chan struct{} {
	if !b.closed {
		b.closed, b.idle = true, make(chan struct{})
		b.settle()
	}
	return b.idle
}

func (b *book[T]) settle() {
	if b.closed && !b.rests && len(b.open) == 0 {
		b.rests = true
		close(b.idle)
	}
}
