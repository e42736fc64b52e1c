// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"math"
	"syscall"
	"time"
)

// openFiles is how many files this process, and those that it starts, may
// have open. Go has raised the soft limit to the hard one.
func openFiles() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return math.MaxUint64
	}
	return uint64(limit.Cur) //nolint:unconvert // it is signed on some systems
}

// ownCPU is how many CPU seconds this process has used.
func ownCPU() float64 {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return (time.Duration(used.Utime.Nano()) + time.Duration(used.Stime.Nano())).Seconds()
}
