// SPDX-License-Identifier: Apache-2.0

package supervisord

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	headerTimeout = 5 * time.Second
	farewell      = time.Second // for answers under way when the process stops
)

// handler serves what an operator asks.
func (f *fleet) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		t := f.tally()
		if t.connected < t.supervisors {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintf(w, "%d of %d supervisors are attached; %s is not\n", t.connected, t.supervisors, t.missing)
			return
		}
		fmt.Fprintf(w, "all %d supervisors are attached\n", t.supervisors)
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(f.figures.registry, promhttp.HandlerOpts{}))
	return mux
}

// serveOps serves on listener until stop is called, which waits for the end.
func serveOps(listener net.Listener, handler http.Handler, log *slog.Logger) (stop func()) {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("ops", "error", err)
		}
	}()
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), farewell)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
		<-done
	}
}
