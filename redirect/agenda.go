// SPDX-License-Identifier: Apache-2.0

package redirect

import (
	"container/heap"
	"time"

	"github.com/evenring/evenring/ring"
)

// agenda says whose affairs to look at, and when. What is due there is for the
// reader to find out: an entry whose affair has settled since costs one look.
// The zero value is empty.
type agenda struct{ entries entries }

type entry struct {
	at     time.Time
	member ring.MemberID
}

func (g *agenda) add(at time.Time, m ring.MemberID) { heap.Push(&g.entries, entry{at, m}) }

func (g *agenda) next() (time.Time, bool) {
	if len(g.entries) == 0 {
		return time.Time{}, false
	}
	return g.entries[0].at, true
}

// pop returns the next member that is due.
func (g *agenda) pop(now time.Time) (ring.MemberID, bool) {
	if at, ok := g.next(); !ok || at.After(now) {
		return "", false
	}
	return heap.Pop(&g.entries).(entry).member, true
}

// entries is a min-heap by time, then member, so that its order is the same every time.
type entries []entry

func (e entries) Len() int { return len(e) }
func (e entries) Less(i, j int) bool {
	if !e[i].at.Equal(e[j].at) {
		return e[i].at.Before(e[j].at)
	}
	return e[i].member < e[j].member
}
func (e entries) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *entries) Push(x any)   { *e = append(*e, x.(entry)) }
func (e *entries) Pop() any {
	old := *e
	last := old[len(old)-1]
	*e = old[:len(old)-1]
	return last
}
