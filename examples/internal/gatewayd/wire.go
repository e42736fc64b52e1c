// SPDX-License-Identifier: Apache-2.0

package gatewayd

import (
	"net"
	"time"

	"github.com/evenring/evenring/examples/internal/wire"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/forward"
	"github.com/evenring/evenring/redirect/redirectgrpc"
	"github.com/evenring/evenring/redirect/redirectws"
)

// server answers supervisors, sessions, other gateways and callers, all at one address.
type server interface {
	// serve blocks until the server is shut down, or cannot go on.
	serve(net.Listener) error
	// shutdown takes nothing new, and ends the connections as they come to rest. It
	// does not end the streams, and cuts off what lasts longer than patience.
	shutdown(patience time.Duration)
	// stop cuts off whatever is left, and waits until nothing runs any more. It may come at any time.
	stop()
}

// peers is the link to the other gateways.
type peers interface {
	redirect.Peers
	forward.Peers
	Close() error
}

func (s *Server) newPeers() peers {
	if s.cfg.Transport == wire.WebSocket {
		return &redirectws.Peers{TLS: s.client, Plaintext: s.client == nil}
	}
	return &redirectgrpc.Peers{Credentials: transportCredentials(s.client)}
}

// newServer makes the server of p.gateway. It takes calls for every supervisor
// and session of the fleet. A fleet that does not trust all who dial, or all who call, sets
// Authorize there.
func (p *process) newServer() (server, error) {
	hooks := forward.Hooks{Observe: p.counted.Observe}
	if p.cfg.Transport == wire.WebSocket {
		return p.newWebServer(redirectws.ServerConfig{Calls: &redirectws.CallConfig{Peers: p.peers, Hooks: hooks}})
	}
	return p.newGRPCServer(redirectgrpc.ServerConfig{Calls: &redirectgrpc.CallConfig{Peers: p.peers, Hooks: hooks}})
}
