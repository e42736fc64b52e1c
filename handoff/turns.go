// SPDX-License-Identifier: Apache-2.0

package handoff

import (
	"container/heap"
	"time"
)

// turns is a heap of members, whoever's turn comes first on top; of several at
// one time, the lowest ID.
type turns []*member

func (t *turns) put(one *member, at time.Time) {
	one.turn = at
	heap.Push(t, one)
}

// remove takes a member out; one that is not in it is left alone.
func (t *turns) remove(one *member) {
	if one.place >= 0 {
		heap.Remove(t, one.place)
	}
}

func (t turns) Len() int { return len(t) }

func (t turns) Less(i, j int) bool {
	if c := t[i].turn.Compare(t[j].turn); c != 0 {
		return c < 0
	}
	return t[i].ID < t[j].ID
}

func (t turns) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].place, t[j].place = i, j
}

// Push is for container/heap.
func (t *turns) Push(x any) {
	one := x.(*member)
	one.place = len(*t)
	*t = append(*t, one)
}

// Pop is for container/heap.
func (t *turns) Pop() any {
	last := len(*t) - 1
	one := (*t)[last]
	(*t)[last] = nil
	*t = (*t)[:last]
	one.place = -1
	return one
}
