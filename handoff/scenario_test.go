// SPDX-License-Identifier: Apache-2.0

package handoff_test

import (
	"testing"

	"github.com/evenring/evenring/internal/sim/fleetscript"
)

// The conversations of fleets that show how a gateway hands over.
func TestScenarios(t *testing.T) { fleetscript.Run(t, "testdata/scenarios/*.txt") }
