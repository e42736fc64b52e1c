// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package main

import "math"

// openFiles is how many files a process may have open: as far as known, any number.
func openFiles() uint64 { return math.MaxUint64 }

// ownCPU is how many CPU seconds this process has used; that is not known.
func ownCPU() float64 { return 0 }
