// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// proxy stands between a discovery and an API server, whichever that is, and
// does what networks and servers do.
type proxy struct {
	t       *testing.T
	origin  *rest.Config
	forward *httputil.ReverseProxy
	addr    string
	tls     *tls.Config
	ca      []byte

	mu       sync.Mutex
	server   *http.Server // nil: nobody listens
	serving  sync.WaitGroup
	gate     chan struct{}   // requests wait until it is closed
	streams  context.Context // ends when streams are to break
	cut      context.CancelFunc
	endings  context.Context // ends when streams are to end
	end      context.CancelFunc
	lists    bool // lists cannot be streamed
	expired  bool // versions are too old, until somebody asks for the newest
	requests []request
}

// request is what a proxy has been asked.
type request struct {
	watch    bool
	streamed bool // a watch that begins with a list
	version  string
}

// newProxy listens until the test ends.
func newProxy(t *testing.T, origin *rest.Config) *proxy {
	t.Helper()
	target, err := url.Parse(origin.Host)
	require.NoError(t, err)
	// Credentials are the client's own: they pass through.
	transport, err := rest.TransportFor(ending(t, &rest.Config{Host: origin.Host, TLSClientConfig: rest.TLSClientConfig{CAData: origin.CAData, CAFile: origin.CAFile}}))
	require.NoError(t, err)
	certified := serveTLS(t, http.NotFoundHandler()) // for its certificate
	p := &proxy{
		t: t, origin: origin, tls: certified.TLS, ca: certificate(certified), gate: make(chan struct{}),
		forward: &httputil.ReverseProxy{
			Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
			Transport:     transport,
			FlushInterval: -1,
			ErrorLog:      quiet,
			ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		},
	}
	close(p.gate)
	p.streams, p.cut = context.WithCancel(context.Background())
	p.endings, p.end = context.WithCancel(context.Background())
	p.up()
	t.Cleanup(p.down)
	return p
}

// config is the origin's, by way of the proxy.
func (p *proxy) config() *rest.Config {
	c := rest.CopyConfig(p.origin)
	c.Host = "https://" + p.addr
	c.TLSClientConfig = rest.TLSClientConfig{CAData: p.ca}
	return c
}

// up listens, again at the same address.
func (p *proxy) up() {
	p.t.Helper()
	address := p.addr
	if address == "" {
		address = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", address)
	require.NoError(p.t, err)
	p.addr = listener.Addr().String()
	server := &http.Server{Handler: p, TLSConfig: p.tls.Clone(), ErrorLog: quiet}
	p.mu.Lock()
	p.server = server
	p.mu.Unlock()
	p.serving.Go(func() { _ = server.ServeTLS(listener, "", "") })
}

// down ends every connection, and refuses new ones.
func (p *proxy) down() {
	p.mu.Lock()
	server := p.server
	p.server = nil
	p.mu.Unlock()
	if server != nil {
		p.drop()
		_ = server.Close()
		p.serving.Wait()
	}
}

// drop breaks every stream that is open, and nothing else.
func (p *proxy) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut()
	p.streams, p.cut = context.WithCancel(context.Background())
}

// retire ends as a server does that is told to: it listens no more, ends its
// streams in good order, and then its connections.
func (p *proxy) retire() {
	p.mu.Lock()
	server := p.server
	p.server = nil
	p.mu.Unlock()
	server.RegisterOnShutdown(p.finish) // by then nobody listens
	require.NoError(p.t, server.Shutdown(p.t.Context()), "it cannot end")
	p.serving.Wait()
}

// finish ends every stream in good order, as a server does after some minutes.
func (p *proxy) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end()
	p.endings, p.end = context.WithCancel(context.Background())
}

// hold makes requests wait until release is called.
func (p *proxy) hold() (release func()) {
	gate := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gate = gate
	return sync.OnceFunc(func() { close(gate) })
}

// plainLists makes the server one that does not stream lists.
func (p *proxy) plainLists() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lists = true
}

// expire makes every version too old, once.
func (p *proxy) expire() {
	p.mu.Lock()
	p.expired = true
	p.mu.Unlock()
	p.drop()
}

func (p *proxy) asked() []request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]request(nil), p.requests...)
}

// ServeHTTP implements [http.Handler].
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	var q request
	q.watch, _ = strconv.ParseBool(query.Get("watch"))
	q.streamed, _ = strconv.ParseBool(query.Get("sendInitialEvents"))
	q.version = query.Get("resourceVersion")
	p.mu.Lock()
	p.requests = append(p.requests, q)
	gate, streams, endings := p.gate, p.streams, p.endings
	unstreamed := p.lists && q.streamed
	old := p.expired && q.version != "" && q.version != "0"
	if p.expired && !old && !unstreamed {
		p.expired = false
	}
	p.mu.Unlock()

	select {
	case <-gate:
	case <-r.Context().Done():
		return
	}
	switch {
	case unstreamed:
		fail(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled")
		return
	case old:
		fail(w, http.StatusGone, metav1.StatusReasonExpired, "too old resource version")
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	if q.watch {
		defer context.AfterFunc(streams, cancel)()
		defer context.AfterFunc(endings, cancel)()
		defer func() {
			if fault := recover(); fault != nil && endings.Err() == nil {
				panic(fault)
			}
		}()
	}
	p.forward.ServeHTTP(w, r.WithContext(ctx))
}
