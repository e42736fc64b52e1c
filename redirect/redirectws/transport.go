// SPDX-License-Identifier: Apache-2.0

package redirectws

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"github.com/evenring/evenring/redirect"
)

// Transport dials gateways; it is a [redirect.Transport] whose streams are of
// type [*Stream]. It may be copied and used concurrently.
//
// Every stream has a connection of its own. A balancer that picks per
// connection therefore picks per stream, and a stream that has ended leaves
// nothing behind. A dial connects once: an address that refuses is an error at
// once.
//
// A connection on which nothing has come for 10 s is probed, and given up 5 s
// later.
type Transport struct {
	// TLS secures the connection. nil: see Plaintext. Whoever changes certificates
	// gives it by [tls.Config.GetClientCertificate], which is asked for each dial.
	TLS *tls.Config
	// Plaintext says that TLS is meant to be nil: without either, every dial fails.
	Plaintext bool

	// Header returns what the request that opens a stream carries besides: a token,
	// for one. It is called for each dial, with the dial's context. An error fails the
	// dial. nil: nothing.
	Header func(context.Context) (http.Header, error)

	// HTTP says how connections are made: through which proxy, by which dialler. It
	// is copied; what it says of TLS, of HTTP/2 and of keeping connections is not
	// looked at. nil: a proxy in the environment is used, as net/http does.
	HTTP *http.Transport

	// Payloads is how many payloads are kept for [Stream.Recv]. 0: what the
	// gateway's application sends is thrown away.
	Payloads int

	// Serve answers the requests that callers make of the supervisor, or of the
	// session, at any gateway. It is called in a goroutine of its own for each, up
	// to 1024 at once on one stream. Its error reaches the caller as an [*Error]: as
	// it is, or with status 500 and the text of any other error. The context
	// has the caller's deadline, ends when nobody waits for the answer any more and
	// when the stream has ended, and carries the values of the dial's context.
	// Serve must return soon after that. An answer may have [MaxCallBytes]. nil:
	// requests are turned away, and the caller is told at once.
	Serve func(ctx context.Context, request []byte) ([]byte, error)

	// Linger is how long [Stream.Close] waits for requests that Serve works on. 0: 10 s.
	Linger time.Duration
}

var _ redirect.Transport = Transport{}

// Dial opens a stream to addr, says hello and waits for the verdict, as
// [redirect.Transport] has it. addr is "host:port", with a name or a literal
// address. The values of ctx reach the stream. HTTP redirects are not followed: a
// gateway's verdict says where to go, and credentials go nowhere else. If the gateway ended
// the stream instead, [websocket.CloseStatus] of the error has the code.
func (t Transport) Dial(ctx context.Context, addr string, hello redirect.Hello) (redirect.Verdict, redirect.Stream, error) {
	verdict, stream, err := t.dial(ctx, addr, hello)
	if err != nil {
		if ctx.Err() != nil && !errors.Is(err, context.Cause(ctx)) {
			err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		return redirect.Verdict{}, nil, fmt.Errorf("redirectws: dial %s: %w", addr, err)
	}
	if stream == nil {
		return verdict, nil, nil
	}
	return verdict, stream, nil
}

func (t Transport) dial(ctx context.Context, addr string, hello redirect.Hello) (_ redirect.Verdict, _ *Stream, err error) {
	if t.Payloads < 0 {
		return redirect.Verdict{}, nil, fmt.Errorf("Transport.Payloads is %d; it cannot be below 0", t.Payloads)
	}
	if t.Linger < 0 {
		return redirect.Verdict{}, nil, fmt.Errorf("Transport.Linger is %v; it cannot be below 0", t.Linger)
	}
	hello.Answers = t.Serve != nil
	greeting, err := encodeHello(hello)
	if err != nil {
		return redirect.Verdict{}, nil, err
	}
	l, err := t.connect(ctx, addr)
	if err != nil {
		return redirect.Verdict{}, nil, err
	}
	accepted := false
	defer func() {
		if !accepted {
			l.drop()
		}
	}()
	verdict, err := greet(ctx, l, greeting)
	if err != nil {
		return redirect.Verdict{}, nil, err
	}
	if verdict.Outcome != redirect.Accept {
		return verdict, nil, nil
	}
	accepted = true
	return verdict, t.newStream(ctx, l), nil
}

// connect opens a WebSocket. ctx is for no more than that.
func (t Transport) connect(ctx context.Context, addr string) (*link, error) {
	secure := security{t.TLS, t.Plaintext}
	if err := secure.validate(); err != nil {
		return nil, err
	}
	header, err := headerOf(ctx, t.Header)
	if err != nil {
		return nil, err
	}
	base := t.HTTP
	if base == nil {
		base = &http.Transport{Proxy: http.ProxyFromEnvironment}
	}
	l, scheme := newLink(), secure.scheme("ws")
	carrier := secure.carrier(base)
	carrier.DisableKeepAlives = true // a connection that is no stream is no use
	open := dialler(base)
	// The dial ends with ctx, and so does what net/http does about it in the background.
	carrier.DialContext = func(_ context.Context, network, addr string) (net.Conn, error) {
		conn, err := open(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return l.wire.use(conn)
	}
	l.ws, _, err = websocket.Dial(ctx, scheme+addr+AttachPath, &websocket.DialOptions{ //nolint:bodyclose // Dial has done so
		HTTPClient:     &http.Client{Transport: carrier, CheckRedirect: stayHere},
		HTTPHeader:     header,
		Subprotocols:   []string{Subprotocol},
		OnPingReceived: l.answersPing,
	})
	if err != nil {
		l.wire.cut()
		return nil, err
	}
	if l.ws.Subprotocol() != Subprotocol {
		l.drop()
		return nil, fmt.Errorf("whoever answers there does not speak %s", Subprotocol)
	}
	l.ws.SetReadLimit(maxMessage)
	return l, nil
}

// greet says hello and waits for the verdict. Whatever else comes before it is passed over.
func greet(ctx context.Context, l *link, greeting []byte) (redirect.Verdict, error) {
	unsaid := l.write(ctx, websocket.MessageText, greeting)
	for {
		// It may have been turned away before it had spoken; what it reads says why.
		kind, data, err := l.read(ctx)
		switch {
		case websocket.CloseStatus(err) == websocket.StatusNormalClosure:
			return redirect.Verdict{}, fmt.Errorf("the stream ended without a verdict: %w", io.ErrUnexpectedEOF)
		case err != nil:
			return redirect.Verdict{}, errors.Join(err, unsaid)
		case kind != websocket.MessageText:
			continue
		}
		var w word
		if err := decode(data, &w); err != nil {
			return redirect.Verdict{}, fmt.Errorf("not a word: %w", err)
		}
		if w.Verdict != nil {
			return verdictFromWire(w.Verdict), nil
		}
	}
}
