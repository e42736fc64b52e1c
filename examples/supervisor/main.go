// SPDX-License-Identifier: Apache-2.0

// Command supervisor hosts supervisors and their child sessions:
//
//	supervisor -service 127.0.0.1:7000 -prefix edge- -count 10 -sessions 2
//
// It keeps their streams where the gateways want them until it is told to stop
// (SIGTERM or SIGINT), and then says goodbye for all; a second signal ends it at
// once. See -help for the flags and their environment variables.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/evenring/evenring/examples/internal/supervisord"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	context.AfterFunc(ctx, stop)
	os.Exit(supervisord.Main(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}
