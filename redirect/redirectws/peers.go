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

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/forward"
)

// Peers asks other gateways to keep a place, and forwards calls to them; it is a
// [redirect.Peers] and a [forward.Peers]. It keeps connections, and dials one when
// there is none to use. One over which an ask ran out of time is given up, so
// that the next ask finds out anew: a target that refuses connections is an error at
// once, and one that is back answers at once. One that was not used for 90 s is
// given up too.
//
// Its fields must not be changed after the first Ask. It must not be copied
// after that, and may be used concurrently.
type Peers struct {
	// TLS secures the connections. nil: see Plaintext.
	TLS *tls.Config
	// Plaintext says that TLS is meant to be nil: without either, every ask fails.
	Plaintext bool

	// Header returns what each request carries besides: a token, for one. An error
	// fails the request, which is then not sent. nil: nothing.
	Header func(context.Context) (http.Header, error)

	// HTTP says how connections are made, as in [Transport]. nil: directly; no proxy is used.
	HTTP *http.Transport

	poster poster
}

var (
	_ redirect.Peers = (*Peers)(nil)
	_ forward.Peers  = (*Peers)(nil)
)

var errNoEndpoint = errors.New("it has no endpoint")

// Ask puts the question to the gateway at to.Endpoint. An answer by anybody but
// to.ID is an error, for addresses are used again. After Close it fails.
func (p *Peers) Ask(ctx context.Context, to placement.Gateway, q placement.Question) (placement.Answer, error) {
	answer, err := p.ask(ctx, to, q)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		return placement.Answer{}, fmt.Errorf("redirectws: ask %s at %q: %w", to.ID, to.Endpoint, err)
	}
	return answer, nil
}

func (p *Peers) ask(ctx context.Context, to placement.Gateway, q placement.Question) (placement.Answer, error) {
	body, err := encodeQuestion(q)
	if err != nil {
		return placement.Answer{}, err
	}
	// A place that is kept is kept once, however often it is asked for.
	status, data, _, err := p.post(ctx, to.Endpoint, AskPath, body, true)
	if err != nil {
		return placement.Answer{}, err
	}
	if status != http.StatusOK {
		return placement.Answer{}, turnedAway(status, data)
	}
	var w answerWord
	if err := decode(data, &w); err != nil {
		return placement.Answer{}, err
	}
	answer := answerFromWire(&w)
	if answer.Gateway != to.ID {
		return placement.Answer{}, fmt.Errorf("%s answers there", answer.Gateway)
	}
	return answer, nil
}

// Forward hands a request to the gateway at to.Endpoint and returns what came
// of it, as [forward.Peers] has it. An error of HTTP's own is
// [forward.ErrNotSent] if nothing of the request can have been taken there, and
// [redirect.ErrUncertain] otherwise.
func (p *Peers) Forward(ctx context.Context, to placement.Gateway, req redirect.Request) ([]byte, error) {
	fail := func(kind, err error) error {
		return fmt.Errorf("redirectws: forward to %s at %q: %w: %w", to.ID, to.Endpoint, kind, err)
	}
	if err := tooLong("request", req.Payload, MaxCallBytes); err != nil {
		return nil, err
	}
	body, err := encodeCall(req, time.Duration(timeLeft(ctx)))
	if err != nil {
		return nil, fail(forward.ErrNotSent, err)
	}
	status, data, sent, err := p.post(ctx, to.Endpoint, ForwardPath, body, false)
	var reply replyWord
	switch {
	case err == nil && status == http.StatusOK:
		if err = decode(data, &reply); err != nil {
			return nil, fail(redirect.ErrUncertain, err)
		}
		return replyFromWire(&reply)
	case err == nil && unread(status):
		return nil, fail(forward.ErrNotSent, turnedAway(status, data))
	case err == nil:
		return nil, fail(redirect.ErrUncertain, turnedAway(status, data))
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case !sent:
		return nil, fail(forward.ErrNotSent, err)
	default:
		return nil, fail(redirect.ErrUncertain, err)
	}
}

// unread reports whether a gateway, or whoever stands before it, has turned a
// request away before looking at it. Nobody answers so who has.
func unread(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusNotImplemented:
		return true
	}
	return false
}

// turnedAway is the error behind a status.
func turnedAway(status int, data []byte) error {
	var reply replyWord
	if decode(data, &reply) != nil || reply.Message == "" {
		reply.Message = clip(string(data), maxErrorText)
	}
	return &Error{status, reply.Message}
}

// Close ends every connection; what is going on fails. It returns nil, and may be
// called more than once.
func (p *Peers) Close() error {
	p.poster.close()
	return nil
}

func (p *Peers) post(ctx context.Context, endpoint, path string, body []byte, again bool) (int, []byte, bool, error) {
	if endpoint == "" {
		return 0, nil, false, errNoEndpoint
	}
	return p.poster.post(ctx, security{p.TLS, p.Plaintext}, cmp.Or(p.HTTP, &http.Transport{}), p.Header, letter{
		to: endpoint + path, body: body, again: again,
	})
}
