// SPDX-License-Identifier: Apache-2.0

package carry

// Requests are those on one stream that are without an answer, at the
// gateway's end. The zero value is ready.
type Requests struct {
	book book[chan Reply] // each has room for one
	last uint64
}

// Reply is what came back: an answer, or an error as [redirect.Carry] has it.
type Reply struct {
	Payload []byte
	Err     error
}

// Add takes one more request, and returns its number, from 1 on, and where its
// reply comes; 0: the stream takes no more. A Remove must follow.
func (r *Requests) Add() (id uint64, reply <-chan Reply) {
	r.book.Lock()
	defer r.book.Unlock()
	if r.book.closed {
		return 0, nil
	}
	r.last++
	replies := make(chan Reply, 1)
	r.book.enter(r.last, replies)
	return r.last, replies
}

// Answer passes a reply on. One that nobody waits for is dropped.
func (r *Requests) Answer(id uint64, reply Reply) {
	r.book.Lock()
	defer r.book.Unlock()
	if replies := r.book.open[id]; replies != nil {
		replies <- reply
		r.book.remove(id)
	}
}

// Remove says that nobody waits for the reply any more. One that has its reply
// is not there any more, and that is no harm.
func (r *Requests) Remove(id uint64) {
	r.book.Lock()
	defer r.book.Unlock()
	r.book.remove(id)
}

// Close lets no more requests in, and returns a channel that is closed when none is left.
func (r *Requests) Close() <-chan struct{} {
	r.book.Lock()
	defer r.book.Unlock()
	return r.book.close()
}
