// SPDX-License-Identifier: Apache-2.0

// Package supervisortest puts a [redirect.Transport], and the gateway's end that
// belongs to it, through its paces, as testing/fstest does for file systems. It
// belongs into the tests of whoever writes a transport:
//
//	func TestTransport(t *testing.T) {
//		supervisortest.Run(t, func(t testing.TB) supervisortest.Subject {
//			return supervisortest.Subject{
//				Serve: func(t testing.TB, l net.Listener, g supervisortest.Gate) (stop func(context.Context)) {
//					server := newServer(g)
//					go server.Serve(l)
//					return server.Shutdown
//				},
//				Transport: func(_ testing.TB, s supervisortest.Supervisor) redirect.Transport {
//					return dialer{token: s.Token, answer: s.Answer}
//				},
//				Peers:       func(t testing.TB) supervisortest.Peers { return newPeers(t) },
//				Caller:      func(t testing.TB) supervisortest.Caller { return newCaller(t) },
//				CallBytes:   1 << 20,
//				Payloads:    true,
//				Credentials: true,
//				Keepalive:   15 * time.Second,
//			}
//		})
//	}
//
// # What is examined
//
// Real gateways, of package redirect, serve at real addresses on loopback, and
// streams to them are dialled. What a gateway hears must be what was said, and
// what it answers must arrive: an accept, a redirect, a refusal and how long it
// is for, and every notice, in order. A dial must end with its context, must not
// outlive it, and must not bring it into the stream. A goodbye is not a loss, and a
// loss is not a goodbye. A stream that a newer one has replaced may close when it
// likes.
//
// Whoever has a link between gateways is examined for what it is there for: a place is asked for
// before anybody is sent to it, nobody is sent to the dead, proofs come along. Real supervisors and
// sessions run over the transport while a gateway drains, and none is without a stream.
//
// Streams that carry payloads must deliver what was sent before a goodbye, or before the
// application returned, and tell the application which end it was. A supervisor that reads
// nothing must not keep a stream that is to end.
//
// Calls must reach a member at whichever gateway they are made, and bring back what it answers. What became of
// one without an answer must be said as it is: it was not sent, it may have been executed, nobody has the
// member, or nobody is known to have it. Its deadline and its being given up must reach the member. It is
// executed once, while streams break, close and move, gateways die, and all of them are replaced one after the other.
//
// Between the two ends the examiner cuts connections, and lets them fall silent.
// It answers as no gateway does, and speaks to the gateway as no supervisor does:
// that must end in an error, and do no harm to others. What words of a later version
// look like only the transport knows; see [Subject.Later] and [Subject.LaterHello].
//
// Whether goroutines are left behind is for [go.uber.org/goleak] to say, in the
// same tests; the examiner sees only whether connections are.
package supervisortest
