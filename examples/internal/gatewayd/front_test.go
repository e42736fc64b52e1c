// SPDX-License-Identifier: Apache-2.0

package gatewayd

import (
	"context"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/examples/internal/wire"
	"github.com/evenring/evenring/redirect"
)

const soon = 30 * time.Second // spent only by a test that fails

// front is a server on loopback, with one supervisor, which answers when the test says so.
type front struct {
	server
	addr     string
	asked    chan struct{}
	answer   chan struct{}
	caller   wire.Caller
	finished chan error // of serve
}

func newFront(t *testing.T, kind wire.Kind) *front {
	t.Helper()
	gw, err := redirect.NewGateway(redirect.Config{Gateway: "a", Incarnation: 1}, redirect.Hooks{})
	require.NoError(t, err)
	life, end := context.WithCancel(context.Background())
	ran := make(chan struct{})
	go func() { defer close(ran); gw.Run(life, nil) }()
	p := &process{Server: &Server{cfg: Config{Transport: kind}}, log: slog.New(slog.DiscardHandler), gateway: gw}
	p.peers = p.newPeers()
	f := &front{asked: make(chan struct{}, 1), answer: make(chan struct{}), finished: make(chan error, 1)}
	f.server, err = p.newServer()
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f.addr = l.Addr().String()
	go func() { f.finished <- f.serve(l) }()
	f.caller = wire.NewCaller(wire.CallerConfig{Kind: kind, Addr: f.addr})

	t.Cleanup(func() {
		require.NoError(t, f.caller.Close())
		gw.EndAll(redirect.ReasonStopped)
		f.stop()
		f.stop() // and once more is no harm
		require.NoError(t, p.peers.Close())
		end()
		<-ran
	})
	return f
}

// attach attaches the supervisor.
func (f *front) attach(t *testing.T, kind wire.Kind) redirect.Stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	v, stream, err := transportOf(kind, func(ctx context.Context, request []byte) ([]byte, error) {
		f.asked <- struct{}{}
		select {
		case <-f.answer:
		case <-ctx.Done():
		}
		return request, nil
	}).Dial(ctx, f.addr, redirect.Hello{Member: "edge-1", Generation: 1, CanRedirect: true})
	require.NoError(t, err)
	require.Equal(t, redirect.Accept, v.Outcome)
	t.Cleanup(func() { _ = stream.Close() })
	return stream
}

// call makes a request that is under way when it returns.
func (f *front) call(t *testing.T) <-chan error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	t.Cleanup(cancel)
	done := make(chan error, 1)
	go func() {
		_, err := f.caller.Call(ctx, redirect.Request{Member: "edge-1", Payload: []byte("hi")})
		done <- err
	}()
	within(t, f.asked)
	return done
}

// within returns what comes.
func within[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(soon):
		require.FailNow(t, "nothing comes")
		panic("unreachable")
	}
}

func everyWire(t *testing.T, test func(*testing.T, wire.Kind)) {
	for _, kind := range []wire.Kind{wire.GRPC, wire.WebSocket} {
		t.Run(kind.String(), func(t *testing.T) { test(t, kind) })
	}
}

// A request that a gateway is at is answered, though the gateway stops; new ones are not taken.
func TestShutdownWaitsForCalls(t *testing.T) {
	everyWire(t, func(t *testing.T, kind wire.Kind) {
		f := newFront(t, kind)
		stream := f.attach(t, kind)
		asked := f.call(t)
		down := make(chan struct{})
		go func() { defer close(down); f.shutdown(soon) }()
		refused := func() bool {
			conn, err := net.Dial("tcp", f.addr)
			if err != nil {
				return true
			}
			_ = conn.Close()
			return false
		}
		require.Eventually(t, refused, soon, time.Millisecond)
		select {
		case err := <-asked:
			require.FailNow(t, "it has ended", "%v", err)
		case <-down:
			require.FailNow(t, "it did not wait")
		default:
		}
		close(f.answer)
		require.NoError(t, within(t, asked))
		require.NoError(t, stream.Close())
		within(t, down)
		_ = within(t, f.finished)
	})
}

// What lasts longer than the patience is cut off, streams too.
func TestShutdownHasLimits(t *testing.T) {
	everyWire(t, func(t *testing.T, kind wire.Kind) {
		f := newFront(t, kind)
		stream := f.attach(t, kind)
		asked := f.call(t)
		f.shutdown(time.Millisecond)
		f.stop()
		err := within(t, asked)
		require.ErrorIs(t, err, redirect.ErrUncertain)
		ended := make(chan error, 1)
		go func() {
			for {
				if _, err := stream.Notice(); err != nil {
					ended <- err
					return
				}
			}
		}()
		require.NotErrorIs(t, within(t, ended), io.EOF, "that would be an end in good order")
	})
}
