// SPDX-License-Identifier: Apache-2.0

package child

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/evenring/evenring/examples/internal/gatewayd"
	"github.com/evenring/evenring/examples/internal/supervisord"
)

// RoleVariable tells a process of a program which role it has. Without it, the
// process is the one that runs the show.
const RoleVariable = "EVENRING_CHILD_ROLE"

// Play plays the role that this process was started in by [Start], and exits
// with what it returns. It returns if the process was started by somebody else. A role that
// is not among roles exits with 2.
func Play(program string, roles map[string]func(args []string) int) {
	role := os.Getenv(RoleVariable)
	if role == "" {
		return
	}
	play := roles[role]
	if play == nil {
		fmt.Fprintf(os.Stderr, "%s: %s is %q; it is for this program's own use\n", program, RoleVariable, role)
		os.Exit(2)
	}
	dieWithParent()
	os.Exit(play(os.Args[1:]))
}

// Gateway is the role of a gateway, as ../../gateway is one.
func Gateway(args []string) int {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP)
	return gatewayd.Main(signals, args, os.Getenv, os.Stdout, os.Stderr)
}

// Supervisors is the role of a host of supervisors, as ../../supervisor is one.
func Supervisors(args []string) int {
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
