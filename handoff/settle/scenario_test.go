// SPDX-License-Identifier: Apache-2.0

package settle_test

import (
	"testing"

	"github.com/evenring/evenring/internal/sim/fleetscript"
)

// The conversations of fleets that show what a settle does.
func TestScenarios(t *testing.T) { fleetscript.Run(t, "testdata/scenarios/*.txt") }
