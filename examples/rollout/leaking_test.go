// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// leakVariable names the role whose processes leak.
const leakVariable = "EVENRING_ROLLOUT_TEST_LEAK"

// leakWhenTold makes this process leak one goroutine for every SIGUSR1, and more than slack for a SIGUSR2.
func leakWhenTold() {
	told := make(chan os.Signal, 16)
	signal.Notify(told, syscall.SIGUSR1, syscall.SIGUSR2)
	go func() {
		for s := range told {
			n := 1
			if s == syscall.SIGUSR2 {
				n += int(slack.Goroutines)
			}
			for range n {
				go func() { select {} }()
			}
		}
	}()
}
