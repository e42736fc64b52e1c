// SPDX-License-Identifier: Apache-2.0

package redirect_test

import (
	"testing"

	"github.com/evenring/evenring/internal/sim/fleetscript"
)

// The conversations of fleets that show the admission's rules.
func TestScenarios(t *testing.T) { fleetscript.Run(t, "testdata/scenarios/*.txt") }
