// SPDX-License-Identifier: Apache-2.0

//go:build race

package explore

// racing: everything takes many times as long, and there is nothing for the
// race detector to find in machines that one goroutine uses.
const racing = true
