// SPDX-License-Identifier: Apache-2.0

//go:build race

package herd_test

// wave is how many supervisors arrive at once. With the race detector everything
// is many times slower, and a herd is run by one goroutine.
const wave = 2_000
