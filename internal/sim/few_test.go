// SPDX-License-Identifier: Apache-2.0

//go:build race

package sim

// With the race detector a run takes many times as long.
const chaosSeeds, plantedSeeds, orderlySeeds = 60, 1000, 20
