// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"log/slog"
)

// aside takes client-go's log lines. What matters of them this package says
// itself, so they are for whoever looks closely. Those of verbosity 5 and above,
// such as bodies of requests, are for nobody.
type aside struct{ slog.Handler }

// Enabled implements [slog.Handler].
func (a aside) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelDebug && a.Handler.Enabled(ctx, slog.LevelDebug)
}

// Handle implements [slog.Handler].
func (a aside) Handle(ctx context.Context, r slog.Record) error {
	if !a.Handler.Enabled(ctx, slog.LevelDebug) {
		return nil // nobody asks first about an error
	}
	r.Level = slog.LevelDebug
	return a.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (a aside) WithAttrs(attrs []slog.Attr) slog.Handler { return aside{a.Handler.WithAttrs(attrs)} }

// WithGroup implements [slog.Handler].
func (a aside) WithGroup(name string) slog.Handler { return aside{a.Handler.WithGroup(name)} }
