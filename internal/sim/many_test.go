// SPDX-License-Identifier: Apache-2.0

//go:build !race

package sim

const (
	chaosSeeds   = 2000 // random runs
	orderlySeeds = 300  // of rollouts
	plantedSeeds = 3000 // the most until a planted fault is found
)
