// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/evenring/evenring/examples/internal/gatewayd"
	"github.com/evenring/evenring/examples/internal/supervisord"
)

// playGateway is this process as a gateway, as ../gateway is one.
func playGateway(args []string) int {
	cfg, err := gatewayd.Parse(args, os.Getenv, os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		return 2
	}
	server, err := gatewayd.New(cfg)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		return 2
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		for s := range signals {
			if s == syscall.SIGHUP {
				server.Expire()
			} else {
				server.Drain()
			}
		}
	}()
	if err := server.Run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		return 1
	}
	return 0
}

// playSupervisors is this process as a host of supervisors, as ../supervisor is one.
func playSupervisors(args []string) int {
	cfg, err := supervisord.Parse(args, os.Getenv, os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "supervisor:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := supervisord.Run(ctx, cfg); err != nil {
		fmt.Fprintln(os.Stderr, "supervisor:", err)
		return 1
	}
	return 0
}
