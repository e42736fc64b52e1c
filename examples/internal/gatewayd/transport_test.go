// SPDX-License-Identifier: Apache-2.0

package gatewayd

import (
	"context"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/evenring/evenring/examples/internal/wire"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/redirectgrpc"
	"github.com/evenring/evenring/redirect/redirectws"
)

// transportOf is a supervisor's, in plaintext.
func transportOf(kind wire.Kind, serve func(context.Context, []byte) ([]byte, error)) redirect.Transport {
	if kind == wire.WebSocket {
		return redirectws.Transport{Plaintext: true, Serve: serve}
	}
	return redirectgrpc.Transport{Credentials: insecure.NewCredentials(), Serve: serve}
}
