// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/internal/memnet"
	"github.com/evenring/evenring/redirect/session"
	"github.com/evenring/evenring/redirect/supervisor"
	"github.com/evenring/evenring/ring"
)

func accept(gateway ring.GatewayID, endpoint string) memnet.Answer {
	return memnet.Always(redirect.Verdict{Outcome: redirect.Accept, Gateway: gateway, Endpoint: endpoint, Incarnation: 1})
}

// A supervisor and its sessions, each with its own driver: the gateway tells
// the supervisor alone to move, and the sessions follow without a gap.
func TestRunS65(t *testing.T) {
	const children = 20
	synctest.Test(t, func(t *testing.T) {
		var network memnet.Network
		network.Listen("service", accept("A", "a"))
		network.Listen("a", accept("A", "a"))
		network.Listen("b", accept("B", "b"))
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error)
		var homes supervisor.Homes
		go func() {
			done <- supervisor.Run(ctx, supervisor.Config{Member: "s", Service: "service"}, &network, supervisor.Hooks{Home: homes.Set})
		}()
		gaps := make(chan bool, 2*children)
		for i := range children {
			cfg := session.Config{Session: redirect.SessionID(fmt.Sprint("c", i)), Member: "s", Service: "service"}
			go func() {
				done <- session.Run(ctx, cfg, &network, &homes, session.Hooks{
					Connected: func(connected bool, _ time.Time) { gaps <- connected },
				})
			}()
		}
		synctest.Wait()
		require.Len(t, network.At("service"), 1, "the supervisor")
		require.Len(t, network.At("a"), children)

		require.True(t, network.At("service")[0].Say(redirect.Notice{Kind: redirect.NoticeMove, Gateway: "B", Endpoint: "b"}))
		synctest.Wait()
		require.Len(t, network.At("b"), 1, "the supervisor goes first")
		require.Len(t, network.At("a"), children)
		<-time.After(1200 * time.Millisecond)
		synctest.Wait()
		require.Len(t, network.At("b"), 1+children)
		require.Len(t, gaps, children, "connected once, each of them, and never without")

		cancel()
		for range 1 + children {
			require.NoError(t, <-done)
		}
		require.Zero(t, network.Open())
	})
}

func TestRunS66(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network memnet.Network
		network.Listen("service", accept("B", "b"))
		network.Listen("c", accept("C", "c"))
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error)
		var homes supervisor.Homes
		served := make(chan ring.GatewayID, 8)
		var atHome atomic.Bool
		go func() {
			done <- session.Run(ctx, session.Config{Session: "c", Member: "s", Service: "service"}, &network, &homes, session.Hooks{
				Stream:  func(_ redirect.Stream, gateway ring.GatewayID) { served <- gateway },
				Observe: func(o session.Observation) { atHome.Store(o.AtHome) },
			})
		}()
		<-time.After(5*time.Second - 1)
		synctest.Wait()
		require.Empty(t, served, "it waits for its supervisor")
		<-time.After(1)
		synctest.Wait()
		require.Equal(t, ring.GatewayID("B"), <-served)
		require.False(t, atHome.Load())
		homes.Set(supervisor.Home{Gateway: "C", Endpoint: "c", Incarnation: 1})
		<-time.After(1200 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, ring.GatewayID("C"), <-served)
		require.True(t, atHome.Load())
		network.At("c")[0].Break()
		synctest.Wait()
		require.Equal(t, ring.GatewayID("C"), <-served)
		cancel()
		require.NoError(t, <-done)
		require.Zero(t, network.Open())
	})
}

func TestRunMisuse(t *testing.T) {
	var network memnet.Network
	var homes supervisor.Homes
	require.ErrorContains(t, session.Run(t.Context(), session.Config{}, &network, &homes, session.Hooks{}), "Config.Session")
	require.ErrorContains(t, session.Run(t.Context(), session.Config{}, nil, &homes, session.Hooks{}), "transport is nil")
	require.ErrorContains(t, session.Run(t.Context(), session.Config{}, &network, nil, session.Hooks{}), "no homes")
}

// A session beside its supervisor, in one program. The transport is in memory
// here; redirectgrpc and redirectws bring real ones.
func ExampleRun() {
	var transport memnet.Network
	transport.Listen("10.0.0.1:443", accept("gw-1", "10.0.0.1:443"))

	var homes supervisor.Homes // supervisor.Hooks{Home: homes.Set} keeps it up to date
	homes.Set(supervisor.Home{Gateway: "gw-1", Endpoint: "10.0.0.1:443"})

	ctx, cancel := context.WithCancel(context.Background())
	cfg := session.Config{Session: "sandbox-3", Member: "supervisor-7", Service: "gateways:443"}
	err := session.Run(ctx, cfg, &transport, &homes, session.Hooks{
		Stream: func(_ redirect.Stream, gateway ring.GatewayID) {
			fmt.Println("served by", gateway)
			cancel()
		},
	})
	fmt.Println("ended:", err)
	// Output:
	// served by gw-1
	// ended: <nil>
}
