// SPDX-License-Identifier: Apache-2.0

package gatewayd_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/evenring/evenring/examples/internal/gatewayd"
	"github.com/evenring/evenring/examples/internal/report"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/redirectgrpc"
	"github.com/evenring/evenring/redirect/redirectgrpc/evenringpb"
)

// call makes one request through a gateway.
func (r *running) call(request *evenringpb.CallRequest) (string, error) {
	conn, err := grpc.NewClient(r.where.Endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(r.t, err)
	defer conn.Close()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	reply, err := evenringpb.NewCallerClient(conn).Call(ctx, request)
	return string(reply.GetPayload()), err
}

// A caller at any gateway reaches a supervisor and its session at another.
func TestCalls(t *testing.T) {
	all := fleet(t, quick("a"), quick("b"))
	a, b := all[0], all[1]
	for _, g := range all {
		g.shows("/readyz/callers", "complete")
	}
	answering := func(name string) dialler {
		return dialler{t, redirectgrpc.Transport{
			Credentials: insecure.NewCredentials(),
			Serve: func(_ context.Context, request []byte) ([]byte, error) {
				return []byte(name + ": " + string(request)), nil
			},
		}}
	}
	_, stream := answering("edge-1").dial(a.where.Endpoint, redirect.Hello{Member: "edge-1", CanRedirect: true, Stay: true})
	require.NotNil(t, stream)
	_, stream = answering("session-1").dial(a.where.Endpoint, redirect.Hello{Member: "edge-1", Session: "session-1"})
	require.NotNil(t, stream)
	b.shows("/fleet", "live 1,")
	for _, g := range all {
		answer, err := g.call(&evenringpb.CallRequest{Member: "edge-1", Payload: []byte("hi")})
		require.NoError(t, err)
		require.Equal(t, "edge-1: hi", answer)
		answer, err = g.call(&evenringpb.CallRequest{Member: "edge-1", Session: "session-1", Payload: []byte("hi")})
		require.NoError(t, err)
		require.Equal(t, "session-1: hi", answer)
		_, err = g.call(&evenringpb.CallRequest{Member: "edge-2"})
		require.Equal(t, codes.NotFound, status.Code(err), "%v", err)
	}

	for g, forwarded := range map[*running]int{a: 2, b: 0} {
		g.shows("/metrics", "\nevenring_calls_total{outcome=\"done\"} 2\n")
		g.shows("/metrics", "\nevenring_calls_total{outcome=\"nobody\"} 1\n")
		g.shows("/metrics", "\nevenring_calls_total{outcome=\"lost\"} 0\n")
		g.shows("/metrics", fmt.Sprintf("\nevenring_forwarded_calls_total{outcome=\"done\"} %d\n", forwarded))
	}

	// Callers are to go elsewhere from the first moment of a drain, and are answered all the same.
	a.Drain()
	a.event(report.Draining)
	code, body := a.get("/readyz/callers")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, "draining\n", body)
	for _, g := range all {
		answer, err := g.call(&evenringpb.CallRequest{Member: "edge-1", Payload: []byte("still there?")})
		require.NoError(t, err)
		require.Equal(t, "edge-1: still there?", answer)
	}
}

// Not to know is another answer than to know that nobody has it.
func TestCallersWaitForTheView(t *testing.T) {
	cfg := quick("a")
	cfg.Join = []string{"127.0.0.1:9"} // nobody is there
	cfg.PeerWait = 1
	a := ready(t, cfg)
	code, body := a.get("/readyz/callers")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, "discovery\n", body)
	_, err := a.call(&evenringpb.CallRequest{Member: "edge-1"})
	require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
	require.ErrorContains(t, err, "incomplete")

	plain(t).attach(a.where.Endpoint, "edge-1")
	_, err = a.call(&evenringpb.CallRequest{Member: "edge-1"})
	require.Equal(t, codes.Unimplemented, status.Code(err), "%v", err)

	b := ready(t, gatewayd.Config{ID: "b"})
	code, body = b.get("/readyz/callers")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "complete\n", body)
}
