// SPDX-License-Identifier: Apache-2.0

package redirectgrpc

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc/stats"
)

// sentWatch tells of calls whether anything of them has been handed to a
// connection. Of one that was not, the other end knows nothing.
type sentWatch struct{}

type sentKey struct{}

// watchSent returns a context for one call, and whether it was sent, which is
// known when the call is over.
func watchSent(ctx context.Context) (context.Context, *atomic.Bool) {
	sent := new(atomic.Bool)
	return context.WithValue(ctx, sentKey{}, sent), sent
}

// HandleRPC notes that a call's header, which comes first, goes out.
func (sentWatch) HandleRPC(ctx context.Context, event stats.RPCStats) {
	if _, ok := event.(*stats.OutHeader); !ok {
		return
	}
	if sent, ok := ctx.Value(sentKey{}).(*atomic.Bool); ok {
		sent.Store(true)
	}
}

// TagRPC, HandleConn and TagConn do nothing.
func (sentWatch) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

func (sentWatch) HandleConn(context.Context, stats.ConnStats) {}

func (sentWatch) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
