// SPDX-License-Identifier: Apache-2.0

package supervisord

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/examples/internal/report"
)

// opsOf waits for a process to say where its operators look.
func opsOf(t testing.TB, seen *events) string {
	eventually(t, func() bool { return len(seen.of("", report.Listening)) == 1 })
	return "http://" + seen.of("", report.Listening)[0].Ops
}

func get(t testing.TB, url string) (int, string) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	answer, err := client.Get(url)
	require.NoError(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(body)
}

// metric returns one sample of a scrape.
func metric(t testing.TB, scrape, name string) float64 {
	t.Helper()
	for line := range strings.Lines(scrape) {
		if text, ok := strings.CutPrefix(line, name+" "); ok {
			value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			require.NoError(t, err)
			return value
		}
	}
	require.Failf(t, "no such metric", "%s in\n%s", name, scrape)
	return 0
}

func TestOps(t *testing.T) {
	gw := alone(t, gateOptions{})
	seen, _ := start(t, Config{Service: gw.addr, Members: members(3), Sessions: 2, Ops: "127.0.0.1:0"})
	ops := opsOf(t, seen)
	eventually(t, func() bool { return seen.settled(3, 6) })
	gw.listener.cut()
	eventually(t, func() bool { return seen.cut(3, 6) && seen.settled(3, 6) })

	code, body := get(t, ops+"/healthz")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "ok\n", body)
	code, body = get(t, ops+"/readyz")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "all 3 supervisors are attached\n", body)

	_, scrape := get(t, ops+"/metrics")
	for name, want := range map[string]float64{
		`evenring_example_supervisors`:                      3,
		`evenring_example_supervisors_connected`:            3,
		`evenring_example_sessions`:                         6,
		`evenring_example_sessions_connected`:               6,
		`evenring_example_sessions_misplaced`:               0,
		`evenring_example_verdicts_total{outcome="accept"}`: 6,
		`evenring_example_verdicts_total{outcome="refuse"}`: 0,
		`evenring_example_gap_seconds_count`:                3,
		`evenring_example_gap_seconds_bucket{le="+Inf"}`:    3,
		`evenring_example_dial_failures_total`:              0,
	} {
		require.Equal(t, want, metric(t, scrape, name), name)
	}
	longest := 0.0
	for _, e := range seen.of("", report.Attached) {
		longest = max(longest, e.GapMS)
	}
	require.Positive(t, longest)
	require.InDelta(t, longest/1000, metric(t, scrape, "evenring_example_longest_gap_seconds"), 1e-6)
	require.Positive(t, metric(t, scrape, "go_goroutines"))
}

func TestNotReadyUntilAllAreAttached(t *testing.T) {
	seen, _ := start(t, Config{Service: "127.0.0.1:1", Members: members(2), Ops: "127.0.0.1:0"})
	ops := opsOf(t, seen)
	code, _ := get(t, ops+"/healthz")
	require.Equal(t, http.StatusOK, code)
	code, body := get(t, ops+"/readyz")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, "0 of 2 supervisors are attached; edge-1 is not\n", body)
	eventually(t, func() bool {
		_, scrape := get(t, ops+"/metrics")
		return metric(t, scrape, "evenring_example_dial_failures_total") >= 2
	})
}
