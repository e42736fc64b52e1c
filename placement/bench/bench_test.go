// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkPlace decides where a member goes.
func BenchmarkPlace(b *testing.B) { every(b, "BenchmarkPlace") }

// BenchmarkReserve decides, counts the member in, and counts it out again.
func BenchmarkReserve(b *testing.B) { every(b, "BenchmarkReserve") }

func every(b *testing.B, benchmark string) {
	for _, c := range cells() {
		if c.benchmark() != benchmark {
			continue
		}
		b.Run(c.sub(), func(b *testing.B) {
			p, err := c.prepare()
			require.NoError(b, err)
			loop(b, p)
		})
	}
}
