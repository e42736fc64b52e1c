// SPDX-License-Identifier: Apache-2.0

package redirectws

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"github.com/coder/websocket"

	"github.com/evenring/evenring/redirect"
)

// Subprotocol is what a WebSocket must ask for.
const Subprotocol = "evenring.v1"

// What a [Handler] answers, all of it at one address. Whoever stands in front of the
// handler can tell by these who may come in.
const (
	AttachPath  = "/evenring/v1/attach"  // a supervisor's, or a session's, stream
	AskPath     = "/evenring/v1/ask"     // another gateway's question; each may keep a place
	ForwardPath = "/evenring/v1/forward" // a call that another gateway has taken
	CallPath    = "/evenring/v1/call"    // a caller's request
)

const (
	maxHello   = 64 << 10                       // bytes of a message before the verdict
	maxMessage = MaxCallBytes*4/3 + (256 << 10) // bytes of any other, and of a body
)

// Handler serves a gateway over HTTP: supervisors' and sessions' streams, other
// gateways' questions, and calls if its config has [ServerConfig.Calls]. It may
// stand below a mux, at "/evenring/". Make it with [NewHandler].
//
// An [http.Server] does not wait for WebSockets when it shuts down. To stop, let
// the gateway hand its supervisors over, then end what is left with
// [redirect.Gateway.EndAll], and wait with [Handler.Shutdown].
type Handler struct {
	gw  *redirect.Gateway
	cfg ServerConfig
	mux *http.ServeMux

	mu       sync.Mutex
	open     map[*link]bool
	stopping bool
	idle     chan struct{} // closed: stopping, and none is open
}

// NewHandler returns a handler for gw. Its error is that of [ServerConfig.Validate].
func NewHandler(gw *redirect.Gateway, cfg ServerConfig) (*Handler, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	h := &Handler{gw: gw, cfg: cfg.resolved(), mux: http.NewServeMux(), open: make(map[*link]bool), idle: make(chan struct{})}
	h.mux.HandleFunc("GET "+AttachPath, h.attach)
	h.mux.HandleFunc("POST "+AskPath, h.ask)
	h.mux.HandleFunc("POST "+ForwardPath, h.forward)
	h.mux.HandleFunc("POST "+CallPath, h.call)
	return h, nil
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// Shutdown turns new streams away and waits until the open ones have ended. It
// does not end them: [redirect.Gateway.EndAll] does. When ctx ends it cuts those that
// are left, and returns ctx's error once their handlers have returned. Calls are
// for [http.Server.Shutdown] to wait for. It may be called more than once.
func (h *Handler) Shutdown(ctx context.Context) error {
	h.mu.Lock()
	if !h.stopping {
		h.stopping = true
		h.settle()
	}
	h.mu.Unlock()
	select {
	case <-h.idle:
		return nil
	case <-ctx.Done():
	}
	h.mu.Lock()
	for l := range h.open {
		l.giveUp(errStopped)
	}
	h.mu.Unlock()
	<-h.idle
	return ctx.Err()
}

var errStopped = errors.New("the gateway has stopped")

// enter notes a stream; false: no more are let in.
func (h *Handler) enter(l *link) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.stopping {
		h.open[l] = true
	}
	return !h.stopping
}

func (h *Handler) leave(l *link) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.open, l)
	h.settle()
}

func (h *Handler) settle() {
	if h.stopping && len(h.open) == 0 {
		close(h.idle)
	}
}

type requestKey struct{}

// RequestFrom returns the request that opened the stream, or that made the call, which
// the context of [ServerConfig.Authorize], [ServerConfig.Serve] and
// [CallConfig.Authorize] has; nil: it has none. The body is not to be read.
func RequestFrom(ctx context.Context) *http.Request {
	r, _ := ctx.Value(requestKey{}).(*http.Request)
	return r
}

func withRequest(r *http.Request) context.Context {
	return context.WithValue(r.Context(), requestKey{}, r)
}

