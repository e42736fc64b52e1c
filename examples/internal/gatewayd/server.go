// SPDX-License-Identifier: Apache-2.0

package gatewayd

import (
	"context"
	"crypto/tls"
	"errors"
	"sync"
)

// ErrSuperseded: a newer process serves under this gateway's ID. This one has
// handed over what it served.
var ErrSuperseded = errors.New("gatewayd: a newer process has this gateway's -id")

// Server is one gateway process. It runs once. Drain and Expire may be called
// at any time, from any goroutine.
type Server struct {
	cfg    Config
	server *tls.Config // nil: plaintext
	client *tls.Config // nil: plaintext

	drain     chan struct{} // closed: hand over and end
	drainOnce sync.Once
	expire    chan struct{} // one waits: credentials have expired
}

// New makes a server. Its error joins every fault of cfg, and names the flags;
// the files of cfg.TLS must be there.
func New(cfg Config) (*Server, error) {
	cfg = cfg.resolved()
	server, serverErr := cfg.TLS.Server()
	client, clientErr := cfg.TLS.Client()
	if serverErr != nil {
		clientErr = nil // mostly the same again
	}
	if err := errors.Join(cfg.validate(), serverErr, clientErr); err != nil {
		return nil, err
	}
	return &Server{
		cfg: cfg, server: server, client: client, drain: make(chan struct{}), expire: make(chan struct{}, 1),
	}, nil
}

// Run serves until the gateway has handed over, which is asked for by Drain, or
// by a newer process under the same ID, or is forced by a listener that
// fails. It returns nil only in the first case, after every goroutine has ended. When
// ctx ends it stops at once: whoever is served finds another gateway by
// itself, and the error is ctx's cause.
func (s *Server) Run(ctx context.Context) error {
	p, err := s.start(ctx)
	if err != nil {
		return err
	}
	select {
	case <-s.drain:
		return p.handOver(ctx)
	case err := <-p.failed:
		p.log.Error("handing over, for the gateway cannot go on", "error", err)
		return errors.Join(err, p.handOver(ctx))
	case <-ctx.Done():
		p.leave(hurry)
		return context.Cause(ctx)
	}
}

// Drain makes Run hand over and return. Further calls change nothing.
func (s *Server) Drain() { s.drainOnce.Do(func() { close(s.drain) }) }

// Expire ends every stream, so that everybody comes back and shows the
// credentials of now. If the files of the own certificate are not in order
// it does nothing but say so: nobody could come back.
func (s *Server) Expire() {
	select {
	case s.expire <- struct{}{}:
	default: // one is due already
	}
}
