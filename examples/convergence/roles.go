// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

// playSupervisors is this process as a host of supervisors: args are the
// addresses of all gateways, with commas between them, and the numbers of its first
// supervisor and of the one after its last. SIGHUP cuts every connection.
func playSupervisors(args []string) int {
	if err := hostSupervisors(args); err != nil {
		fmt.Fprintln(os.Stderr, "supervisors:", err)
		return 1
	}
	return 0
}

func hostSupervisors(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("%d arguments; 3 are needed", len(args))
	}
	first, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	end, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	cut := make(chan os.Signal, 1)
	signal.Notify(cut, syscall.SIGHUP)
	lan := newNetwork(strings.Split(args[0], ","))
	go func() {
		for range cut {
			lan.cut()
		}
	}()
	return newCrowd(lan, os.Stdout).run(ctx, first, end)
}
