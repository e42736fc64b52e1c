// SPDX-License-Identifier: Apache-2.0

package supervisord

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/evenring/evenring/examples/internal/wire"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/redirectgrpc"
	"github.com/evenring/evenring/redirect/redirectws"
)

const (
	payloadQueue = 16
	readBuffer   = 4 << 10 // a connection carries one quiet stream, and there are many
)

// newTransport returns what a member and its sessions dial with. serve answers their requests.
func newTransport(cfg Config, serve func(context.Context, []byte) ([]byte, error)) redirect.Transport {
	if cfg.Transport == wire.WebSocket {
		return redirectws.Transport{TLS: cfg.TLS, Plaintext: cfg.TLS == nil, Payloads: payloadQueue, Serve: serve}
	}
	secure := insecure.NewCredentials()
	if cfg.TLS != nil {
		secure = credentials.NewTLS(cfg.TLS)
	}
	return redirectgrpc.Transport{
		Credentials: secure,
		Service:     cfg.Service,
		Options:     []grpc.DialOption{grpc.WithReadBufferSize(readBuffer)},
		Payloads:    payloadQueue,
		Serve:       serve,
	}
}
