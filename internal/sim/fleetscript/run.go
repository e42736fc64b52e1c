// SPDX-License-Identifier: Apache-2.0

package fleetscript

import (
	"testing"

	"github.com/evenring/evenring/internal/script"
)

// Run plays every script that the pattern finds, each as a subtest.
func Run(t *testing.T, pattern string) {
	t.Helper()
	script.Run(t, pattern, func(t *testing.T) func(string, []string) string {
		f := newFleet()
		return func(verb string, args []string) string {
			out, err := f.do(verb, args)
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
	})
}
