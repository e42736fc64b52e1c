// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"net"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/forward"
	"github.com/evenring/evenring/redirect/redirectgrpc/evenringpb"
	"github.com/evenring/evenring/redirect/redirectws"
)

// gateway answers calls with what they say.
type gateway struct {
	evenringpb.UnimplementedCallerServer
}

func (gateway) Call(ctx context.Context, r *evenringpb.CallRequest) (*evenringpb.CallReply, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		return nil, status.Error(codes.InvalidArgument, "no deadline")
	}
	if r.GetMember() == "nobody" {
		told, err := status.New(codes.NotFound, "nobody has it").WithDetails(&evenringpb.Reply{Outcome: forward.Nobody.String()})
		if err != nil {
			return nil, err
		}
		return nil, told.Err()
	}
	text := r.GetMember() + "/" + r.GetSession() + ": " + string(r.GetPayload())
	if r.GetIdempotent() {
		text += " (idempotent)"
	}
	return &evenringpb.CallReply{Payload: []byte(text)}, nil
}

func serve(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer()
	evenringpb.RegisterCallerServer(server, gateway{})
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Stop(); <-done })
	return listener.Addr().String()
}

// serveWeb is a gateway with one supervisor, over WebSocket.
func serveWeb(t *testing.T) string {
	gw, err := redirect.NewGateway(redirect.Config{Gateway: "a", Incarnation: 1}, redirect.Hooks{})
	require.NoError(t, err)
	life, end := context.WithCancel(context.Background())
	ran := make(chan struct{})
	go func() { defer close(ran); gw.Run(life, nil) }()
	t.Cleanup(func() { end(); <-ran })
	handler, err := redirectws.NewHandler(gw, redirectws.ServerConfig{Calls: new(redirectws.CallConfig)})
	require.NoError(t, err)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	addr := server.Listener.Addr().String()
	_, stream, err := redirectws.Transport{Plaintext: true, Serve: func(_ context.Context, request []byte) ([]byte, error) {
		return append([]byte("edge-1: "), request...), nil
	}}.Dial(t.Context(), addr, redirect.Hello{Member: "edge-1", Generation: 1})
	require.NoError(t, err)
	t.Cleanup(func() { _ = stream.Close() })
	return addr
}

func TestCall(t *testing.T) {
	web := serveWeb(t)
	addr := serve(t)
	for _, row := range []struct {
		name           string
		args           []string
		code           int
		stdout, stderr string
	}{
		{"a supervisor", []string{"-gateway", addr, "-member", "edge-1", "good", "day"}, 0, "edge-1/: good day\n", ""},
		{"a session", []string{"-gateway", addr, "-member", "edge-1", "-session", "x", "-idempotent", "hi"}, 0, "edge-1/x: hi (idempotent)\n", ""},
		{"nobody", []string{"-gateway", addr, "-member", "nobody", "hi"}, 1, "", `call: forward: nobody: member "nobody"`},
		{"no gateway", []string{"-gateway", "127.0.0.1:1", "-member", "edge-1"}, 1, "", "code = Unavailable"},
		{"over HTTP", []string{"-transport", "websocket", "-gateway", web, "-member", "edge-1", "good", "day"}, 0, "edge-1: good day\n", ""},
		{"nobody, over HTTP", []string{"-transport", "websocket", "-gateway", web, "-member", "nobody"}, 1, "", `forward: incomplete: member "nobody"`},
		{"no gateway, over HTTP", []string{"-transport", "websocket", "-gateway", "127.0.0.1:1", "-member", "edge-1"}, 1, "", "the request was not sent"},
		{"no such transport", []string{"-transport", "pigeon", "-member", "edge-1"}, 2, "", "-transport"},
		{"whom", []string{"hi"}, 2, "", "call: -member is empty\n"},
		{"no time", []string{"-member", "edge-1", "-timeout", "-1s"}, 2, "", "call: -timeout is -1s; it must be above 0\n"},
		{"certificates", []string{"-member", "edge-1", "-tls-ca", "/nowhere"}, 1, "", "-tls-ca"},
		{"no such flag", []string{"-speed"}, 2, "", "-speed"},
		{"help", []string{"-help"}, 0, "", "usage: call -member ID [flags] TEXT..."},
	} {
		t.Run(row.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), row.args, &stdout, &stderr)
			require.Equal(t, row.code, code, stderr.String())
			require.Equal(t, row.stdout, stdout.String())
			require.Contains(t, stderr.String(), row.stderr)
		})
	}
}
