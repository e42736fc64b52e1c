// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/internal/dialer"
	"github.com/evenring/evenring/redirect/supervisor"
	"github.com/evenring/evenring/ring"
)

// Homes tells where the supervisor is: its home of now, and a channel that is
// closed once it is no longer that. [supervisor.Homes] fits; a session in
// another process brings its own. It must not block.
type Homes interface {
	Home() (supervisor.Home, <-chan struct{})
}

// Hooks are what a program may watch. Each field may be nil. They are called one
// at a time by the goroutine that owns the machine, which nothing else can
// happen on meanwhile: a hook must not block.
type Hooks struct {
	// Stream is given each stream that is accepted, before the one that it
	// replaces is closed. The stream is the program's to send and receive on; Run
	// reads its notices and closes it.
	Stream func(stream redirect.Stream, gateway ring.GatewayID)
	// Connected is told when the first stream is accepted while there is none,
	// and when there is none again: what lies between false and true is a gap.
	Connected func(connected bool, at time.Time)
	// Observe sees every step of the machine. Logs and metrics come from here.
	Observe func(Observation)
}

// Observation is one step of the machine. It is the receiver's, but for the
// slices in it, which are to be read only.
type Observation struct {
	At      time.Time
	Event   Event
	Before  supervisor.State
	After   supervisor.State
	AtHome  bool // after the step
	Actions []Action
}

// Run keeps one stream to the supervisor's home until ctx ends. It then closes
// what is open, waits until nothing of it runs any more, and returns nil: an
// error means that an argument is not fit to run at all. A transport that
// ignores the end of a dial's context does not hold up later dials, but it does
// hold up the return.
//
// The values of ctx reach the transport.
func Run(ctx context.Context, cfg Config, transport redirect.Transport, homes Homes, hooks Hooks) error {
	if transport == nil {
		return errors.New("session: the transport is nil")
	}
	if homes == nil {
		return errors.New("session: there are no homes to follow")
	}
	if cfg.Jitter == nil {
		cfg.Jitter = rand.Float64
	}
	if cfg.Generation == 0 {
		cfg.Generation = placement.Generation(time.Now().UnixNano())
	}
	machine, err := New(cfg)
	if err != nil {
		return err
	}
	r := runner{machine: machine, dialer: dialer.New(ctx, transport), hooks: hooks}
	defer r.dialer.Shutdown()

	timer := time.NewTimer(0)
	defer timer.Stop()
	home, changed := homes.Home()
	r.step(HomeChanged{home})
	r.step(Start{})
	for machine.State() != supervisor.Stopped {
		if at, ok := machine.Deadline(); ok {
			timer.Reset(time.Until(at))
		} else {
			timer.Stop()
		}
		select {
		case <-ctx.Done():
			r.step(Stop{})
		case <-changed:
			home, changed = homes.Home()
			r.step(HomeChanged{home})
		case report := <-r.dialer.Reports():
			r.step(eventOf(report))
		case <-timer.C:
			r.step(Tick{})
		}
	}
	return nil
}

type runner struct {
	machine *Machine
	dialer  *dialer.Dialer
	hooks   Hooks
}

func (r *runner) step(event Event) {
	now, before := time.Now(), r.machine.State()
	actions := r.machine.Step(now, event)
	after := r.machine.State()
	if r.hooks.Observe != nil {
		r.hooks.Observe(Observation{now, event, before, after, r.machine.AtHome(), actions})
	}
	if r.hooks.Connected != nil && before.Connected() != after.Connected() {
		r.hooks.Connected(after.Connected(), now)
	}
	for _, action := range actions {
		r.carryOut(action)
	}
}

func (r *runner) carryOut(action Action) {
	switch a := action.(type) {
	case Dial:
		r.dialer.Dial(a.Addr, a.Hello, a.Timeout)
	case Abandon:
		r.dialer.Abandon(a.Generation)
	case Close:
		r.dialer.Close(a.Generation)
	case Adopt:
		if r.hooks.Stream == nil {
			return
		}
		// A stream that has ended already is none; its loss is the next report.
		if stream := r.dialer.Stream(a.Generation); stream != nil {
			r.hooks.Stream(stream, a.Gateway)
		}
	}
}

func eventOf(r dialer.Report) Event {
	switch {
	case r.Verdict != nil:
		return Answered{r.Generation, *r.Verdict}
	case r.Notice != nil:
		return Noticed{r.Generation, *r.Notice}
	case r.Lost:
		return Lost{r.Generation}
	default:
		return Failed{r.Generation, r.Err}
	}
}
