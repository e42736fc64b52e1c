// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// gauges is what one gateway's /metrics says.
type gauges struct {
	served      int // supervisors served by it
	maxSessions int // the most sessions on one of them
	overCap     int // admissions above the cap, ever
}

// scrape reads a gateway's /metrics.
func scrape(ctx context.Context, ops string) (gauges, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+ops+"/metrics", nil)
	if err != nil {
		return gauges{}, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return gauges{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return gauges{}, fmt.Errorf("%s: %s", req.URL, resp.Status)
	}
	return parse(resp.Body)
}

func parse(r io.Reader) (gauges, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(r)
	if err != nil {
		return gauges{}, err
	}
	sum := func(name string) (float64, error) {
		f := families[name]
		if f == nil {
			return 0, fmt.Errorf("/metrics lacks %s", name)
		}
		total := 0.0
		for _, m := range f.GetMetric() {
			total += m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
		return total, nil
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
		v, err := sum(s.name)
		if err != nil {
			return gauges{}, err
		}
		*s.into = int(v)
	}
	return g, nil
}
