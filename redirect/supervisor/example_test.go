// SPDX-License-Identifier: Apache-2.0

package supervisor_test

import (
	"context"
	"fmt"
	"time"

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/internal/memnet"
	"github.com/evenring/evenring/redirect/supervisor"
)

// A client that keeps one stream to the gateway where it belongs. The transport
// is in memory here; redirectgrpc and redirectws bring real ones.
func ExampleRun() {
	var transport memnet.Network
	transport.Listen("gateways:443", memnet.Always(redirect.Verdict{Outcome: redirect.Redirect, Gateway: "gw-1", Endpoint: "10.0.0.1:443"}))
	transport.Listen("10.0.0.1:443", memnet.Always(redirect.Verdict{Outcome: redirect.Accept, Gateway: "gw-1"}))

	ctx, cancel := context.WithCancel(context.Background())
	cfg := supervisor.Config{Member: "supervisor-7", Service: "gateways:443"}
	err := supervisor.Run(ctx, cfg, &transport, supervisor.Hooks{
		Stream: func(_ redirect.Stream, home supervisor.Home) {
			fmt.Println("served by", home.Gateway, "at", home.Endpoint)
			cancel()
		},
	})
	fmt.Println("ended:", err)
	// Output:
	// served by gw-1 at 10.0.0.1:443
	// ended: <nil>
}

var noon = time.Date(2024, time.March, 1, 12, 0, 0, 0, time.UTC)

// The machine by itself, for a program with an event loop of its own.
func ExampleMachine() {
	machine, err := supervisor.New(supervisor.Config{Member: "supervisor-7", Service: "gateways:443"})
	if err != nil {
		panic(err)
	}
	for _, event := range []supervisor.Event{
		supervisor.Start{},
		supervisor.Answered{Generation: 1, Verdict: redirect.Verdict{Outcome: redirect.Redirect, Gateway: "gw-1", Endpoint: "10.0.0.1:443"}},
		supervisor.Answered{Generation: 2, Verdict: redirect.Verdict{Outcome: redirect.Accept, Gateway: "gw-1"}},
	} {
		for _, action := range machine.Step(noon, event) {
			switch a := action.(type) {
			case supervisor.Dial:
				fmt.Println("dial", a.Addr, "staying:", a.Hello.Stay)
			case supervisor.Adopt:
				fmt.Println("home is", a.Home.Gateway)
			}
		}
	}
	fmt.Println(machine.State())
	// Output:
	// dial gateways:443 staying: false
	// dial 10.0.0.1:443 staying: true
	// home is gw-1
	// attached
}

// Sessions follow the home that their supervisor publishes.
func ExampleHomes() {
	var homes supervisor.Homes
	_, changed := homes.Home()
	homes.Set(supervisor.Home{Gateway: "gw-1", Endpoint: "10.0.0.1:443"})
	<-changed
	home, _ := homes.Home()
	fmt.Println(home.Gateway)
	// Output: gw-1
}
