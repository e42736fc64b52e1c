// SPDX-License-Identifier: Apache-2.0

//go:build race

package redirect_test

// seedsDivisor is by how much fewer seeds the tests take. With the race detector everything
// is many times slower, and these fleets are run by one goroutine.
const seedsDivisor = 10
