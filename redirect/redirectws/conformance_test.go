// SPDX-License-Identifier: Apache-2.0

package redirectws

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/supervisor/supervisortest"
)

// laterVersion does what a gateway of a later version may do.
func laterVersion(ctx context.Context, ws *websocket.Conn) {
	if _, _, err := ws.Read(ctx); err != nil {
		return
	}
	if text(ctx, ws,
		`{"sing":{"song":1}}`,
		`{"verdict":{"outcome":"accept","reason":"whim","song":[]},"song":null}`,
		`{}`,
		`{"notice":{"kind":"sing","reason":"whim"}}`,
		`{"notice":{"kind":"move","reason":"whim","song":{}}}`,
		`{"notice":{"kind":"end","reason":"stopped"}}`,
	) {
		_ = ws.Close(websocket.StatusNormalClosure, "")
	}
}

// raw opens a stream by hand.
func raw(t testing.TB, addr string) *websocket.Conn {
	ws, status := open(t, addr, websocket.DialOptions{Subprotocols: []string{Subprotocol}})
	require.Equal(t, http.StatusSwitchingProtocols, status)
	return ws
}

// open opens a WebSocket, if it may.
func open(t testing.TB, addr string, options websocket.DialOptions) (ws *websocket.Conn, status int) {
	if options.HTTPClient == nil {
		options.HTTPClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	}
	ws, answer, err := websocket.Dial(t.Context(), "ws://"+addr+AttachPath, &options) //nolint:bodyclose // Dial has done so
	require.NotNil(t, answer, "%v", err)
	if err == nil {
		t.Cleanup(func() { _ = ws.CloseNow() })
	}
	return ws, answer.StatusCode
}

// heard returns the next word.
func heard(t testing.TB, ws *websocket.Conn) (w word) {
	_, data, err := ws.Read(inTime(t))
	require.NoError(t, err)
	require.NoError(t, decode(data, &w))
	return w
}

func TestConformance(t *testing.T) {
	supervisortest.Run(t, func(testing.TB) supervisortest.Subject {
		return supervisortest.Subject{
			Serve: func(t testing.TB, l net.Listener, g supervisortest.Gate) func(context.Context) {
				cfg := ServerConfig{Heartbeat: g.Heartbeat}
				if g.Authorize != nil {
					cfg.Authorize = func(ctx context.Context, _ redirect.Hello) error {
						return g.Authorize(RequestFrom(ctx).Header.Get("Authorization"))
					}
				}
				if g.Serve != nil {
					cfg.Serve = func(ctx context.Context, s *ServerStream) error { return g.Serve(ctx, s) }
				}
				if g.Calls != nil {
					cfg.Calls = &CallConfig{Peers: g.Calls.Peers, Forward: g.Calls.Forward}
				}
				handler, err := NewHandler(g.Gateway, cfg)
				require.NoError(t, err)
				s := serve(t, l, handler)
				return func(ctx context.Context) {
					if ctx.Err() == nil {
						_ = handler.Shutdown(ctx)
						_ = s.http.Shutdown(ctx)
					}
					s.stop()
				}
			},
			Transport: func(_ testing.TB, s supervisortest.Supervisor) redirect.Transport {
				tr := plain
				tr.Serve = s.Answer
				tr.Header = func(context.Context) (http.Header, error) {
					return http.Header{"Authorization": {s.Token()}}, nil
				}
				return tr
			},
			Peers:       func(t testing.TB) supervisortest.Peers { return plainPeers(t) },
			Caller:      func(t testing.TB) supervisortest.Caller { return plainCaller(t) },
			CallBytes:   MaxCallBytes,
			Payloads:    true,
			Credentials: true,
			Keepalive:   pingAfter + pingTimeout,
			Heartbeat:   DefaultHeartbeat,
			Later:       func(t testing.TB, l net.Listener) { serveScript(t, l, laterVersion) },
			LaterHello: func(t testing.TB, addr string, hello redirect.Hello) redirect.Outcome {
				ws := raw(t, addr)
				data, err := json.Marshal(helloToWire(hello))
				require.NoError(t, err)
				require.True(t, text(inTime(t), ws, `{"sing":1}`, fmt.Sprintf(`{"hello":{"song":[],%s,"song":1}`, data[1:])))
				return verdictFromWire(heard(t, ws).Verdict).Outcome
			},
		}
	})
}
