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
	"os"
	"os/signal"
	"syscall"

	"github.com/evenring/evenring/examples/internal/gatewayd"
)

func main() {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	os.Exit(gatewayd.Main(signals, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}
