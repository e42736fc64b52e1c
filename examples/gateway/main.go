// SPDX-License-Identifier: Apache-2.0

// Command gateway is a gateway server: it accepts the streams of supervisors and
// their sessions, or sends them to where they belong.
//
//	gateway -id a -listen 127.0.0.1:7000 -gossip 127.0.0.1:7946 -ops 127.0.0.1:7080
//	gateway -id b -listen 127.0.0.1:7001 -gossip 127.0.0.1:7947 -ops 127.0.0.1:7081 -join 127.0.0.1:7946
//
// SIGTERM or SIGINT: hand over, then exit; a second one: exit at once. SIGHUP:
// credentials were rotated, so everybody authenticates anew. See -help for the
// flags and their environment variables.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/evenring/evenring/examples/internal/gatewayd"
)

func main() {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	os.Exit(run(signals, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// errTwice is why a gateway stops at once.
var errTwice = errors.New("told to stop twice")

// run returns the exit code: 0 once it has handed over, 1 if it could not run
// or had to stop at once, 2 for a bad command line.
func run(signals <-chan os.Signal, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	cfg, err := gatewayd.Parse(args, getenv, stdout, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, "gateway:", err)
		return 2
	}
	server, err := gatewayd.New(cfg)
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
func obey(ctx context.Context, signals <-chan os.Signal, server *gatewayd.Server, stopNow context.CancelCauseFunc) {
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
