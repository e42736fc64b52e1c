// SPDX-License-Identifier: Apache-2.0

package gossip_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster/gossip"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// Two gateways on one machine. The second has the first as its seed, and knows
// what it serves before it serves anybody itself.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()

	start := func(id ring.GatewayID, seeds ...string) (*redirect.Gateway, *gossip.Mesh, error) {
		incarnation := placement.Incarnation(time.Now().UnixNano())
		gateway, err := redirect.NewGateway(redirect.Config{
			Gateway:     id,
			Incarnation: incarnation,
			Endpoint:    string(id) + ":443",
		}, redirect.Hooks{})
		if err != nil {
			return nil, nil, err
		}
		mesh, err := gossip.Join(ctx, gossip.Config{
			Gateway:     id,
			Incarnation: incarnation,
			Bind:        "127.0.0.1:0",
			Seeds:       seeds,
			Probe:       100 * time.Millisecond,
		}, gateway)
		if err != nil {
			return nil, nil, err
		}
		running.Go(func() { gateway.Run(ctx, mesh) })
		return gateway, mesh, mesh.WaitPeers(ctx)
	}

	first, seed, err := start("gw-0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer seed.Close()
	first.Admit(ctx, redirect.Hello{Member: "alpha", Generation: 1, CanRedirect: true})

	second, mesh, err := start("gw-1", seed.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, g := range second.Gateways() {
		fmt.Println(g.ID, g.Endpoint, g.Attached)
	}
	fmt.Println("goodbye:", mesh.Leave(5*time.Second))
	// Output:
	// gw-0 gw-0:443 1
	// gw-1 gw-1:443 0
	// goodbye: <nil>
}
