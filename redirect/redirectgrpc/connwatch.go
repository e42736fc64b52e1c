// SPDX-License-Identifier: Apache-2.0

package redirectgrpc

import (
	"context"
	"sync"

	"google.golang.org/grpc/stats"
)

// connWatch tells when the last connection under a stream has gone. gRPC itself
// tells only who reads, and a reader may be waiting for room.
type connWatch struct {
	mu    sync.Mutex
	live  int
	armed bool
	gone  chan struct{}
}

// arm returns a channel that is closed when no connection is left. Before, a
// connection may go and another take its place. It is called once.
func (w *connWatch) arm() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed = true
	if w.live == 0 {
		close(w.gone)
	}
	return w.gone
}

// HandleConn counts connections.
func (w *connWatch) HandleConn(_ context.Context, event stats.ConnStats) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch event.(type) {
	case *stats.ConnBegin:
		w.live++
	case *stats.ConnEnd:
		w.live--
		if w.armed && w.live == 0 {
			close(w.gone)
		}
	}
}

// HandleRPC, TagConn and TagRPC do nothing.
func (w *connWatch) HandleRPC(context.Context, stats.RPCStats) {}

func (w *connWatch) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (w *connWatch) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }
