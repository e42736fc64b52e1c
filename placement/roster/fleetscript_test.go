// SPDX-License-Identifier: Apache-2.0

package roster_test

import (
	"testing"

	"github.com/evenring/evenring/internal/sim/fleetscript"
)

// The conversations of fleets that show what gateways know of each other.
func TestScenarios(t *testing.T) { fleetscript.Run(t, "testdata/scenarios/*.txt") }
