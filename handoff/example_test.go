// SPDX-License-Identifier: Apache-2.0

package handoff_test

import (
	"context"
	"fmt"
	"time"

	"github.com/evenring/evenring/handoff"
	"github.com/evenring/evenring/redirect"
)

// The last thing that a gateway does before it stops its server.
func ExampleDrain() {
	gateway, err := redirect.NewGateway(redirect.Config{Gateway: "gw-1", Incarnation: 1}, redirect.Hooks{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	_, stream := gateway.Admit(ctx, redirect.Hello{Member: "veteran", Generation: 1}) // it cannot follow a redirect
	go func() {                                                                       // what the transport does for every stream
		for notice := range stream.Notices() {
			fmt.Println("told:", notice.Kind, notice.Reason)
		}
		stream.Leave(true)
	}()

	// Times for a test: hurry, but wait for the stream. The zero Config is for everyday use.
	report, err := handoff.Drain(ctx, gateway, handoff.Config{
		Propagation: time.Nanosecond, Margin: time.Minute, KillAfter: 2 * time.Minute,
	}, handoff.Hooks{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("served", report.Served(), "moved", len(report.Moved))
	for _, left := range report.Left {
		fmt.Println("left behind:", left.Member, left.Cause)
	}
	// Output:
	// told: end draining
	// served 1 moved 0
	// left behind: veteran immovable
}

// A loop of one's own: the machine says what to do and when to come back.
func ExampleMachine() {
	m, err := handoff.New(handoff.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	start := time.Unix(0, 0)
	now := start
	actions := m.Step(now, handoff.Begin{Members: []handoff.Member{
		{ID: "build-7", Movable: true},
		{ID: "build-8", Movable: true},
		{ID: "veteran"},
	}})
	for {
		for len(actions) > 0 {
			action := actions[0]
			actions = actions[1:]
			switch action := action.(type) {
			case handoff.Order:
				fmt.Printf("%5v  tell %s to move to gw-2\n", now.Sub(start), action.Member)
				actions = append(actions, m.Step(now, handoff.Ordered{Member: action.Member, Told: true, Target: "gw-2"})...)
				actions = append(actions, m.Step(now, handoff.Moved{Member: action.Member, To: "gw-2"})...)
			case handoff.Close:
				fmt.Printf("%5v  close %s\n", now.Sub(start), action.Member)
				actions = append(actions, m.Step(now, handoff.Closed{Member: action.Member})...)
			case handoff.Finished:
				fmt.Printf("%5v  %v\n", now.Sub(start), action.Report)
				for _, left := range action.Report.Left {
					fmt.Printf("       left behind: %s (%v)\n", left.Member, left.Cause)
				}
			}
		}
		next, more := m.Deadline()
		if !more {
			return
		}
		now = next
		actions = m.Step(now, handoff.Tick{})
	}
	// Output:
	//  5.5s  tell build-7 to move to gw-2
	// 10.5s  tell build-8 to move to gw-2
	// 12.5s  close veteran
	// 12.5s  drained: served=3 moved=2 closed=0 left=1 orders=2 took=12.5s
	//        left behind: veteran (immovable)
}

// A plan that the kill timer would cut short is refused at the start.
func ExampleConfig_Plan() {
	cfg := handoff.Config{Window: 2 * time.Minute, KillAfter: time.Minute}
	_, err := cfg.Plan()
	fmt.Println(err)

	cfg.Shrink = true
	plan, _ := cfg.Plan()
	fmt.Println("window", plan.Window.Round(time.Second), "deadline", plan.Deadline().Round(time.Second))
	// Output:
	// handoff: the plan does not fit: Propagation 3s + Window 2m0s + Confirm 10s + Margin 1s is more than KillAfter 1m0s
	// window 52s deadline 59s
}
