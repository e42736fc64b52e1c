// SPDX-License-Identifier: Apache-2.0

//go:build !race

package roster

const fewer = 1
