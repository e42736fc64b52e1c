// SPDX-License-Identifier: Apache-2.0

package supervisortest

import (
	"net"
	"testing"
	"time"

	"github.com/evenring/evenring/redirect"
)

// Gate is what a gateway's end is started with.
type Gate struct {
	Gateway *redirect.Gateway // that it serves

	// Authorize decides about a stream by the token that its dial has sent; an
	// error ends the stream without a verdict, or with one that does not accept.
	// nil: everybody may, with or without a token. It may be called at once, from
	// any goroutine.
	Authorize func(token string) error
}

// Subject is a transport under examination, made anew for each subtest. Serve
// and Transport are required. What is left at its zero value of the others is
// not examined.
type Subject struct {
	// Serve starts a gateway's end on l, and returns at once. stop ends it as if
	// its process had died, l included, and returns when nothing of it runs any
	// more; it is called once.
	Serve func(t testing.TB, l net.Listener, g Gate) (stop func())

	// Transport makes a supervisor's end. It is asked for a token once for each
	// dial, at the time of the dial; one that knows no credentials leaves token alone.
	Transport func(t testing.TB, token func() string) redirect.Transport

	// Credentials: dials send the token, and gateways look at it.
	Credentials bool

	// Keepalive is the time within which each end finds out by itself that the
	// other has vanished without closing the connection.
	Keepalive time.Duration

	// Heartbeat is the time within which a stream tells the gateway's incarnation again.
	Heartbeat time.Duration

	// Later serves on l, until the test ends, like a gateway of a later version. To
	// any hello it sends, with things in each that today's version does not know:
	// something that is not known as a whole; an Accept, for a reason that is not
	// known; a notice of a kind that is not known; a notice to move, for a reason
	// that is not known and without a target; a notice to end, for
	// [redirect.ReasonStopped]. Then it ends the stream in good order.
	Later func(t testing.TB, l net.Listener)

	// LaterHello dials addr like a supervisor of a later version. It says something
	// that is not known as a whole, and hello, with things in it that are not
	// known, and returns the outcome of the verdict. The stream stays open until
	// the test ends.
	LaterHello func(t testing.TB, addr string, hello redirect.Hello) redirect.Outcome
}

// Run examines a transport in a few subtests, which run side by side. subject is
// called once for each of them; what it needs to tidy up is for t.Cleanup. It
// takes little longer than [Subject.Keepalive].
func Run(t *testing.T, subject func(t testing.TB) Subject) {
	t.Helper()
	able := subject(t)
	for _, tr := range trials {
		if tr.needs != nil && !tr.needs(able) {
			continue
		}
		t.Run(tr.name, func(t *testing.T) {
			t.Parallel()
			tr.run(newExam(t, subject(t), patience))
		})
	}
}

// patience bounds what should happen at once. It is spent only by what is broken.
const patience = 30 * time.Second

// trial is one subtest.
type trial struct {
	name  string
	needs func(Subject) bool // nil: nothing
	run   func(*exam)
}

var trials = []trial{
	{"the other end vanishes", func(s Subject) bool { return s.Keepalive > 0 }, vanish}, // first, for it takes longest
	{"accept", nil, accept},
	{"redirect", nil, redirected},
	{"refusal", nil, refusal},
	{"context", nil, contexts},
	{"silence", nil, silence},
	{"nobody there", nil, nobodyThere},
	{"garbage from the gateway", nil, garbageDown},
	{"garbage to the gateway", nil, garbageUp},
	{"goodbye", nil, goodbye},
	{"loss", nil, loss},
	{"notices", nil, notices},
	{"drain", nil, drain},
	{"late close", nil, lateClose},
	{"many at once", nil, many},
	{"heartbeat", func(s Subject) bool { return s.Heartbeat > 0 }, heartbeat},
	{"credentials", func(s Subject) bool { return s.Credentials }, credentials},
	{"a later gateway", func(s Subject) bool { return s.Later != nil }, laterGateway},
	{"a later supervisor", func(s Subject) bool { return s.LaterHello != nil }, laterSupervisor},
}
