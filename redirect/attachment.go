// SPDX-License-Identifier: Apache-2.0

package redirect

import (
	"sync/atomic"
	"time"

	"github.com/evenring/evenring/ring"
)

// noticeBuffer is how many notices wait for a slow stream; the oldest give way.
const noticeBuffer = 4

// Attachment is an accepted stream, seen from the gateway's side.
type Attachment struct {
	gateway *Gateway
	key     Key
	notices chan Notice
	answers bool          // it said that it answers requests
	member  ring.MemberID // shown proofs; empty: it needs none
	renewal atomic.Int64  // when that is to be made anew, in Unix milliseconds
	ready   chan struct{} // closed: carry is set, or the stream is over

	// Under the gateway's lock.
	over  bool
	carry Carry
}

func newAttachment(g *Gateway, p *Admitting) *Attachment {
	t := &Attachment{
		gateway: g, key: p.Key, notices: make(chan Notice, noticeBuffer), answers: p.hello.Answers, ready: make(chan struct{}),
	}
	if len(p.Verdict.Proof) > 0 {
		t.member = p.hello.Member
		t.renewal.Store(g.cfg.Proofs.renewal(time.Now()).UnixMilli())
	}
	return t
}

// Heartbeat is what the transport says on the stream every few seconds: which
// start of which gateway is at the other end. Now and then a proof comes with
// it, so that a supervisor whose stream is older than [Proofs].Home can still
// show one: whatever is returned is to be sent. It takes no lock of the gateway's.
func (t *Attachment) Heartbeat() Notice {
	n := Notice{Kind: NoticeHeartbeat, Gateway: t.gateway.cfg.Gateway, Incarnation: t.gateway.cfg.Incarnation}
	if t.member == "" {
		return n
	}
	now, due := time.Now(), t.renewal.Load()
	if now.UnixMilli() >= due && t.renewal.CompareAndSwap(due, t.gateway.cfg.Proofs.renewal(now).UnixMilli()) {
		n.Proof = t.gateway.cfg.Proofs.kept(now, t.member, n.Gateway, n.Incarnation)
	}
	return n
}

// Notices is what the stream is to be told. The channel closes after a notice
// of kind NoticeEnd, upon which the transport ends the stream, and after
// Leave. A stream too slow to take its notices loses the oldest.
func (t *Attachment) Notices() <-chan Notice { return t.notices }

// Leave says that the stream has ended. Clean: the supervisor said goodbye;
// otherwise it is expected back. Further calls change nothing.
func (t *Attachment) Leave(clean bool) {
	t.gateway.do(func(now time.Time, a *Admission) {
		a.Leave(now, t.key, clean)
		delete(t.gateway.streams, t.key)
		t.finish()
	})
}

// tell queues a notice. Called under the gateway's lock, as finish is.
func (t *Attachment) tell(n Notice) {
	for !t.over {
		select {
		case t.notices <- n:
			if n.Kind == NoticeEnd {
				t.finish()
			}
			return
		default:
		}
		select {
		case <-t.notices:
		default:
		}
	}
}

func (t *Attachment) finish() {
	if t.over {
		return
	}
	t.over = true
	close(t.notices)
	if t.carry == nil {
		close(t.ready)
	}
	t.gateway.routes.stir()
}
