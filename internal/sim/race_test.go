// SPDX-License-Identifier: Apache-2.0

//go:build race

package sim_test

// storms is how many seeds a storm is tried with. With the race detector everything
// takes many times as long, and there is nothing for it to find in a world that
// one goroutine runs.
const storms = 1
