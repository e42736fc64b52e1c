// SPDX-License-Identifier: Apache-2.0

package prom_test

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/evenring/evenring/metrics"
	"github.com/evenring/evenring/metrics/prom"
	"github.com/evenring/evenring/redirect"
)

func ExampleNewCollector() {
	gateway, err := redirect.NewGateway(redirect.Config{Gateway: "gw-1", Incarnation: 1}, redirect.Hooks{})
	if err != nil {
		fmt.Println(err)
		return
	}
	registry := prometheus.NewRegistry()
	var calls metrics.Calls // its Observe goes to redirectgrpc.CallConfig.Hooks
	registry.MustRegister(prom.NewCollector(gateway.Stats, calls.Stats))

	families, err := registry.Gather()
	fmt.Println(len(families) > 20, err)
	// Output: true <nil>
}
