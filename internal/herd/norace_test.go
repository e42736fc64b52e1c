// SPDX-License-Identifier: Apache-2.0

//go:build !race

package herd_test

// wave is how many supervisors arrive at once.
const wave = 10_000
