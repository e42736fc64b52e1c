// SPDX-License-Identifier: Apache-2.0

package redirectws

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/evenring/evenring/redirect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds what should happen at once. It is spent only by a test that fails.
const patience = 30 * time.Second

func inTime(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func eventually(t testing.TB, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, patience, time.Millisecond)
}

func receiveFrom[T any](t testing.TB, from <-chan T) T {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(patience):
		require.FailNow(t, "nothing came")
		panic("unreachable")
	}
}

func listen(t testing.TB, addr string) net.Listener {
	l, err := net.Listen("tcp", addr)
	require.NoError(t, err)
	return l
}

// refusing returns an address at which nobody listens.
func refusing(t testing.TB) string {
	l := listen(t, "127.0.0.1:0")
	require.NoError(t, l.Close())
	return l.Addr().String()
}

// server is an HTTP server whose handlers, streams' too, can be waited for.
type server struct {
	http    *http.Server
	handler http.Handler
	serving sync.WaitGroup
	done    chan struct{}
	stop    func()
}

// serve runs a server on l until the test ends. A server whose handler is a *Handler
// cuts its streams when it stops.
func serve(t testing.TB, l net.Listener, handler http.Handler) *server {
	s := &server{handler: handler, done: make(chan struct{})}
	life, end := context.WithCancel(context.Background())
	s.http = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.serving.Add(1)
			defer s.serving.Done()
			handler.ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: patience,
		BaseContext:       func(net.Listener) context.Context { return life },
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	go func() { defer close(s.done); _ = s.http.Serve(l) }()
	s.stop = sync.OnceFunc(func() {
		_ = s.http.Close()
		end()
		if h, ok := handler.(*Handler); ok {
			over, cancel := context.WithCancel(context.Background())
			cancel()
			_ = h.Shutdown(over)
		}
		<-s.done
		s.serving.Wait()
	})
	t.Cleanup(s.stop)
	return s
}

// script is a gateway's end of one stream, as a test wants it.
type script func(ctx context.Context, ws *websocket.Conn)

// scriptedGateway serves a script and returns its address.
func scriptedGateway(t testing.TB, attach script) (string, *server) {
	l := listen(t, "127.0.0.1:0")
	return l.Addr().String(), serveScript(t, l, attach)
}

func serveScript(t testing.TB, l net.Listener, attach script) *server {
	return serve(t, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{Subprotocol}})
		if err != nil {
			return
		}
		defer ws.CloseNow()
		ws.SetReadLimit(maxMessage)
		ctx, cancel := context.WithTimeout(r.Context(), 2*patience)
		defer cancel()
		attach(ctx, ws)
	}))
}

// accepting answers any hello with an Accept and goes on with then.
func accepting(then script) script {
	return func(ctx context.Context, ws *websocket.Conn) {
		if _, _, err := ws.Read(ctx); err != nil {
			return
		}
		if text(ctx, ws, `{"verdict":{"outcome":"accept","gateway":"gw"}}`) {
			then(ctx, ws)
		}
	}
}

// text writes words and returns whether they went out.
func text(ctx context.Context, ws *websocket.Conn, words ...string) bool {
	for _, w := range words {
		if ws.Write(ctx, websocket.MessageText, []byte(w)) != nil {
			return false
		}
	}
	return true
}

func payload(ctx context.Context, ws *websocket.Conn, p string) bool {
	return ws.Write(ctx, websocket.MessageBinary, []byte(p)) == nil
}

// untilEnd reads until the supervisor hangs up.
func untilEnd(ctx context.Context, ws *websocket.Conn) {
	for {
		if _, _, err := ws.Read(ctx); err != nil {
			return
		}
	}
}

var plain = Transport{Plaintext: true, Payloads: 16}

var someHello = redirect.Hello{Member: "m", Generation: 1, CanRedirect: true}

// dial dials with tr and expects an Accept.
func dial(t testing.TB, tr Transport, addr string, hello redirect.Hello) *Stream {
	t.Helper()
	verdict, stream, err := tr.Dial(inTime(t), addr, hello)
	require.NoError(t, err)
	require.Equal(t, redirect.Accept, verdict.Outcome, "%+v", verdict)
	s := stream.(*Stream)
	t.Cleanup(func() { _ = s.Close() })
	return s
}
