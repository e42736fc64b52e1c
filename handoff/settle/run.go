// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/evenring/evenring/redirect"
)

// ErrUnstable: the fleet did not become stable for Config.Patience. The error
// says what kept changing.
var ErrUnstable = errors.New("settle: the fleet is not stable")

// Hooks are what a program may watch. Each field may be nil. They are called one
// at a time by the goroutine that settles: a hook must not block.
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

// Run moves supervisors from gw to gateways that serve fewer, until gw is
// within the even share, and reports what became of each. It blocks until the
// settle is over, which takes Config.Stable at least. To even out a fleet, run it on
// every gateway.
//
// It returns with the report and an error if it was cut short: ctx's cause,
// [redirect.ErrDraining] if a drain of gw has begun, or [ErrUnstable]. Whoever was
// told to move may still do so then. Errors without a report: those of
// [Config.Validate], [redirect.ErrSettling] for a second settle while one runs,
// [redirect.ErrDraining], and [redirect.ErrNoPeers] for a gateway that cannot ask.
func Run(ctx context.Context, gw *redirect.Gateway, cfg Config, hooks Hooks) (Report, error) {
	machine, err := New(cfg)
	if err != nil {
		return Report{}, err
	}
	if ctx.Err() != nil {
		return Report{}, context.Cause(ctx)
	}
	session, err := gw.StartSettle()
	if err != nil {
		return Report{}, err
	}
	defer session.Stop()
	r := runner{gateway: gw, session: session, machine: machine, hooks: hooks, results: make(chan Ordered, machine.cfg.InFlight)}
	report := r.run(ctx)
	gw.HandedOver(report.counts())
	switch report.Ending {
	case Aborted:
		return report, context.Cause(ctx)
	case Draining:
		return report, redirect.ErrDraining
	case Unstable:
		return report, fmt.Errorf("%w: %s", ErrUnstable, report.Unrest)
	default:
		return report, nil
	}
}

// counts returns the report as a gateway counts it: moved, closed, still here.
func (r Report) counts() (moved, closed, left int) {
	for _, f := range r.Failed {
		if f.Cause == Vanished {
			closed++
		} else {
			left++
		}
	}
	return len(r.Moved), closed, left
}

// runner runs one machine over one gateway.
type runner struct {
	gateway *redirect.Gateway
	session *redirect.Settling
	machine *Machine
	hooks   Hooks

	orders    sync.WaitGroup
	ordersCtx context.Context
	results   chan Ordered // has room for every order under way
	changed   <-chan struct{}
}

func (r *runner) run(ctx context.Context) Report {
	var stopOrders context.CancelFunc
	r.ordersCtx, stopOrders = context.WithCancel(ctx)
	defer stopOrders()
	timer := time.NewTimer(0)
	defer timer.Stop()

	r.step(Begin{r.look()})
	for !r.machine.over() {
		timer.Stop()
		if at, ok := r.machine.Deadline(); ok {
			timer.Reset(time.Until(at))
		}
		select {
		case <-ctx.Done():
			r.finishOrders(stopOrders)
			r.step(Abort{})
		case result := <-r.results:
			r.step(Seen{r.look()})
			r.step(result)
		case <-r.changed:
			r.step(Seen{r.look()})
		case <-timer.C:
			r.step(Seen{r.look()})
			r.step(Tick{})
		}
	}
	r.finishOrders(stopOrders)
	return r.machine.Report(time.Now())
}

// finishOrders gives up the orders that are under way, and takes in their results.
func (r *runner) finishOrders(stop context.CancelFunc) {
	stop()
	r.orders.Wait()
	r.step(Seen{r.look()})
	for len(r.results) > 0 {
		r.step(<-r.results)
	}
}

// look looks at the fleet.
func (r *runner) look() (s redirect.Sight) {
	s, r.changed = r.session.Sight(r.machine.Watched()...)
	return s
}

func (r *runner) step(event Event) {
	now, before := time.Now(), r.machine.State()
	actions := r.machine.Step(now, event)
	if r.hooks.Observe != nil {
		r.hooks.Observe(Observation{now, event, before, r.machine.State(), actions})
	}
	for _, action := range actions {
		r.carryOut(action)
	}
}

func (r *runner) carryOut(action Action) {
	switch a := action.(type) {
	case List:
		r.step(Listed{r.gateway.Supervisors()})
	case Order:
		r.orders.Go(func() { r.results <- Ordered{a.Member, r.order(a)} })
	}
}

// order asks the target and, if it keeps a place, tells the supervisor to move.
func (r *runner) order(o Order) Result {
	switch _, err := r.session.MoveTo(r.ordersCtx, o.Member, o.To, o.Limit); {
	case err == nil:
		return Told
	case errors.Is(err, redirect.ErrNotHere), errors.Is(err, redirect.ErrNotMovable):
		return Absent
	default:
		return Refused
	}
}
