// SPDX-License-Identifier: Apache-2.0

package redirectws

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// postIdle is how long a connection that nobody uses is kept. A gateway that stops closes
	// it, and a request that goes out at that moment is lost, maybe executed; so
	// this is shorter than any drain.
	postIdle    = 2 * time.Second
	postConns   = 64              // connections kept, at one address
	dialTimeout = 5 * time.Second // for a connection, even if nobody waits for it any more
)

var errSecurity = errors.New("set TLS, or Plaintext: one of the two")

// security is how connections are secured.
type security struct {
	tls       *tls.Config
	plaintext bool
}

func (s security) validate() error {
	if s.plaintext == (s.tls != nil) {
		return errSecurity
	}
	return nil
}

// scheme returns the URL's, "ws" or "http", as far as the host.
func (s security) scheme(of string) string {
	if s.plaintext {
		return of + "://"
	}
	return of + "s://"
}

// carrier returns what makes connections as base does, secured.
func (s security) carrier(base *http.Transport) *http.Transport {
	t := base.Clone()
	t.TLSClientConfig = s.tls.Clone()
	t.DialTLSContext = nil
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true) // one connection for each thing that is under way
	t.TLSHandshakeTimeout = dialTimeout
	return t
}

func dialler(base *http.Transport) func(context.Context, string, string) (net.Conn, error) {
	if base.DialContext != nil {
		return base.DialContext
	}
	return new(net.Dialer).DialContext
}

// stayHere keeps a client from going where an answer sends it.
func stayHere(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// headerOf returns what ask returns, never nil.
func headerOf(ctx context.Context, ask func(context.Context) (http.Header, error)) (http.Header, error) {
	if ask == nil {
		return http.Header{}, nil
	}
	header, err := ask(ctx)
	if err != nil {
		return nil, fmt.Errorf("the header: %w", err)
	}
	if header == nil {
		return http.Header{}, nil
	}
	return header.Clone(), nil
}

var errPosterClosed = errors.New("it is closed")

// poster posts words and keeps connections. The zero value is ready.
type poster struct {
	mu     sync.Mutex
	client *http.Client
	life   context.Context
	end    context.CancelFunc
	closed bool
}

// open returns the client and what bounds all that it does, which the first one makes.
func (p *poster) open(secure security, base *http.Transport) (*http.Client, context.Context, error) {
	if err := secure.validate(); err != nil {
		return nil, nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, errPosterClosed
	}
	if p.client == nil {
		p.life, p.end = context.WithCancel(context.Background())
		life, dial := p.life, dialler(base)
		carrier := secure.carrier(base)
		carrier.DisableKeepAlives = false
		carrier.MaxIdleConnsPerHost, carrier.IdleConnTimeout = postConns, postIdle
		carrier.DialContext = func(_ context.Context, network, addr string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(life, dialTimeout)
			defer cancel()
			return dial(ctx, network, addr)
		}
		p.client = &http.Client{Transport: carrier, CheckRedirect: stayHere}
	}
	return p.client, p.life, nil
}

// close ends what is under way.
func (p *poster) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.client != nil {
		p.end()
		p.client.CloseIdleConnections()
	}
}

// letter is one thing to post.
type letter struct {
	to    string // host, port and path
	body  []byte
	again bool // posting it twice does no harm
}

// post sends a letter and returns the answer's status and body. sent says whether
// the other end may have heard of it.
func (p *poster) post(ctx context.Context, secure security, base *http.Transport, header func(context.Context) (http.Header, error), m letter) (status int, body []byte, sent bool, err error) {
	client, life, err := p.open(secure, base)
	if err != nil {
		return 0, nil, false, err
	}
	given, err := headerOf(ctx, header)
	if err != nil {
		return 0, nil, false, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(life, func() { cancel(errPosterClosed) })()
	var begun atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		// A second connection is used only if the first has certainly carried nothing.
		GotConn:          func(httptrace.GotConnInfo) { begun.Store(m.again && begun.Load()) },
		WroteHeaderField: func(string, []string) { begun.Store(true) },
	})
	r, err := http.NewRequestWithContext(traced, http.MethodPost, secure.scheme("http")+m.to, bytes.NewReader(m.body))
	if err != nil {
		return 0, nil, false, err
	}
	r.Header = given
	r.Header.Set("Content-Type", contentType)
	if m.again {
		r.Header["X-Idempotency-Key"] = nil // it stays here; net/http then tries again after a connection that was stale
	}
	answer, err := client.Do(r)
	if err != nil {
		return 0, nil, begun.Load(), err
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(http.MaxBytesReader(nil, answer.Body, maxMessage))
	if err != nil {
		return answer.StatusCode, nil, true, err
	}
	return answer.StatusCode, body, true, nil
}

const contentType = "application/json"

// take reads a posted word into w; false: it has been answered already.
func take(w http.ResponseWriter, r *http.Request, into any) bool {
	// A browser asks before it sends a page's JSON elsewhere, and nobody here says yes.
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); !strings.EqualFold(strings.TrimSpace(kind), contentType) {
		turnAway(w, http.StatusUnsupportedMediaType, "the content must be "+contentType)
		return false
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessage))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		turnAway(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("it may have %d bytes", tooLarge.Limit))
		return false
	case err != nil:
		turnAway(w, http.StatusBadRequest, err.Error())
		return false
	}
	if err := decode(data, into); err != nil {
		turnAway(w, http.StatusBadRequest, "not a word: "+err.Error())
		return false
	}
	return true
}

// turnAway answers what was not looked at.
func turnAway(w http.ResponseWriter, status int, text string) {
	data, err := encode(&replyWord{Outcome: wireRefused, Message: clip(text, maxErrorText)})
	give(w, status, data, err)
}

// give answers with a word, or with why there is none.
func give(w http.ResponseWriter, status int, data []byte, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(data) // who is not there any more does not read it
}
