// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"fmt"

	"github.com/evenring/evenring/metrics"
	"github.com/evenring/evenring/redirect"
)

// An exporter for any system: describe once, then read as often as asked.
func ExampleCollect() {
	labels := map[string][]metrics.Label{}
	for _, desc := range metrics.All() {
		labels[desc.Name] = desc.Labels
	}
	// Of a running gateway: its Stats, and the Calls that watch it by forward.Hooks{Observe: calls.Observe}.
	stats := redirect.Stats{Served: 12, MostSessions: 40, HandoffsMoved: 3}
	var calls metrics.Calls
	for sample := range metrics.Collect(stats, calls.Stats()) {
		if sample.Value == 0 {
			continue
		}
		fmt.Print(sample.Name)
		for i, value := range sample.Labels {
			fmt.Printf(" %s=%s", labels[sample.Name][i].Name, value)
		}
		fmt.Println("", sample.Value)
	}
	// Output:
	// evenring_supervisors_served 12
	// evenring_sessions_per_supervisor_max 40
	// evenring_handoffs_total outcome=moved 3
}
