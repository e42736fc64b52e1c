// SPDX-License-Identifier: Apache-2.0

//go:build !race

package sim_test

// storms is how many seeds a storm is tried with.
const storms = 3
