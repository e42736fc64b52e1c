// SPDX-License-Identifier: Apache-2.0

package roster_test

import (
	"fmt"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/ring"
)

// Two gateways learn of each other. Who runs a roster carries out its
// actions and steps it when it is due; here the messages go from one to the
// other without a network.
func Example() {
	now := time.Unix(0, 0)
	fleet := make(map[ring.GatewayID]*roster.Roster)
	for i, id := range []ring.GatewayID{"gw-0", "gw-1"} {
		r, err := roster.New(now, roster.Config{
			Gateway:     id,
			Incarnation: placement.Incarnation(i + 1),
			Endpoint:    string(id) + ":443",
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		fleet[id] = r
	}

	var step func(id ring.GatewayID, ev roster.Event)
	step = func(id ring.GatewayID, ev roster.Event) {
		for _, action := range fleet[id].Step(now, ev) {
			switch a := action.(type) {
			case roster.Send:
				message := roster.Append(nil, a.Message)
				for to := range fleet {
					if to == id || a.To != "" && a.To != to {
						continue
					}
					if m, err := roster.Decode(message); err == nil {
						step(to, roster.Received{From: id, Message: m})
					}
				}
			case roster.Placed:
				fmt.Printf("%s: %s has %s now\n", id, a.Gateway, a.Entries[0].Member)
			}
		}
	}
	advance := func(d time.Duration) {
		now = now.Add(d)
		step("gw-0", roster.Tick{})
		step("gw-1", roster.Tick{})
	}

	step("gw-0", roster.StateChanged{State: placement.Ready})
	step("gw-1", roster.StateChanged{State: placement.Ready})
	step("gw-0", roster.Attached{Member: "alpha", Generation: 1})
	step("gw-1", roster.Attached{Member: "beta", Generation: 1})
	advance(20 * time.Millisecond)
	step("gw-1", roster.Attached{Member: "alpha", Generation: 2}) // it moves
	advance(20 * time.Millisecond)

	for g := range fleet["gw-0"].Gateways() {
		fmt.Println(g.ID, g.Endpoint, g.State, g.Attached)
	}
	home, _, _ := fleet["gw-0"].Home("alpha")
	fmt.Println("alpha is at", home)
	fmt.Println("live:", fleet["gw-0"].Live())
	// Output:
	// gw-1: gw-0 has alpha now
	// gw-0: gw-1 has beta now
	// gw-0: gw-1 has alpha now
	// gw-0 gw-0:443 ready 1
	// gw-1 gw-1:443 ready 2
	// alpha is at gw-1
	// live: 2
}
