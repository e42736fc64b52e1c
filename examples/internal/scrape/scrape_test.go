// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const text = `# TYPE served gauge
served 4
# TYPE bytes_total counter
bytes_total{link="a",direction="sent"} 1
bytes_total{link="b",direction="sent"} 2
bytes_total{link="a",direction="received"} 40
`

func TestSum(t *testing.T) {
	page, err := Parse(strings.NewReader(text))
	require.NoError(t, err)
	for _, row := range []struct {
		name   string
		labels []string
		want   float64
	}{
		{"served", nil, 4},
		{"bytes_total", nil, 43},
		{"bytes_total", []string{"direction", "sent"}, 3},
		{"bytes_total", []string{"direction", "sent", "link", "b"}, 2},
		{"bytes_total", []string{"direction", "lost"}, 0},
	} {
		got, err := page.Sum(row.name, row.labels...)
		require.NoError(t, err)
		require.Equal(t, row.want, got, "%+v", row)
	}
	_, err = page.Sum("lost_total")
	require.ErrorContains(t, err, "lacks lost_total")
}

func TestParseRefusesWhatIsNoMetricsPage(t *testing.T) {
	_, err := Parse(strings.NewReader("<html>"))
	require.Error(t, err)
}

// serve serves a text as /metrics, and returns where.
func serve(t *testing.T, status int) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			http.NotFound(w, r)
			return
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func TestGet(t *testing.T) {
	page, err := Get(t.Context(), serve(t, http.StatusOK))
	require.NoError(t, err)
	served, err := page.Sum("served")
	require.NoError(t, err)
	require.Equal(t, 4.0, served)
}

func TestGetFaults(t *testing.T) {
	_, err := Get(t.Context(), serve(t, http.StatusServiceUnavailable))
	require.ErrorContains(t, err, "/metrics: 503 Service Unavailable")

	_, err = Get(t.Context(), "not an address")
	require.Error(t, err)

	over := errors.New("it is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	_, err = Get(ctx, serve(t, http.StatusOK))
	require.ErrorIs(t, err, over)
}

// Other pages are read, too; what is wrong with one is said.
func TestOtherPages(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/json":
			_, _ = io.WriteString(w, `{"served":4}`)
		case "/readyz":
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, "draining\n")
		default:
			_, _ = io.WriteString(w, "ok")
		}
	}))
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	ops := server.Listener.Addr().String()
	var value struct{ Served int }
	require.NoError(t, JSON(t.Context(), ops, "/json?all=1", &value))
	require.Equal(t, 4, value.Served)
	require.EqualError(t, JSON(t.Context(), ops, "/healthz", &value), "http://"+ops+"/healthz: invalid character 'o' looking for beginning of value")
	require.EqualError(t, JSON(t.Context(), ops, "/readyz", &value), "http://"+ops+"/readyz: 503 Service Unavailable: draining")

	require.NoError(t, OK(t.Context(), ops, "/healthz"))
	require.EqualError(t, OK(t.Context(), ops, "/readyz"), "http://"+ops+"/readyz: 503 Service Unavailable: draining")
	require.Error(t, OK(t.Context(), "127.0.0.1:1", "/healthz"))
	require.Error(t, OK(t.Context(), "no address", "/healthz"))
}
