// SPDX-License-Identifier: Apache-2.0

// Package prom shows a gateway's metrics to Prometheus.
//
//	registry.MustRegister(prom.NewCollector(gateway.Stats, calls.Stats))
//
// Which metrics there are is said by package metrics. To tell several gateways in one
// process apart, register through [prometheus.WrapRegistererWith].
package prom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/evenring/evenring/metrics"
	"github.com/evenring/evenring/redirect"
)

// Collector reads a gateway's metrics with every scrape, and holds none of its own.
type Collector struct {
	stats func() redirect.Stats
	calls func() metrics.CallStats
	descs map[string]described
	order []*prometheus.Desc
}

type described struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

var _ prometheus.Collector = (*Collector)(nil)

// NewCollector returns a collector over stats, usually a gateway's Stats
// method, and calls, usually the Stats method of a [metrics.Calls]; nil: this gateway
// takes no calls. It is safe for concurrent use if both are.
func NewCollector(stats func() redirect.Stats, calls func() metrics.CallStats) *Collector {
	if calls == nil {
		calls = func() metrics.CallStats { return metrics.CallStats{} }
	}
	c := &Collector{stats: stats, calls: calls, descs: make(map[string]described)}
	for _, d := range metrics.All() {
		names := make([]string, len(d.Labels))
		for i, l := range d.Labels {
			names[i] = l.Name
		}
		desc := prometheus.NewDesc(d.Name, d.Help, names, nil)
		c.descs[d.Name] = described{desc, kindOf(d.Kind)}
		c.order = append(c.order, desc)
	}
	return c
}

// Describe implements [prometheus.Collector].
func (c *Collector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range c.order {
		descs <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	for s := range metrics.Collect(c.stats(), c.calls()) {
		d := c.descs[s.Name]
		out <- prometheus.MustNewConstMetric(d.desc, d.kind, s.Value, s.Labels...)
	}
}

func kindOf(k metrics.Kind) prometheus.ValueType {
	if k == metrics.Counter {
		return prometheus.CounterValue
	}
	return prometheus.GaugeValue
}
