// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/evenring/evenring/handoff"
	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster/gossip"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/redirectgrpc"
	"github.com/evenring/evenring/redirect/supervisor"
	"github.com/evenring/evenring/ring"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve is the gateway of the README.
func serve(ctx context.Context, id ring.GatewayID, listener net.Listener, seeds []string, creds credentials.TransportCredentials, sigterm <-chan struct{}, joined func(*gossip.Mesh)) error {
	incarnation, bind := placement.Incarnation(time.Now().UnixNano()), "127.0.0.1:0"
	// readme:gateway
	gateway, err := redirect.NewGateway(redirect.Config{
		Gateway: id, Incarnation: incarnation, Endpoint: listener.Addr().String(),
		Peers: &redirectgrpc.Peers{Credentials: creds},
	}, redirect.Hooks{})
	if err != nil {
		return err
	}
	mesh, err := gossip.Join(ctx, gossip.Config{Gateway: id, Incarnation: incarnation, Bind: bind, Seeds: seeds}, gateway)
	if err != nil {
		return err
	}
	server := grpc.NewServer(redirectgrpc.ServerOptions()...)
	if err := redirectgrpc.Register(server, gateway, redirectgrpc.ServerConfig{}); err != nil {
		return err
	}
	go gateway.Run(ctx, mesh)
	go server.Serve(listener)
	<-sigterm
	report, err := handoff.Drain(ctx, gateway, handoff.Config{}, handoff.Hooks{})
	slog.Info("drained", "report", report, "error", err)
	// readme:end
	joined(mesh)
	server.Stop()
	return err
}

// attach is the supervisor of the README.
func attach(ctx context.Context, member ring.MemberID, service string, creds credentials.TransportCredentials, use func(redirect.Stream, supervisor.Home)) error {
	// readme:supervisor
	return supervisor.Run(ctx, supervisor.Config{
		Member:  member,  // who this is; outlives the process
		Service: service, // the address in front of all gateways
	}, redirectgrpc.Transport{
		Credentials: creds,
		Payloads:    16, // what the application sends on the stream
	}, supervisor.Hooks{
		Stream: use, // each accepted stream, and the gateway that it ends at
	})
	// readme:end
}

// The README's gateway and supervisor, together.
func TestReadme(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	sigterm, homes := make(chan struct{}), make(chan supervisor.Home, 1)
	var running sync.WaitGroup
	running.Go(func() {
		leave := func(m *gossip.Mesh) { _ = m.Leave(time.Second) }
		if err := serve(ctx, "gw-1", listener, nil, insecure.NewCredentials(), sigterm, leave); err != nil {
			t.Error(err)
		}
	})
	supervising, leave := context.WithCancel(ctx)
	var supervisors sync.WaitGroup
	supervisors.Go(func() {
		err := attach(supervising, "edge-17", listener.Addr().String(), insecure.NewCredentials(), func(_ redirect.Stream, h supervisor.Home) { homes <- h })
		if err != nil {
			t.Error(err)
		}
	})
	require.Equal(t, "gw-1", fmt.Sprint((<-homes).Gateway))
	leave()
	supervisors.Wait()
	close(sigterm)
	running.Wait()
}
