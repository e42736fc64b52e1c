// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/redirectgrpc/evenringpb"
	"github.com/evenring/evenring/redirect/redirectws"
)

// Caller makes requests of supervisors and sessions. It keeps connections, and
// may be used concurrently.
type Caller interface {
	// Call returns the member's answer; ctx bounds it. [MayBeExecuted] reads the error.
	Call(ctx context.Context, req redirect.Request) ([]byte, error)
	// Close ends every connection, and what is under way.
	Close() error
}

// CallerConfig says how a caller connects.
type CallerConfig struct {
	Kind Kind
	Addr string      // of a gateway, or of the Service in front of all
	TLS  *tls.Config // nil: plaintext

	// Patient waits for a connection as long as a call may last. Over gRPC, one that
	// cannot be had fails the call otherwise, and others for a second after it.
	Patient bool

	// Dial makes the connections. nil: as programs do, by way of a proxy if the environment names one.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
}

// NewCaller returns a caller. Its connections are made when they are needed.
func NewCaller(cfg CallerConfig) (Caller, error) {
	if cfg.Kind == WebSocket {
		return newWebCaller(cfg), nil
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(cfg.Patient)),
	}
	if cfg.TLS != nil {
		options[0] = grpc.WithTransportCredentials(credentials.NewTLS(cfg.TLS))
	}
	if cfg.Dial != nil {
		options = append(options, grpc.WithContextDialer(cfg.Dial))
	}
	conn, err := grpc.NewClient(cfg.Addr, options...)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", cfg.Addr, err)
	}
	return grpcCaller{conn}, nil
}

type webCaller struct {
	redirectws.Caller
	addr string
}

func newWebCaller(cfg CallerConfig) *webCaller {
	c := &webCaller{redirectws.Caller{TLS: cfg.TLS, Plaintext: cfg.TLS == nil}, cfg.Addr}
	if cfg.Dial != nil {
		c.HTTP = &http.Transport{
			DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) { return cfg.Dial(ctx, addr) },
		}
	}
	return c
}

func (c *webCaller) Call(ctx context.Context, req redirect.Request) ([]byte, error) {
	return c.Caller.Call(ctx, c.addr, req)
}

type grpcCaller struct{ *grpc.ClientConn }

func (c grpcCaller) Call(ctx context.Context, req redirect.Request) ([]byte, error) {
	reply, err := evenringpb.NewCallerClient(c.ClientConn).Call(ctx, &evenringpb.CallRequest{
		Member: string(req.Member), Session: string(req.Session), Payload: req.Payload, Idempotent: req.Idempotent,
	})
	return reply.GetPayload(), err
}

// MayBeExecuted reports whether a request may have been executed, of which a
// [Caller] has returned err. Over gRPC, the status is Unavailable both when a gateway says so and
// when the connection to it has broken; the text tells which.
func MayBeExecuted(err error) bool {
	s, ok := status.FromError(err)
	if !ok {
		return errors.Is(err, redirect.ErrUncertain)
	}
	switch s.Code() {
	case codes.NotFound, codes.Unimplemented, codes.InvalidArgument, codes.PermissionDenied, codes.Unauthenticated, codes.ResourceExhausted:
		return false
	case codes.Unavailable:
		return !strings.HasPrefix(s.Message(), "forward: ")
	default:
		return err != nil
	}
}
