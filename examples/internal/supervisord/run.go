// SPDX-License-Identifier: Apache-2.0

// Package supervisord hosts supervisors and their child sessions, each with
// streams of its own to the gateways, over gRPC or over WebSocket.
package supervisord

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"golang.org/x/sync/errgroup"

	"github.com/evenring/evenring/examples/internal/report"
)

// Run hosts until ctx ends. Every session then says goodbye, its supervisor
// after it, and Run returns nil once nothing runs any more. An error means that
// cfg is at fault, or that its Ops address cannot be listened on.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	hosted := newFleet(cfg)
	if cfg.Ops != "" {
		listener, err := net.Listen("tcp", cfg.Ops)
		if err != nil {
			return fmt.Errorf("supervisord: Config.Ops (flag -ops): %w", err)
		}
		defer serveOps(listener, hosted.handler(), cfg.Log)()
		cfg.Report.Write(report.Event{Kind: report.Listening, Ops: listener.Addr().String()})
	}
	running, ctx := errgroup.WithContext(ctx)
	for _, m := range hosted.members {
		running.Go(func() error { return m.run(ctx) })
	}
	return running.Wait()
}
