// SPDX-License-Identifier: Apache-2.0

package supervisord

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/evenring/evenring/redirect"
)

// figures are the process's metrics. The gateways' are another set, of package
// metrics; these say example in their names.
type figures struct {
	registry     *prometheus.Registry
	gaps         prometheus.Histogram
	verdicts     *prometheus.CounterVec
	dialFailures prometheus.Counter

	mu      sync.Mutex
	longest time.Duration // of the gaps
}

func newFigures(read func() tally) *figures {
	f := &figures{
		registry: prometheus.NewRegistry(),
		gaps: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "evenring_example_gap_seconds",
			Help:    "Time that a supervisor was without an accepted stream, once that has ended.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}),
		verdicts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "evenring_example_verdicts_total",
			Help: "Verdicts on supervisors' hellos, by outcome.",
		}, []string{"outcome"}),
		dialFailures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "evenring_example_dial_failures_total",
			Help: "Supervisors' dials that ended without a verdict.",
		}),
	}
	for _, outcome := range append(redirect.Outcomes(), redirect.None) {
		f.verdicts.WithLabelValues(outcome.String())
	}
	f.registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		f.gaps, f.verdicts, f.dialFailures,
		gauge("longest_gap_seconds", "The longest gap so far.", func() float64 { return f.longestGap().Seconds() }),
		gauge("supervisors", "Supervisors hosted here.", func() float64 { return float64(read().supervisors) }),
		gauge("supervisors_connected", "Supervisors with an accepted stream.", func() float64 { return float64(read().connected) }),
		gauge("sessions", "Sessions hosted here.", func() float64 { return float64(read().sessions) }),
		gauge("sessions_connected", "Sessions with an accepted stream.", func() float64 { return float64(read().served) }),
		gauge("sessions_misplaced", "Connected sessions that are not where their supervisor is.", func() float64 { return float64(read().misplaced) }),
	)
	return f
}

func gauge(name, help string, read func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "evenring_example_" + name, Help: help}, read)
}

func (f *figures) verdict(o redirect.Outcome) { f.verdicts.WithLabelValues(o.String()).Inc() }

func (f *figures) gap(d time.Duration) {
	f.gaps.Observe(d.Seconds())
	f.mu.Lock()
	defer f.mu.Unlock()
	f.longest = max(f.longest, d)
}

func (f *figures) longestGap() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.longest
}
