// SPDX-License-Identifier: Apache-2.0

package handoff

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/evenring/evenring/redirect"
)

// Hooks are what a program may watch. Each field may be nil. They are called one
// at a time by the goroutine that drains: a hook must not block.
type Hooks struct {
	// Observe sees every step of the machine. Logs and metrics come from here.
	Observe func(Observation)
}

// Observation is one step of the machine. It is the receiver's, but for the
// slices in it, which are to be read only.
type Observation struct {
	At      time.Time
	Event   Event
	Before  State
	After   State
	Actions []Action
}

// Drain hands over every supervisor that gw serves, and reports what became of
// each. It blocks until the drain is over; the streams of those left behind
// have then been told to end, unless Config.Keep is set, and half of Config.Margin is free to stop the server.
// The gateway stays draining, and refuses whoever it cannot send elsewhere.
//
// The end of ctx aborts the drain: the gateway is ready again, and Drain returns
// the report so far and ctx's cause. Do not use a context that ends when
// the process is asked to stop. Errors without a report: those of
// [Config.Validate], and [redirect.ErrDraining] for a second drain while one
// runs or after one is done.
//
// Drain calls the gateway's Peers from up to Config.InFlight goroutines, and
// returns after all of them have.
func Drain(ctx context.Context, gw *redirect.Gateway, cfg Config, hooks Hooks) (Report, error) {
	if cfg.Jitter == nil {
		cfg.Jitter = rand.Float64
	}
	machine, err := New(cfg)
	if err != nil {
		return Report{}, err
	}
	if ctx.Err() != nil {
		return Report{}, context.Cause(ctx)
	}
	d := drainer{gateway: gw, machine: machine, hooks: hooks, inbox: newInbox()}
	defer d.inbox.close()
	served, err := gw.StartDrain(d.inbox.departed)
	if err != nil {
		return Report{}, err
	}
	return d.run(ctx, served)
}

// drainer runs one machine over one gateway.
type drainer struct {
	gateway *redirect.Gateway
	machine *Machine
	hooks   Hooks
	inbox   *inbox

	orders    sync.WaitGroup
	ordersCtx context.Context
}

func (d *drainer) run(ctx context.Context, served []redirect.Supervisor) (Report, error) {
	var stopOrders context.CancelFunc
	d.ordersCtx, stopOrders = context.WithCancel(ctx)
	defer stopOrders()
	timer := time.NewTimer(0)
	defer timer.Stop()

	d.step(Begin{membersOf(served)})
	for !d.machine.over() {
		if at, ok := d.machine.Deadline(); ok {
			timer.Reset(time.Until(at))
		}
		select {
		case <-ctx.Done():
			d.catchUp()
			d.step(Abort{})
		case <-d.inbox.ready:
			d.catchUp()
		case <-timer.C:
			d.catchUp() // what has happened comes before what is due
			d.step(Tick{})
		}
	}
	stopOrders()
	d.orders.Wait()
	d.catchUp()

	report := d.machine.Report(time.Now())
	if report.Aborted {
		d.gateway.HandedOver(len(report.Moved), len(report.Closed), 0)
		return report, context.Cause(ctx)
	}
	d.gateway.HandedOver(len(report.Moved), len(report.Closed), len(report.Left))
	return report, nil
}

func (d *drainer) catchUp() {
	for _, event := range d.inbox.take() {
		d.step(event)
	}
}

func (d *drainer) step(event Event) {
	now, before := time.Now(), d.machine.State()
	actions := d.machine.Step(now, event)
	if d.hooks.Observe != nil {
		d.hooks.Observe(Observation{now, event, before, d.machine.State(), actions})
	}
	for _, action := range actions {
		d.carryOut(action)
	}
}

func (d *drainer) carryOut(action Action) {
	switch a := action.(type) {
	case Order:
		d.orders.Go(func() { d.inbox.put(d.order(a)) })
	case Close:
		d.gateway.End(a.Member, redirect.ReasonDraining)
	case Resume:
		d.orders.Wait() // their context has ended; nobody is told to leave a gateway that is ready
		d.gateway.StopDrain()
	}
}

// order tells one supervisor to move, to a target that is chosen now.
func (d *drainer) order(o Order) Ordered {
	ctx, cancel := context.WithDeadline(d.ordersCtx, o.Until)
	defer cancel()
	notice, err := d.gateway.MoveAway(ctx, o.Member)
	if err != nil {
		return Ordered{Member: o.Member}
	}
	return Ordered{Member: o.Member, Told: true, Target: notice.Gateway}
}

func membersOf(served []redirect.Supervisor) []Member {
	members := make([]Member, len(served))
	for i, s := range served {
		members[i] = Member{ID: s.Member, Movable: s.Movable}
	}
	return members
}

// inbox holds what has happened until the machine's goroutine takes it. Putting
// something in never blocks.
type inbox struct {
	ready chan struct{} // something is in it

	mu     sync.Mutex
	events []Event
	closed bool
}

func newInbox() *inbox { return &inbox{ready: make(chan struct{}, 1)} }

func (b *inbox) put(event Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.events = append(b.events, event)
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// departed is what the gateway calls for everybody who leaves it.
func (b *inbox) departed(d redirect.Departure) {
	if d.To == "" {
		b.put(Closed{d.Member})
	} else {
		b.put(Moved{Member: d.Member, To: d.To})
	}
}

// take empties the inbox.
func (b *inbox) take() []Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	events := b.events
	b.events = nil
	return events
}

// close makes the inbox forget what comes.
func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events, b.closed = nil, true
}
