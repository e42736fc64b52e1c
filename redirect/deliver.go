// SPDX-License-Identifier: Apache-2.0

package redirect

import (
	"context"
	"errors"
	"time"

	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/ring"
)

// Request is what a caller wants of a supervisor, or of a child session of one.
type Request struct {
	Member     ring.MemberID // required
	Session    SessionID     // empty: the supervisor itself
	Payload    []byte        // the application's; not to be changed any more
	Idempotent bool          // executing it twice does no harm
}

// What may become of a request other than an answer; [ErrNotHere] is one more:
// it was not executed, and somebody else may have the member. Any other error is the
// supervisor's answer.
var (
	// ErrNotAnswering: the member's program answers no requests. It was not executed.
	ErrNotAnswering = errors.New("redirect: that member answers no requests")
	// ErrUncertain: it may have been executed; the answer, if there was one, is lost.
	ErrUncertain = errors.New("redirect: the answer is lost, and the request may have been executed")
)

// Carry gives a request's payload to the other end of one stream, waits for the
// answer and returns it. Its errors are those of [Gateway.Deliver]. If ctx ends
// it returns an error soon. It is called from many goroutines at once, and may
// be called for a while after the stream has ended.
type Carry func(ctx context.Context, payload []byte) ([]byte, error)

// Carry says how requests reach the other end of the stream. A transport calls
// it once, for a stream whose hello said that it answers; requests wait for it. The first may come
// at once, and must not overtake the verdict.
func (t *Attachment) Carry(carry Carry) {
	t.gateway.mu.Lock()
	defer t.gateway.mu.Unlock()
	if !t.over && t.carry == nil {
		t.carry = carry
		close(t.ready)
	}
}

// Route returns where a request for m goes, or for its session s if that is not
// empty, as [Admission.Route] has it, and a channel that is closed once that
// may have changed. A stream that has been told to end takes no request.
func (g *Gateway) Route(m ring.MemberID, s SessionID) (route roster.Route, changed <-chan struct{}) {
	g.do(func(now time.Time, a *Admission) {
		t := g.streams[a.stream(m, s)]
		route = a.route(now, m, s, t != nil && !t.over)
		changed = g.routes.changed()
	})
	return route, changed
}

// Deliver gives a request to its stream here and returns the answer. Errors:
// [ErrNotHere], [ErrNotAnswering], [ErrUncertain], ctx's, and whatever the
// supervisor answered with. It does not look elsewhere; package forward does.
func (g *Gateway) Deliver(ctx context.Context, req Request) ([]byte, error) {
	var t *Attachment
	g.do(func(_ time.Time, a *Admission) { t = g.streams[a.stream(req.Member, req.Session)] })
	switch {
	case t == nil:
		return nil, ErrNotHere
	case !t.answers:
		return nil, ErrNotAnswering
	}
	select {
	case <-t.ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	g.mu.Lock()
	carry, over := t.carry, t.over
	g.mu.Unlock()
	if over {
		return nil, ErrNotHere
	}
	return carry(ctx, req.Payload)
}

// routes tells those who wait for a route that it may have changed. It belongs
// to the gateway's lock.
type routes struct {
	version uint64 // of the roster, when it was last looked at
	stirred bool   // a stream has come or gone since
	waiting chan struct{}
}

// changed returns a channel that is closed with the next change.
func (r *routes) changed() <-chan struct{} {
	if r.waiting == nil {
		r.waiting = make(chan struct{})
	}
	return r.waiting
}

// stir says that a stream has come or gone.
func (r *routes) stir() { r.stirred = true }

// notify is called after every change of anything.
func (r *routes) notify(version uint64) {
	if !r.stirred && version == r.version {
		return
	}
	r.version, r.stirred = version, false
	if r.waiting != nil {
		close(r.waiting)
		r.waiting = nil
	}
}
