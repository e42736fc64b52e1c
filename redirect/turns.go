// SPDX-License-Identifier: Apache-2.0

package redirect

import "slices"

// queuePerSearch is how many must wait for one more search to run beside the others.
const queuePerSearch = 64

// turns lets searches ask one after the other, more than one at a time only
// while many wait. Each answer makes the next question better: a burst that
// asks all at once, about counts that nobody has yet, ends less even by far.
// The zero value is empty.
type turns struct {
	queue     []*Admitting
	running   int
	newcomers int // of those that wait: nobody else counts them yet
}

// enter queues p.
func (t *turns) enter(p *Admitting) {
	t.queue = append(t.queue, p)
	if p.newcomer {
		t.newcomers++
	}
}

// next takes the first that waits, if its turn has come; otherwise nil.
func (t *turns) next() *Admitting {
	if len(t.queue) == 0 || t.running > len(t.queue)/queuePerSearch {
		return nil
	}
	p := t.queue[0]
	t.queue[0] = nil
	t.queue = t.queue[1:]
	p.running = true
	t.running++
	if p.newcomer {
		t.newcomers--
	}
	return p
}

// settle marks those that have to wait, so that whoever brought them is told of their turn.
func (t *turns) settle() {
	for i := len(t.queue) - 1; i >= 0 && !t.queue[i].waited; i-- {
		t.queue[i].waited = true
	}
}

// leave takes p out, wherever it is.
func (t *turns) leave(p *Admitting) {
	if p.running {
		p.running = false
		t.running--
		return
	}
	if i := slices.Index(t.queue, p); i >= 0 {
		t.queue = slices.Delete(t.queue, i, i+1)
		if p.newcomer {
			t.newcomers--
		}
	}
}
