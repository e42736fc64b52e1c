// SPDX-License-Identifier: Apache-2.0

package gatewayd

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/evenring/evenring/redirect/redirectws"
)

// webServer serves over WebSocket and HTTP.
type webServer struct {
	http    *http.Server
	handler *redirectws.Handler
	serving sync.RWMutex // each request reads; cut writes
	halt    sync.Once
}

func (p *process) newWebServer(cfg redirectws.ServerConfig) (server, error) {
	handler, err := redirectws.NewHandler(p.gateway, cfg)
	if err != nil {
		return nil, err
	}
	s := &webServer{handler: handler}
	s.http = &http.Server{
		Handler: s, TLSConfig: p.server, ReadHeaderTimeout: 5 * time.Second,
		ErrorLog: slog.NewLogLogger(p.log.Handler(), slog.LevelDebug),
	}
	return s, nil
}

// ServeHTTP implements [http.Handler].
func (s *webServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.serving.TryRLock() {
		http.Error(w, "the gateway has stopped", http.StatusServiceUnavailable)
		return
	}
	defer s.serving.RUnlock()
	s.handler.ServeHTTP(w, r)
}

func (s *webServer) serve(l net.Listener) error {
	if s.http.TLSConfig != nil {
		return s.http.ServeTLS(l, "", "")
	}
	return s.http.Serve(l)
}

func (s *webServer) shutdown(patience time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var both sync.WaitGroup
	both.Go(func() { _ = s.handler.Shutdown(ctx) })
	both.Go(func() { _ = s.http.Shutdown(ctx) })
	both.Wait()
}

func (s *webServer) stop() { s.halt.Do(s.cut) }

func (s *webServer) cut() {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.http.Close()
	_ = s.handler.Shutdown(now)
	s.serving.Lock() // for good
}
