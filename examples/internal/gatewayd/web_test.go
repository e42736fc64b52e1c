// SPDX-License-Identifier: Apache-2.0

package gatewayd_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/evenring/evenring/examples/internal/gatewayd"
	"github.com/evenring/evenring/examples/internal/report"
	"github.com/evenring/evenring/examples/internal/tlsflags"
	"github.com/evenring/evenring/examples/internal/tlsflags/tlstest"
	"github.com/evenring/evenring/examples/internal/wire"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/forward"
	"github.com/evenring/evenring/redirect/redirectws"
	"github.com/evenring/evenring/ring"
)

// web is quick, over WebSocket.
func web(id ring.GatewayID) gatewayd.Config {
	cfg := quick(id)
	cfg.Transport = wire.WebSocket
	return cfg
}

// webDialler answers requests with its name and themselves.
func webDialler(t *testing.T, f tlsflags.Flags, name string) dialler {
	t.Helper()
	cfg, err := f.Client()
	require.NoError(t, err)
	return dialler{t, redirectws.Transport{
		TLS: cfg, Plaintext: cfg == nil,
		Serve: func(_ context.Context, request []byte) ([]byte, error) {
			return []byte(name + ": " + string(request)), nil
		},
	}}
}

// webCall makes one request through a gateway.
func (r *running) webCall(f tlsflags.Flags, request redirect.Request) (string, error) {
	r.t.Helper()
	cfg, err := f.Client()
	require.NoError(r.t, err)
	caller := wire.NewCaller(wire.CallerConfig{Kind: wire.WebSocket, Addr: r.where.Endpoint, TLS: cfg})
	defer caller.Close()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	answer, err := caller.Call(ctx, request)
	return string(answer), err
}

// Streams, sessions, asks, calls and the drain: all over one port, and none of it gRPC.
func TestWebSocketFleet(t *testing.T) {
	all := fleet(t, web("a"), web("b"))
	a, b := all[0], all[1]
	for _, g := range all {
		g.shows("/readyz/callers", "complete")
	}
	_, _, err := plain(t).try(a.where.Endpoint, redirect.Hello{Member: "edge-1"})
	require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)

	none := tlsflags.Flags{}
	_, stream := webDialler(t, none, "edge-1").dial(a.where.Endpoint, redirect.Hello{Member: "edge-1", CanRedirect: true, Stay: true})
	require.NotNil(t, stream)
	_, session := webDialler(t, none, "session-1").dial(a.where.Endpoint, redirect.Hello{Member: "edge-1", Session: "session-1"})
	require.NotNil(t, session)
	b.shows("/fleet", "live 1,")
	verdict, _ := webDialler(t, none, "edge-2").attach(a.where.Endpoint, "edge-2")
	require.Equal(t, ring.GatewayID("b"), verdict.Gateway)
	a.shows("/metrics", "\nevenring_ask_failures_total 0\n")

	for _, g := range all {
		answer, err := g.webCall(none, redirect.Request{Member: "edge-1", Payload: []byte("hi")})
		require.NoError(t, err)
		require.Equal(t, "edge-1: hi", answer)
		answer, err = g.webCall(none, redirect.Request{Member: "edge-1", Session: "session-1", Payload: []byte("hi")})
		require.NoError(t, err)
		require.Equal(t, "session-1: hi", answer)
		_, err = g.webCall(none, redirect.Request{Member: "edge-9"})
		var failed *forward.Error
		require.ErrorAs(t, err, &failed)
		require.Equal(t, forward.Nobody, failed.Reason)
		g.shows("/metrics", "\nevenring_calls_total{outcome=\"done\"} 2\n")
	}

	a.Drain()
	a.event(report.Draining)
	notice := told(t, stream)
	require.Equal(t, redirect.NoticeMove, notice.Kind)
	require.Equal(t, b.where.Endpoint, notice.Endpoint)
	code, body := a.get("/readyz")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, "draining\n", body)
	for _, g := range all {
		answer, err := g.webCall(none, redirect.Request{Member: "edge-1", Payload: []byte("still there?")})
		require.NoError(t, err)
		require.Equal(t, "edge-1: still there?", answer)
	}
	_, moved := webDialler(t, none, "edge-1").dial(notice.Endpoint, redirect.Hello{Member: "edge-1", CanRedirect: true, Stay: true, Hops: 1, Cap: notice.Cap})
	require.NotNil(t, moved)
	require.NoError(t, stream.Close())
	end := told(t, session)
	require.Equal(t, redirect.NoticeEnd, end.Kind)
	require.Equal(t, redirect.ReasonStopped, end.Reason)
	require.Equal(t, 1, a.event(report.Drained).Moved)
	require.NoError(t, a.end())
}

