// SPDX-License-Identifier: Apache-2.0

//go:build race

package roster

// With the race detector everything takes many times as long, and there is
// nothing for it to find in a machine that one goroutine uses.
const fewer = 20
