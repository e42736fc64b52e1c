// SPDX-License-Identifier: Apache-2.0

package prom_test

import (
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/metrics"
	"github.com/evenring/evenring/metrics/prom"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/forward"
)

func TestLint(t *testing.T) {
	problems, err := testutil.GatherAndLint(registry(t, newGateway(t).Stats))
	require.NoError(t, err)
	require.Empty(t, problems)
}

// S9: from the start there is every series, and none is not a number.
func TestS9(t *testing.T) {
	stats := newGateway(t).Stats
	families, err := registry(t, stats).Gather()
	require.NoError(t, err)
	kinds := map[string]string{}
	series := 0
	for _, f := range families {
		kinds[f.GetName()] = strings.ToLower(f.GetType().String())
		for _, m := range f.GetMetric() {
			series++
			value := m.GetGauge().GetValue() + m.GetCounter().GetValue()
			require.False(t, math.IsNaN(value) || math.IsInf(value, 0) || value < 0, "%s %v", f.GetName(), m)
		}
	}
	want := 0
	for range metrics.Collect(stats(), metrics.CallStats{}) {
		want++
	}
	require.Equal(t, want, series)
	require.Len(t, kinds, len(metrics.All()))
	for _, d := range metrics.All() {
		require.Equal(t, d.Kind.String(), kinds[d.Name], d.Name)
	}
}

func TestExposition(t *testing.T) {
	stats := func() redirect.Stats {
		return redirect.Stats{Served: 12, MostSessions: 40, RingMismatches: 2, HandoffsMoved: 3, HandoffsLeftBehind: 1}
	}
	err := testutil.GatherAndCompare(registry(t, stats), strings.NewReader(`
# HELP evenring_handoffs_total Supervisors served when a drain of this gateway began, and those that a settle told to move, by what became of them.
# TYPE evenring_handoffs_total counter
evenring_handoffs_total{outcome="closed"} 0
evenring_handoffs_total{outcome="left-behind"} 1
evenring_handoffs_total{outcome="moved"} 3
# HELP evenring_ring_mismatches Known gateways that compute other rings than this one, by another version or configuration.
# TYPE evenring_ring_mismatches gauge
evenring_ring_mismatches 2
# HELP evenring_sessions_per_supervisor_max Most child sessions on one supervisor that is attached to this gateway.
# TYPE evenring_sessions_per_supervisor_max gauge
evenring_sessions_per_supervisor_max 40
# HELP evenring_supervisors_served Supervisors attached to this gateway.
# TYPE evenring_supervisors_served gauge
evenring_supervisors_served 12
`), "evenring_supervisors_served", "evenring_sessions_per_supervisor_max", "evenring_ring_mismatches", "evenring_handoffs_total")
	require.NoError(t, err)
}

// What was counted of calls shows, and a gateway without any shows zeros.
func TestCallsShow(t *testing.T) {
	calls := func() metrics.CallStats {
		return metrics.CallStats{Attempts: map[forward.Outcome]uint64{forward.Replied: 5, forward.NotSent: 2}, Waits: 3}
	}
	r := prometheus.NewPedanticRegistry()
	require.NoError(t, r.Register(prom.NewCollector(newGateway(t).Stats, calls)))
	err := testutil.GatherAndCompare(r, strings.NewReader(`
# HELP evenring_call_attempts_total Times that a call was given to a stream here or to another gateway, by what became of it.
# TYPE evenring_call_attempts_total counter
evenring_call_attempts_total{outcome="not-here"} 0
evenring_call_attempts_total{outcome="not-sent"} 2
evenring_call_attempts_total{outcome="replied"} 5
evenring_call_attempts_total{outcome="uncertain"} 0
# HELP evenring_call_waits_total Times that a call had to wait for word of its member.
# TYPE evenring_call_waits_total counter
evenring_call_waits_total 3
`), "evenring_call_attempts_total", "evenring_call_waits_total")
	require.NoError(t, err)
}

func TestScrapesAtOnce(t *testing.T) {
	r := registry(t, newGateway(t).Stats)
	var scrapes sync.WaitGroup
	for range 8 {
		scrapes.Go(func() {
			if _, err := r.Gather(); err != nil {
				t.Error(err)
			}
		})
	}
	scrapes.Wait()
}

func TestTwoGatewaysInOneProcess(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	for _, zone := range []string{"east", "west"} {
		wrapped := prometheus.WrapRegistererWith(prometheus.Labels{"zone": zone}, r)
		require.NoError(t, wrapped.Register(prom.NewCollector(newGateway(t).Stats, nil)))
	}
	n, err := testutil.GatherAndCount(r, "evenring_supervisors_served")
	require.NoError(t, err)
	require.Equal(t, 2, n)
}

func registry(t testing.TB, stats func() redirect.Stats) *prometheus.Registry {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	require.NoError(t, r.Register(prom.NewCollector(stats, nil)))
	return r
}

func newGateway(t testing.TB) *redirect.Gateway {
	t.Helper()
	gw, err := redirect.NewGateway(redirect.Config{Gateway: "gw-1", Incarnation: 1}, redirect.Hooks{})
	require.NoError(t, err)
	return gw
}

func BenchmarkGather(b *testing.B) {
	r := registry(b, newGateway(b).Stats)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}