// Callers are told to leave before their connections are closed, each with an answer.
func TestWebCallersAreToldToLeave(t *testing.T) {
	cfg := web("a")
	cfg.Propagation, cfg.KillAfter = 5*patience, 10*patience
	a := ready(t, cfg)
	webDialler(t, tlsflags.Flags{}, "edge-1").attach(a.where.Endpoint, "edge-1")
	client := http.Client{Transport: new(http.Transport), Timeout: patience}
	t.Cleanup(client.CloseIdleConnections)
	closes := func() bool {
		r, err := client.Post("http://"+a.where.Endpoint+redirectws.CallPath, "application/json", strings.NewReader(`{"member":"edge-1"}`))
		require.NoError(t, err)
		defer r.Body.Close()
		_, err = io.ReadAll(r.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, r.StatusCode)
		return r.Close
	}
	require.False(t, closes())
	a.Drain()
	a.event(report.Draining)
	require.True(t, closes())
	require.True(t, closes())
	a.cancel(nil)
	require.Error(t, a.end())
}

// With mutual TLS everything on the port shows certificates.
func TestWebSocketMutualTLS(t *testing.T) {
	ca, other := tlstest.NewAuthority(t), tlstest.NewAuthority(t)
	a, b := web("a"), web("b")
	a.TLS, b.TLS = ca.Issue(t, "a"), ca.Issue(t, "b")
	all := fleet(t, a, b)
	client := ca.Issue(t, "client")
	for i := range 4 {
		webDialler(t, client, "client").attach(all[0].where.Endpoint, ring.MemberID(fmt.Sprint("edge-", i)))
	}
	for _, g := range all {
		g.shows("/metrics", "\nevenring_supervisors_served 2\n")
		g.shows("/metrics", "\nevenring_ask_failures_total 0\n")
		for i := range 4 {
			answer, err := g.webCall(client, redirect.Request{Member: ring.MemberID(fmt.Sprint("edge-", i)), Payload: []byte("hi")})
			require.NoError(t, err)
			require.Equal(t, "client: hi", answer)
		}
	}
	impostor := other.Issue(t, "impostor")
	impostor.CA = a.TLS.CA
	for name, flags := range map[string]tlsflags.Flags{
		"plaintext": {}, "without a certificate": {CA: a.TLS.CA}, "of another authority": impostor,
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := webDialler(t, flags, "x").try(all[0].where.Endpoint, redirect.Hello{Member: "edge-9"})
			require.Error(t, err)
			_, err = all[0].webCall(flags, redirect.Request{Member: "edge-1"})
			require.Error(t, err)
		})
	}
}

func TestWebSocketStopsAtOnce(t *testing.T) {
	enough := errors.New("enough")
	a := ready(t, web("a"))
	_, stream := webDialler(t, tlsflags.Flags{}, "edge-1").attach(a.where.Endpoint, "edge-1")
	a.cancel(enough)
	require.Equal(t, redirect.ReasonStopped, told(t, stream).Reason)
	require.ErrorIs(t, a.end(), enough)
}
