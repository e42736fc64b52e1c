// SPDX-License-Identifier: Apache-2.0

package redirectws

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/forward"
)

// Caller makes requests of supervisors and sessions, through any gateway. It keeps
// connections. Its fields must not be changed after the first Call. It must not be
// copied after that, and may be used concurrently.
type Caller struct {
	// TLS secures the connections. nil: see Plaintext.
	TLS *tls.Config
	// Plaintext says that TLS is meant to be nil: without either, every call fails.
	Plaintext bool

	// Header returns what each request carries besides: a token, for one. An error
	// fails the request, which is then not sent. nil: nothing.
	Header func(context.Context) (http.Header, error)

	// HTTP says how connections are made, as in [Transport]. nil: a proxy in the
	// environment is used, as net/http does.
	HTTP *http.Transport

	poster poster
}

// Call makes one request at the gateway at addr, "host:port", and returns the
// member's answer. Errors are those of [forward.Call], of another process: a
// [*forward.Error], with the reason; [redirect.ErrNotAnswering]; and an [*Error] if the
// member answers so, or if the gateway turns the caller away. If the gateway itself is not reached, the
// error wraps [forward.ErrNotSent], and [redirect.ErrUncertain] if the request may
// have been executed. The gateway is told how long ctx has left, and gives up with it.
func (c *Caller) Call(ctx context.Context, addr string, req redirect.Request) ([]byte, error) {
	fail := func(kind, err error) error { return fmt.Errorf("redirectws: call at %s: %w: %w", addr, kind, err) }
	if err := tooLong("request", req.Payload, MaxCallBytes); err != nil {
		return nil, err
	}
	body, err := encodeCall(req, time.Duration(timeLeft(ctx)))
	if err != nil {
		return nil, fail(forward.ErrNotSent, err)
	}
	base := cmp.Or(c.HTTP, &http.Transport{Proxy: http.ProxyFromEnvironment})
	status, data, sent, err := c.poster.post(ctx, security{c.TLS, c.Plaintext}, base, c.Header, letter{to: addr + CallPath, body: body})
	switch {
	case err == nil:
		return answerOf(req, status, data)
	case ctx.Err() != nil && sent:
		return nil, &forward.Error{Reason: forward.Stopped, Member: req.Member, Session: req.Session, Err: ctx.Err()}
	case sent:
		return nil, fail(redirect.ErrUncertain, err)
	default:
		return nil, fail(forward.ErrNotSent, err)
	}
}

// answerOf reads what a gateway tells a caller.
func answerOf(req redirect.Request, status int, data []byte) ([]byte, error) {
	var reply replyWord
	if err := decode(data, &reply); err != nil || reply.Outcome == wireRefused || reply.Outcome == "" {
		return nil, turnedAway(status, data)
	}
	for _, r := range forward.Reasons() {
		if r.String() == reply.Outcome && r != forward.None && r != forward.Done {
			failed := &forward.Error{Reason: r, Member: req.Member, Session: req.Session}
			if reply.Message != "" {
				failed.Err = errors.New(reply.Message)
			}
			return nil, failed
		}
	}
	return replyFromWire(&reply)
}

// Close ends every connection; what is going on fails. It returns nil, and may be
// called more than once.
func (c *Caller) Close() error {
	c.poster.close()
	return nil
}
