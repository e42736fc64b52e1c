// SPDX-License-Identifier: Apache-2.0

package supervisortest

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/forward"
)

// Gate is what a gateway's end is started with.
type Gate struct {
	Gateway *redirect.Gateway // that it serves

	// Authorize decides about a stream by the token that its dial has sent; an
	// error ends the stream without a verdict, or with one that does not accept.
	// nil: everybody may, with or without a token. It may be called at once, from
	// any goroutine.
	Authorize func(token string) error

	// Heartbeat is the time between two heartbeats on a stream. 0: as the
	// transport has it by default. See [Subject.Heartbeat].
	Heartbeat time.Duration

	// Serve is the application on each accepted stream, until it returns. Its
	// context ends with the stream; after a goodbye, soon. nil: payloads are
	// thrown away. See [Subject.Payloads].
	Serve func(ctx context.Context, s Payloads) error

	// Calls: callers, and other gateways, may make requests here. nil: nobody
	// may. See [Subject.Caller].
	Calls *Calls
}

// Calls says how requests of callers are treated.
type Calls struct {
	Peers   forward.Peers // over which they are forwarded
	Forward forward.Config
}

// Supervisor is what a supervisor's end is made with.
type Supervisor struct {
	// Token is asked for once for each dial, at the time of the dial. One that
	// knows no credentials leaves it alone.
	Token func() string

	// Answer answers the requests that callers make of the supervisor. nil: it
	// answers none. See [Subject.Caller].
	Answer func(ctx context.Context, request []byte) ([]byte, error)
}

// Payloads is either end of a stream that carries the application's payloads.
type Payloads interface {
	// Send sends a payload, and fails once the stream has ended.
	Send(payload []byte) error
	// Recv blocks until a payload has come. Once all that were sent have been
	// returned, the error is [io.EOF] if the other end has said goodbye, or has
	// ended the stream in good order, and another one otherwise.
	Recv() ([]byte, error)
}

// Peers is the whole of a gateway's link to others.
type Peers interface {
	redirect.Peers
	forward.Peers
}

// Caller makes requests at the gateway at addr. Its errors are a
// [*forward.Error]; [redirect.ErrNotAnswering]; one that is
// [forward.ErrNotSent], if the gateway is not reached, or [redirect.ErrUncertain], if
// the request may have been executed; and any other if the member answers so,
// or if the gateway turns the caller away.
type Caller interface {
	Call(ctx context.Context, addr string, req redirect.Request) ([]byte, error)
}

// Subject is a transport under examination, made anew for each subtest. Serve
// and Transport are required. What is left at its zero value of the others is
// not examined.
type Subject struct {
	// Serve starts a gateway's end on l, and returns at once. stop ends it, l
	// included, and returns when nothing of it runs any more: it lets nobody in,
	// waits until ctx ends for the streams, which have been told to end, and for
	// the calls, and is then as if its process had died. It is called once.
	Serve func(t testing.TB, l net.Listener, g Gate) (stop func(ctx context.Context))

	// Transport makes a supervisor's end.
	Transport func(t testing.TB, s Supervisor) redirect.Transport

	// Peers makes a gateway's link to others, over which it asks them to keep
	// places.
	Peers func(t testing.TB) Peers

	// Caller makes a caller. Requests reach streams, over one hop at most, for
	// which there are Peers too.
	Caller func(t testing.TB) Caller

	// CallBytes is how long a request, or an answer, may be.
	CallBytes int

	// Payloads: streams, and what [Gate.Serve] is called with, carry payloads.
	// Each end keeps ten at least for whoever does not receive them yet.
	Payloads bool

	// Credentials: dials send the token, and gateways look at it.
	Credentials bool

	// Keepalive is the time within which each end finds out by itself that the
	// other has vanished without closing the connection.
	Keepalive time.Duration

	// Heartbeat is the time within which a stream tells the gateway's incarnation
	// again, if nobody says how often.
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
			newExam(t, subject(t), patience).sit(tr)
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

func asks(s Subject) bool     { return s.Peers != nil }
func calls(s Subject) bool    { return s.Peers != nil && s.Caller != nil }
func payloads(s Subject) bool { return s.Payloads }

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
	{"sessions", nil, sessions},
	{"proofs come with heartbeats", func(s Subject) bool { return s.Heartbeat > 0 }, renewal},
	{"asks", asks, asked},
	{"a place is asked for", asks, places},
	{"nobody is sent to a dead gateway", asks, deadGateway},
	{"proofs", asks, proofs},
	{"drain without a gap", asks, noGap},
	{"payloads", payloads, bothWays},
	{"goodbye and loss under an application", payloads, underway},
	{"payloads before the goodbye", payloads, lastWords},
	{"the application ends the stream", payloads, finished},
	{"the application is told of the end", payloads, toldOfTheEnd},
	{"a supervisor that does not read", payloads, deaf},
	{"calls at the wrong gateway", calls, wrongGateway},
	{"calls to a session", calls, sessionCalls},
	{"what a member answers", calls, memberAnswers},
	{"deadlines and cancellations", calls, deadlines},
	{"a stream breaks under a call", calls, brokenCalls},
	{"a gateway is gone", calls, unreachable},
	{"a gateway goes with a call", calls, diesWithCall},
	{"calls while a stream closes", calls, closing},
	{"answers after the end", calls, lateAnswers},
	{"sizes", func(s Subject) bool { return calls(s) && s.CallBytes > 0 }, sizes},
	{"calls survive a drain", calls, survival},
	{"a rolling replacement under calls", calls, rolling},
	{"heartbeat", func(s Subject) bool { return s.Heartbeat > 0 }, heartbeat},
	{"credentials", func(s Subject) bool { return s.Credentials }, credentials},
	{"a later gateway", func(s Subject) bool { return s.Later != nil }, laterGateway},
	{"a later supervisor", func(s Subject) bool { return s.LaterHello != nil }, laterSupervisor},
}
