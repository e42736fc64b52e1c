// SPDX-License-Identifier: Apache-2.0

// Package supervisortest puts a [redirect.Transport], and the gateway's end that
// belongs to it, through its paces, as testing/fstest does for file systems. It
// belongs into the tests of whoever writes a transport:
//
//	func TestTransport(t *testing.T) {
//		supervisortest.Run(t, func(t testing.TB) supervisortest.Subject {
//			return supervisortest.Subject{
//				Serve: func(t testing.TB, l net.Listener, g supervisortest.Gate) (stop func()) {
//					server := newServer(g.Gateway, g.Authorize)
//					go server.Serve(l)
//					return server.Close
//				},
//				Transport: func(_ testing.TB, token func() string) redirect.Transport {
//					return dialer{token: token}
//				},
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
// Between the two ends the examiner cuts connections, and lets them fall silent.
// It answers as no gateway does, and speaks to the gateway as no supervisor does:
// that must end in an error, and do no harm to others. What words of a later version
// look like only the transport knows; see [Subject.Later] and [Subject.LaterHello].
//
// Whether goroutines are left behind is for [go.uber.org/goleak] to say, in the
// same tests; the examiner sees only whether connections are.
package supervisortest
