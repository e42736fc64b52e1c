// SPDX-License-Identifier: Apache-2.0

package redirect_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/supervisor"
	"github.com/evenring/evenring/ring"
)

// memory is a transport of our own: a map of who listens where. On the
// supervisor's side it takes one method, Dial; on the gateway's side three calls:
// Admit, Notices and Leave.
type memory map[string]*redirect.Gateway

func (m memory) Dial(ctx context.Context, addr string, hello redirect.Hello) (redirect.Verdict, redirect.Stream, error) {
	gateway := m[addr]
	if gateway == nil {
		return redirect.Verdict{}, nil, errors.New("nobody listens at " + addr)
	}
	verdict, attachment := gateway.Admit(ctx, hello)
	if attachment == nil {
		return verdict, nil, nil
	}
	return verdict, stream{attachment}, nil
}

// Ask is the peer link, which is one more method.
func (m memory) Ask(_ context.Context, to placement.Gateway, q placement.Question) (placement.Answer, error) {
	if m[to.Endpoint] == nil {
		return placement.Answer{}, errors.New("nobody listens at " + to.Endpoint)
	}
	return m[to.Endpoint].Asked(q), nil
}

type stream struct{ attachment *redirect.Attachment }

func (s stream) Notice() (redirect.Notice, error) {
	n, ok := <-s.attachment.Notices()
	if !ok {
		return redirect.Notice{}, io.EOF
	}
	return n, nil
}

func (s stream) Close() error {
	s.attachment.Leave(true)
	return nil
}

// Send carries the roster's messages, from each gateway to all others: whose
// they are stands in them.
func (m memory) Send(to ring.GatewayID, message []byte) error {
	decoded, err := roster.Decode(message)
	if err != nil {
		return err
	}
	for id, gateway := range m {
		if to == "" || string(to) == id {
			gateway.Step(roster.Received{Message: decoded}) // its own it passes over
		}
	}
	return nil
}

// A transport that nobody has foreseen: two gateways and two supervisors in
// one process, talking through a map.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	network := memory{}
	for i, id := range []ring.GatewayID{"gw-1", "gw-2"} {
		gateway, err := redirect.NewGateway(redirect.Config{
			Gateway: id, Incarnation: placement.Incarnation(i + 1), Endpoint: string(id), Peers: network,
		}, redirect.Hooks{})
		if err != nil {
			fmt.Println(err)
			return
		}
		network[string(id)] = gateway
	}
	one, two := network["gw-1"], network["gw-2"]
	var running sync.WaitGroup
	running.Go(func() { one.Run(ctx, network) })
	running.Go(func() { two.Run(ctx, network) })
	one.Step(roster.LinkUp{Gateway: "gw-2"})
	two.Step(roster.LinkUp{Gateway: "gw-1"})
	for one.Stats().Placeable < 2 || two.Stats().Placeable < 2 {
		<-time.After(time.Millisecond) // until they have heard of each other
	}

	homes := make(chan ring.GatewayID)
	for _, member := range []ring.MemberID{"edge-1", "edge-2"} {
		running.Go(func() {
			cfg := supervisor.Config{Member: member, Service: "gw-1"} // a load balancer that picks badly
			hooks := supervisor.Hooks{Home: func(h supervisor.Home) {
				select {
				case homes <- h.Gateway:
				case <-ctx.Done():
				}
			}}
			if err := supervisor.Run(ctx, cfg, network, hooks); err != nil {
				fmt.Println(err)
			}
		})
	}
	served := map[ring.GatewayID]int{}
	for range 2 {
		served[<-homes]++
	}
	fmt.Println(served)

	stop()
	running.Wait()
	// Output: map[gw-1:1 gw-2:1]
}
