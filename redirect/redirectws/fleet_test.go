// SPDX-License-Identifier: Apache-2.0

package redirectws

import (
	"context"
	"crypto/tls"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// fleet is gateways on loopback, whose roster messages pass through memory.
type fleet struct {
	mu    sync.Mutex
	gates map[ring.GatewayID]*gate
}

// gate is one gateway: its admission, its handler and its peer link.
type gate struct {
	*redirect.Gateway
	addr    string
	peers   *Peers
	handler *Handler
}

// gateOptions is what differs between tests.
type gateOptions struct {
	server ServerConfig
	tls    *tls.Config // of the server; nil: plaintext
	peers  *tls.Config // of the peer link
	calls  *CallConfig // nil: none are taken; its Peers are the gate's own
}

func newFleet() *fleet { return &fleet{gates: make(map[ring.GatewayID]*gate)} }

func (f *fleet) start(t testing.TB, id ring.GatewayID, o gateOptions) *gate {
	l := listen(t, "127.0.0.1:0")
	g := &gate{addr: l.Addr().String(), peers: &Peers{TLS: o.peers, Plaintext: o.peers == nil}}
	t.Cleanup(func() { require.NoError(t, g.peers.Close()) })
	if o.calls != nil {
		calls := *o.calls
		calls.Peers = g.peers
		o.server.Calls = &calls
	}
	gw, err := redirect.NewGateway(redirect.Config{
		Gateway:     id,
		Incarnation: placement.Incarnation(time.Now().UnixNano()),
		Endpoint:    g.addr,
		Peers:       g.peers,
		AskTimeout:  patience, // a busy machine is no dead peer
	}, redirect.Hooks{})
	require.NoError(t, err)
	g.Gateway = gw

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); gw.Run(ctx, from{f, id}) }()
	t.Cleanup(func() { cancel(); <-done })
	g.handler, err = NewHandler(gw, o.server)
	require.NoError(t, err)
	if o.tls != nil {
		l = tls.NewListener(l, o.tls)
	}
	serve(t, l, g.handler)

	f.mu.Lock()
	f.gates[id] = g
	f.mu.Unlock()
	return g
}

// meet makes the gateways know each other.
func (f *fleet) meet(t testing.TB) {
	for id, g := range f.gates {
		for other := range f.gates {
			if other != id {
				g.Step(roster.LinkUp{Gateway: other})
			}
		}
	}
	for _, g := range f.gates {
		eventually(t, func() bool { return g.Stats().Placeable == len(f.gates) })
	}
}

// from is one gateway's end of the roster's transport.
type from struct {
	fleet *fleet
	id    ring.GatewayID
}

func (f from) Send(to ring.GatewayID, message []byte) error {
	f.fleet.mu.Lock()
	var targets []*gate
	for id, g := range f.fleet.gates {
		if id == to || to == "" && id != f.id {
			targets = append(targets, g)
		}
	}
	f.fleet.mu.Unlock()
	if len(targets) == 0 {
		return errors.New("nobody there")
	}
	m, err := roster.Decode(message)
	if err != nil {
		return err
	}
	for _, g := range targets {
		g.Step(roster.Received{From: f.id, Message: m})
	}
	return nil
}

// alone starts a gateway that has no peers.
func alone(t testing.TB, cfg ServerConfig) *gate {
	f := newFleet()
	g := f.start(t, "gw", gateOptions{server: cfg})
	f.meet(t)
	return g
}
