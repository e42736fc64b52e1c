// SPDX-License-Identifier: Apache-2.0

package gatewayd

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"syscall"
)

// errTwice is why a gateway stops at once.
var errTwice = errors.New("told to stop twice")

// Main is a gateway process as a function: it parses args, serves until signals
// say otherwise, and returns the exit code: 0 once it has handed over, 1 if it could not run
// or had to stop at once, 2 for a bad command line. SIGHUP expires credentials,
// any other signal drains, and a second one stops at once.
func Main(signals <-chan os.Signal, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	cfg, err := Parse(args, getenv, stdout, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, "gateway:", err)
		return 2
	}
	server, err := New(cfg)
	if err != nil {
		fmt.Fprintln(stderr, "gateway:", err)
		return 2
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	go obey(ctx, signals, server, cancel)
	if err := server.Run(ctx); err != nil {
		cfg.Log.Error("stopped", "error", err)
		return 1
	}
	return 0
}

// obey passes signals on until ctx ends.
func obey(ctx context.Context, signals <-chan os.Signal, server *Server, stopNow context.CancelCauseFunc) {
	told := false
	for {
		select {
		case <-ctx.Done():
			return
		case sig := <-signals:
			switch {
			case sig == syscall.SIGHUP:
				server.Expire()
			case told:
				stopNow(errTwice)
			default:
				told = true
				server.Drain()
			}
		}
	}
}
