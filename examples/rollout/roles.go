// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/evenring/evenring/examples/internal/gatewayd"
	"github.com/evenring/evenring/examples/internal/supervisord"
)

// playGateway is this process as a gateway, as ../gateway is one.
func playGateway(args []string) int {
	dieWithParent()
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP)
	return gatewayd.Main(signals, args, os.Getenv, os.Stdout, os.Stderr)
}

// playSupervisors is this process as a host of supervisors, as ../supervisor is one.
func playSupervisors(args []string) int {
	dieWithParent()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	return supervisord.Main(ctx, args, os.Getenv, os.Stdout, os.Stderr)
}

// dieWithParent ends this process once its standard input closes: whoever
// started it has ended.
func dieWithParent() {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
}
