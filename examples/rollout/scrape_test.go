// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

const metricsPage = `# HELP evenring_supervisors_served Supervisors served.
# TYPE evenring_supervisors_served gauge
evenring_supervisors_served 4
# HELP evenring_sessions_per_supervisor_max Most sessions of one supervisor.
# TYPE evenring_sessions_per_supervisor_max gauge
evenring_sessions_per_supervisor_max 2
# HELP evenring_over_cap_admissions_total Admissions above the cap.
# TYPE evenring_over_cap_admissions_total counter
evenring_over_cap_admissions_total{reason="alone"} 1
evenring_over_cap_admissions_total{reason="full"} 2
# TYPE go_goroutines gauge
go_goroutines 17
`

// opsPage serves texts as /metrics, one after the other and the last one ever after. It returns where.
func opsPage(t *testing.T, status int, texts ...string) string {
	t.Helper()
	var served atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			http.NotFound(w, r)
			return
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, texts[min(int(served.Add(1)), len(texts))-1])
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func TestScrapeGauges(t *testing.T) {
	g, err := scrapeGauges(t.Context(), opsPage(t, http.StatusOK, metricsPage))
	require.NoError(t, err)
	require.Equal(t, gauges{served: 4, maxSessions: 2, overCap: 3}, g)
}

func TestScrapeGaugesFaults(t *testing.T) {
	for _, name := range []string{"evenring_supervisors_served", "evenring_sessions_per_supervisor_max", "evenring_over_cap_admissions_total"} {
		_, err := scrapeGauges(t.Context(), opsPage(t, http.StatusOK, strings.ReplaceAll(metricsPage, name, "evenring_other")))
		require.ErrorContains(t, err, "lacks "+name)
	}
	_, err := scrapeGauges(t.Context(), opsPage(t, http.StatusServiceUnavailable, metricsPage))
	require.ErrorContains(t, err, "/metrics: 503 Service Unavailable")
}