// attach is one stream, from the upgrade to the end.
func (h *Handler) attach(w http.ResponseWriter, r *http.Request) {
	l := newLink()
	if !h.enter(l) {
		http.Error(w, errStopped.Error(), http.StatusServiceUnavailable)
		return
	}
	defer h.leave(l)
	var err error
	l.ws, err = websocket.Accept(hijacker{w, l}, r, &websocket.AcceptOptions{
		Subprotocols:   []string{Subprotocol},
		OriginPatterns: h.cfg.OriginPatterns,
		OnPingReceived: l.answersPing,
	})
	if err != nil {
		return // and whoever dialled knows why
	}
	defer l.drop()
	if l.ws.Subprotocol() != Subprotocol {
		l.close(websocket.StatusPolicyViolation, "ask for the subprotocol "+Subprotocol)
		return
	}
	l.ws.SetReadLimit(maxHello)
	s, end := newServerStream(withRequest(r), l, h.cfg.Serve != nil)
	defer s.tasks.Wait()
	defer end()
	s.tasks.Go(s.read)
	s.tasks.Go(func() { l.watch(s.life, s.sign) })
	err = h.converse(s)
	s.timeUp()
	l.close(closing(err))
}

// hijacker takes the connection over, and notes what comes over it.
type hijacker struct {
	http.ResponseWriter
	link *link
}

// Hijack implements [http.Hijacker].
func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffers, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	conn, err = h.link.wire.use(conn)
	if err != nil {
		return nil, nil, err
	}
	return conn, bufio.NewReadWriter(buffers.Reader, bufio.NewWriter(conn)), nil
}

// ends are errors with which a stream ends, by the gateway's doing.
func ends(code websocket.StatusCode, format string, args ...any) error {
	return websocket.CloseError{Code: code, Reason: fmt.Sprintf(format, args...)}
}

// closing says with which code, and why, a stream ends that ended with err.
func closing(err error) (websocket.StatusCode, string) {
	var told websocket.CloseError
	switch {
	case err == nil:
		return websocket.StatusNormalClosure, ""
	case errors.As(err, &told):
		return told.Code, told.Reason
	default:
		return websocket.StatusInternalError, err.Error()
	}
}

// converse is the conversation, up to its end, of which it returns why.
func (h *Handler) converse(s *ServerStream) error {
	hello, err := s.greeting(h.cfg.HelloTimeout)
	if err != nil {
		return err
	}
	if h.cfg.Authorize != nil {
		if err := h.cfg.Authorize(s.ctx, hello); err != nil {
			return ends(websocket.StatusPolicyViolation, "%v", err)
		}
	}
	verdict, attachment := h.gw.Admit(s.ctx, hello)
	if attachment != nil {
		defer func() { attachment.Leave(s.saidGoodbye()) }()
		attachment.Carry(s.carry)
	}
	if s.ctx.Err() != nil {
		return s.whyOver()
	}
	s.link.ws.SetReadLimit(maxMessage)
	data, err := encodeVerdict(verdict)
	if err != nil {
		return err
	}
	if err := s.say(data); err != nil || attachment == nil {
		return err
	}
	s.tasks.Go(func() { s.write(h.cfg.Heartbeat, attachment.Heartbeat) })
	if h.cfg.Serve == nil {
		return h.follow(s, attachment, nil)
	}
	served, followed := make(chan struct{}), make(chan error, 1)
	go func() {
		defer s.timeUp()
		followed <- h.follow(s, attachment, served)
	}()
	err = h.cfg.Serve(s.ctx, s)
	close(served)
	if end := <-followed; !errors.Is(end, errServed) {
		return end
	}
	return err
}

// errServed says that the application ended the stream.
var errServed = errors.New("served")

// follow passes notices on and returns how the stream is to end. served is
// closed when the application has returned; nil: there is none.
func (h *Handler) follow(s *ServerStream, attachment *redirect.Attachment, served <-chan struct{}) error {
	notices, over := attachment.Notices(), s.over
	for {
		select {
		case n, more := <-notices:
			if !more {
				s.settle(h.cfg.Linger)
				return s.flush()
			}
			if !s.notify(n) {
				return ends(websocket.StatusTryAgainLater, "the supervisor does not take its notices")
			}
		case <-served:
			s.settle(h.cfg.Linger)
			if err := s.flush(); err != nil {
				return err
			}
			return errServed
		case <-over:
			if s.err != nil || served == nil {
				return s.err
			}
			// The application may still answer what came before the goodbye,
			// until the supervisor hangs up.
			attachment.Leave(true)
			notices, over = nil, nil
		case <-s.written:
			return s.writeErr
		case <-s.ctx.Done():
			return s.whyOver()
		}
	}
}
