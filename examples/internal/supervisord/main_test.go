// SPDX-License-Identifier: Apache-2.0

package supervisord

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/evenring/evenring/examples/internal/report"
	"github.com/evenring/evenring/examples/internal/wire"
	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/redirectgrpc"
	"github.com/evenring/evenring/redirect/redirectws"
	"github.com/evenring/evenring/ring"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds what should happen soon. It is spent only by a test that fails.
const patience = 20 * time.Second

func eventually(t testing.TB, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, patience, time.Millisecond)
}

// events is what a process has reported.
type events struct {
	mu  sync.Mutex
	all []report.Event
}

// Write takes the one line that a [report.Writer] writes at a time.
func (e *events) Write(line []byte) (int, error) {
	var event report.Event
	if err := json.Unmarshal(line, &event); err != nil {
		return 0, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, event)
	return len(line), nil
}

// of returns the events of some kinds so far, of one member or of all.
func (e *events) of(member string, kinds ...report.Kind) []report.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	var some []report.Event
	for _, event := range e.all {
		if slices.Contains(kinds, event.Kind) && (member == "" || event.Member == member) {
			some = append(some, event)
		}
	}
	return some
}

// settled reports whether the last word on every supervisor is that it is
// attached, and on every session that it is at the same gateway.
func (e *events) settled(supervisors, sessions int) bool {
	at, child := make(map[string]string), make(map[string]report.Event)
	for _, event := range e.of("", report.Attached, report.Lost, report.Session) {
		switch event.Kind {
		case report.Attached:
			at[event.Member] = event.Gateway
		case report.Lost:
			delete(at, event.Member)
		case report.Session:
			child[event.Member+"/"+event.Session] = event
		}
	}
	for _, event := range child {
		if !event.AtHome || event.Gateway == "" || event.Gateway != at[event.Member] {
			return false
		}
	}
	return len(at) == supervisors && len(child) == sessions
}

// cut reports whether so many have lost a stream.
func (e *events) cut(supervisors, sessions int) bool {
	lost := 0
	for _, event := range e.of("", report.Session) {
		if event.Gateway == "" {
			lost++
		}
	}
	return len(e.of("", report.Lost)) == supervisors && lost == sessions
}

// start runs cfg until stop is called, or the test ends.
func start(t testing.TB, cfg Config) (seen *events, stop func()) {
	seen = new(events)
	cfg.Report = report.NewWriter(seen)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, cfg) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	t.Cleanup(stop)
	return seen, stop
}

// gates is gateways on loopback, whose roster messages pass through memory.
type gates struct {
	mu  sync.Mutex
	all map[ring.GatewayID]*gate
}

type gate struct {
	*redirect.Gateway
	addr     string
	listener *cuttable
}

// gateOptions is what differs between tests.
type gateOptions struct {
	transport wire.Kind
	tls       *tls.Config // nil: plaintext
	serve     func(context.Context, talker) error
}

// talker is a stream as the gateway's application sees it, over any transport.
type talker interface {
	payloads
	Hello() redirect.Hello
}

// everyTransport runs a test over each transport.
func everyTransport(t *testing.T, test func(*testing.T, wire.Kind)) {
	for _, kind := range []wire.Kind{wire.GRPC, wire.WebSocket} {
		t.Run(kind.String(), func(t *testing.T) { test(t, kind) })
	}
}

func newGates() *gates { return &gates{all: make(map[ring.GatewayID]*gate)} }

func (g *gates) start(t testing.TB, id ring.GatewayID, o gateOptions) *gate {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	one := &gate{addr: listener.Addr().String(), listener: &cuttable{Listener: listener}}

	var peers interface {
		redirect.Peers
		Close() error
	} = &redirectgrpc.Peers{Credentials: insecure.NewCredentials()}
	if o.transport == wire.WebSocket {
		peers = &redirectws.Peers{Plaintext: true}
	}
	t.Cleanup(func() { require.NoError(t, peers.Close()) })
	one.Gateway, err = redirect.NewGateway(redirect.Config{
		Gateway:     id,
		Incarnation: placement.Incarnation(time.Now().UnixNano()),
		Endpoint:    one.addr,
		Peers:       peers,
		AskTimeout:  patience, // a busy machine is no dead peer
	}, redirect.Hooks{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { one.Run(ctx, from{g, id}) })
	t.Cleanup(func() { cancel(); running.Wait() })

	if o.transport == wire.WebSocket {
		serveWeb(t, one, o)
	} else {
		serveGRPC(t, one, o)
	}

	g.mu.Lock()
	defer g.mu.Unlock()
	g.all[id] = one
	return one
}

func serveGRPC(t testing.TB, one *gate, o gateOptions) {
	secure := insecure.NewCredentials()
	if o.tls != nil {
		secure = credentials.NewTLS(o.tls)
	}
	options := append(redirectgrpc.ServerOptions(), grpc.Creds(secure), grpc.WaitForHandlers(true))
	server := grpc.NewServer(options...)
	var cfg redirectgrpc.ServerConfig
	if o.serve != nil {
		cfg.Serve = func(ctx context.Context, s *redirectgrpc.ServerStream) error { return o.serve(ctx, s) }
	}
	require.NoError(t, redirectgrpc.Register(server, one.Gateway, cfg))
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(one.listener) })
	t.Cleanup(func() { server.Stop(); serving.Wait() })
}

func serveWeb(t testing.TB, one *gate, o gateOptions) {
	var cfg redirectws.ServerConfig
	if o.serve != nil {
		cfg.Serve = func(ctx context.Context, s *redirectws.ServerStream) error { return o.serve(ctx, s) }
	}
	handler, err := redirectws.NewHandler(one.Gateway, cfg)
	require.NoError(t, err)
	server := &http.Server{Handler: handler, TLSConfig: o.tls, ReadHeaderTimeout: patience}
	serve := func() error { return server.Serve(one.listener) }
	if o.tls != nil {
		serve = func() error { return server.ServeTLS(one.listener, "", "") }
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = serve() })
	t.Cleanup(func() {
		_ = server.Close()
		now, cancel := context.WithCancel(context.Background())
		cancel()
		_ = handler.Shutdown(now)
		serving.Wait()
	})
}

// meet makes the gateways know each other.
func (g *gates) meet(t testing.TB) {
	for id, one := range g.all {
		for other := range g.all {
			if other != id {
				one.Step(roster.LinkUp{Gateway: other})
			}
		}
	}
	for _, one := range g.all {
		eventually(t, func() bool { return one.Stats().Placeable == len(g.all) })
	}
}

// alone starts a gateway that has no peers.
func alone(t testing.TB, o gateOptions) *gate {
	g := newGates()
	one := g.start(t, "a", o)
	g.meet(t)
	return one
}

// from is one gateway's end of the roster's transport.
type from struct {
	gates *gates
	id    ring.GatewayID
}

func (f from) Send(to ring.GatewayID, message []byte) error {
	f.gates.mu.Lock()
	var targets []*gate
	for id, one := range f.gates.all {
		if id == to || to == "" && id != f.id {
			targets = append(targets, one)
		}
	}
	f.gates.mu.Unlock()
	if len(targets) == 0 {
		return errors.New("nobody there")
	}
	decoded, err := roster.Decode(message)
	if err != nil {
		return err
	}
	for _, one := range targets {
		one.Step(roster.Received{From: f.id, Message: decoded})
	}
	return nil
}

// cuttable is a listener whose connections can be cut.
type cuttable struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func (c *cuttable) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.conns = append(c.conns, conn)
	}
	return conn, err
}

// cut closes every connection accepted so far; new ones are welcome.
func (c *cuttable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.conns = nil
}
