// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/redirectgrpc"
	"github.com/evenring/evenring/redirect/redirectws"
)

// Caller makes requests of supervisors and sessions. It keeps connections, and
// may be used concurrently.
type Caller interface {
	// Call returns the member's answer; ctx bounds it. Its error is a [redirect.ErrUncertain] if the request may have been executed.
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
func NewCaller(cfg CallerConfig) Caller {
	if cfg.Kind == WebSocket {
		return newWebCaller(cfg)
	}
	return newGRPCCaller(cfg)
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

type grpcCaller struct {
	redirectgrpc.Caller
	addr string
}

func newGRPCCaller(cfg CallerConfig) *grpcCaller {
	c := &grpcCaller{redirectgrpc.Caller{
		Credentials: insecure.NewCredentials(),
		Options:     []grpc.DialOption{grpc.WithDefaultCallOptions(grpc.WaitForReady(cfg.Patient))},
	}, cfg.Addr}
	if cfg.TLS != nil {
		c.Credentials = credentials.NewTLS(cfg.TLS)
	}
	if cfg.Dial != nil {
		c.Options = append(c.Options, grpc.WithContextDialer(cfg.Dial))
	}
	return c
}

func (c *grpcCaller) Call(ctx context.Context, req redirect.Request) ([]byte, error) {
	return c.Caller.Call(ctx, c.addr, req)
}
