// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"sync"
	"time"

	"github.com/evenring/evenring/ring"
)

// Book places members and keeps a place for each until it shows up: a [View]
// and a [Ledger] that any number of goroutines use at once. It is for gateways
// whose admission is their own; redirect.Gateway needs none. Make one with [NewBook].
type Book struct {
	mu     sync.Mutex
	view   *View
	ledger Ledger
	live   int // without those promised
}

// NewBook returns a book on this picture. Live is without those that the book is going to promise.
func NewBook(p Picture) *Book {
	b := &Book{view: NewView(p)}
	b.live = b.view.live
	b.ledger.Bind(b.view)
	return b
}

// Reserve decides where the member belongs and keeps the place until [Book.End] or
// [Book.Expire]; it counts meanwhile for the gateway and, if it is a newcomer, among the live, as often as there are rivals. One member has one place: who is
// placed again gives it up first, and its walk begins there unless r.Prefer says where, so that it keeps it while there is room. Nothing is kept if the decision is Nowhere.
func (b *Book) Reserve(r Request, expires time.Time) (d Decision) {
	b.mu.Lock()
	if p := b.ledger.promises[r.Member]; p != nil {
		if r.Prefer == "" {
			r.Prefer = p.gateway
		}
		b.ledger.end(r.Member, p)
	}
	b.count()
	if at := b.view.place(&r, &d); at >= 0 {
		b.ledger.put(r.Member, at, d.Gateway, r.Home == "", expires)
	}
	b.mu.Unlock()
	return d
}

// End gives up the place that is kept for the member: it has shown up, or will
// not. It reports whether there was one.
func (b *Book) End(m ring.MemberID) bool {
	b.mu.Lock()
	ended := b.ledger.Settle(m)
	b.mu.Unlock()
	return ended
}

// Expire gives up every place whose time has come, and returns how many.
// It looks at all of them: call it now and then.
func (b *Book) Expire(now time.Time) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for m := range b.ledger.promises {
		if b.ledger.Expire(m, now) {
			n++
		}
	}
	return n
}

// Set takes newer facts of one gateway; see [View.Set].
func (b *Book) Set(g Gateway) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.view.Set(g)
}

// SetLive tells how many supervisors are live now, those promised left out.
func (b *Book) SetLive(live int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.live = live
}

// SetRivals tells how many gateways place from pictures like this one now; see [Picture].
func (b *Book) SetRivals(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.view.SetRivals(n)
}

// View returns a view of its own that shows what the book shows now.
func (b *Book) View() *View {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count()
	return b.view.Clone()
}

// count brings the live up to date, before anybody looks.
func (b *Book) count() { b.view.SetLive(b.live + b.view.rivals*b.ledger.newcomers) }
