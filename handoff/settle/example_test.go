// SPDX-License-Identifier: Apache-2.0

package settle_test

import (
	"context"
	"fmt"
	"time"

	"github.com/evenring/evenring/handoff/settle"
	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// What an operator's button does on every gateway, some time after a rolling restart.
func ExampleRun() {
	gateway, err := redirect.NewGateway(redirect.Config{Gateway: "gw-1", Incarnation: 1, Endpoint: "10.0.0.1:7000", Peers: peers{}}, redirect.Hooks{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go gateway.Run(ctx, nil)
	cfg := settle.Config{Stable: time.Millisecond, Linger: time.Millisecond} // for a test; the zero Config is for everyday use
	report, err := settle.Run(ctx, gateway, cfg, settle.Hooks{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(report.Ending, len(report.Moved), report.Left)
	// Output:
	// even 0 0
}

// peers is a peer link that asks nobody: there is one gateway.
type peers struct{}

func (peers) Ask(context.Context, placement.Gateway, placement.Question) (placement.Answer, error) {
	return placement.Answer{}, context.Canceled
}

// A rolling restart of two gateways without surge has left one of them empty:
// one move, and then nothing.
func ExampleMachine() {
	served := map[ring.GatewayID]int{"gw-1": 2, "gw-2": 0}
	where := map[ring.MemberID]ring.GatewayID{"build-7": "gw-1", "build-8": "gw-1"}
	for range 2 {
		m, err := settle.New(settle.Config{})
		if err != nil {
			fmt.Println(err)
			return
		}
		look := func() (s redirect.Sight) {
			s.Self = "gw-1"
			for _, id := range []ring.GatewayID{"gw-1", "gw-2"} {
				s.Gateways = append(s.Gateways, placement.Gateway{
					ID: id, Endpoint: string(id), State: placement.Ready, Known: true, Counts: placement.Counts{Attached: served[id]},
				})
			}
			for _, one := range m.Watched() {
				s.Where = append(s.Where, redirect.Whereabouts{Member: one, At: where[one]})
			}
			return s
		}
		now := time.Unix(0, 0)
		actions := m.Step(now, settle.Begin{Sight: look()})
		for more := true; more; {
			for len(actions) > 0 {
				action := actions[0]
				actions = actions[1:]
				switch a := action.(type) {
				case settle.List:
					actions = m.Step(now, settle.Listed{Members: []redirect.Supervisor{
						{Member: "build-7", Movable: true}, {Member: "build-8", Movable: true, From: "gw-2"},
					}})
				case settle.Order:
					fmt.Printf("%s moves to %s, which keeps a place for it if it has fewer than %d\n", a.Member, a.To, a.Limit)
					actions = m.Step(now, settle.Ordered{Member: a.Member, Result: settle.Told})
					served["gw-1"], served[a.To], where[a.Member] = served["gw-1"]-1, served[a.To]+1, a.To
					actions = append(actions, m.Step(now, settle.Seen{Sight: look()})...)
				case settle.Finished:
					fmt.Println(a.Report)
				}
			}
			if now, more = m.Deadline(); more {
				actions = m.Step(now, settle.Seen{Sight: look()})
			}
		}
	}
	// Output:
	// build-8 moves to gw-2, which keeps a place for it if it has fewer than 1
	// settled: even, moved=1 failed=0 refused=0 left=0 spread=2->0 took=11s
	// settled: even, moved=0 failed=0 refused=0 left=0 spread=0->0 took=11s
}
