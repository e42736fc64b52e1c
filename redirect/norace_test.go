// SPDX-License-Identifier: Apache-2.0

//go:build !race

package redirect_test

// seedsDivisor is by how much fewer seeds the tests take.
const seedsDivisor = 1
