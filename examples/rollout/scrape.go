// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/evenring/evenring/examples/internal/scrape"
)

// gauges is what one gateway's /metrics says.
type gauges struct {
	served      int // supervisors served by it
	maxSessions int // the most sessions on one of them
	overCap     int // admissions above the cap, ever
}

// scrapeGauges reads a gateway's /metrics.
func scrapeGauges(ctx context.Context, ops string) (gauges, error) {
	page, err := scrape.Get(ctx, ops)
	if err != nil {
		return gauges{}, err
	}
	var g gauges
	for _, s := range []struct {
		name string
		into *int
	}{
		{"evenring_supervisors_served", &g.served},
		{"evenring_sessions_per_supervisor_max", &g.maxSessions},
		{"evenring_over_cap_admissions_total", &g.overCap},
	} {
		v, err := page.Sum(s.name)
		if err != nil {
			return gauges{}, err
		}
		*s.into = int(v)
	}
	return g, nil
}
