// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// ErrNotSent is what [Peers] report of a request that certainly has not reached
// the other gateway.
var ErrNotSent = errors.New("forward: the request was not sent")

// Gateway is this gateway; [redirect.Gateway] is one.
type Gateway interface {
	ID() ring.GatewayID
	// Route says who has a member, or a session of it, and gives a channel that is
	// closed once that may have changed.
	Route(m ring.MemberID, s redirect.SessionID) (roster.Route, <-chan struct{})
	// Deliver gives the request to its stream here, as [redirect.Gateway.Deliver] does.
	Deliver(ctx context.Context, req redirect.Request) ([]byte, error)
}

// Peers is the peer link's other half: what a gateway must bring to forward
// requests. It must be safe for concurrent use.
type Peers interface {
	// Forward hands the request to the gateway at to.Endpoint, whose end calls
	// [Call] with Config.Forwarded; what that returns will do. Errors:
	// [redirect.ErrNotHere], [redirect.ErrNotAnswering], [redirect.ErrUncertain],
	// [ErrNotSent], each of which may be wrapped, and ctx's. Any other error is the
	// member's own answer. When in doubt it is [redirect.ErrUncertain].
	Forward(ctx context.Context, to placement.Gateway, req redirect.Request) ([]byte, error)
}

// Hooks are what a program may watch. Each field may be nil.
type Hooks struct {
	// Observe sees every step of the machine, on the caller's goroutine.
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

	Forwarded bool // the request is one that another gateway has sent here
}

// Error says why a request has no answer.
type Error struct {
	Reason  Reason
	Member  ring.MemberID
	Session redirect.SessionID // empty: the member itself
	Err     error              // of the last attempt, or the context's; nil: there was none
}

// Error returns the reason and the last attempt's error.
func (e *Error) Error() string {
	text := fmt.Sprintf("forward: %s: member %q", e.Reason, e.Member)
	if e.Session != "" {
		text += fmt.Sprintf(", session %q", e.Session)
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the last attempt's error.
func (e *Error) Unwrap() error { return e.Err }

// Is makes what a forwarded [Call] returns fit for [Peers]: an error after which
// the request may have been executed is [redirect.ErrUncertain], and any other
// is [redirect.ErrNotHere].
func (e *Error) Is(target error) bool {
	if e.Reason == Lost || e.Reason == Stopped {
		return target == redirect.ErrUncertain
	}
	return target == redirect.ErrNotHere
}

// Call carries a request to whoever has its member, here or one hop away, and
// returns the answer. peers may be nil: then it goes nowhere else. The error is
// a [*Error], or [redirect.ErrNotAnswering], or else what the member answered
// with. ctx bounds all of it; without a deadline, nothing bounds how long a member
// takes to answer.
//
// It may be called from many goroutines at once, and starts none. A request
// whose member is not in view waits for a while, as cfg has it, and costs what its
// payload costs for so long.
func Call(ctx context.Context, cfg Config, gw Gateway, peers Peers, req redirect.Request, hooks Hooks) ([]byte, error) {
	cfg.Self, cfg.Idempotent = gw.ID(), req.Idempotent
	machine, err := New(cfg)
	if err != nil {
		return nil, err
	}
	c := call{ctx: ctx, machine: machine, gateway: gw, peers: peers, req: req, hooks: hooks}
	return c.run()
}

// call runs one machine.
type call struct {
	ctx     context.Context
	machine *Machine
	gateway Gateway
	peers   Peers
	req     redirect.Request
	hooks   Hooks

	answer []byte
	err    error // of the last attempt
}

func (c *call) run() ([]byte, error) {
	route, changed := c.gateway.Route(c.req.Member, c.req.Session)
	actions := c.step(Begin{route})
	for c.machine.State() != Over {
		switch c.machine.State() {
		case Sending:
			answered := c.send(actions)
			if c.over() != nil && answered.Outcome != Replied {
				actions = c.step(Stop{})
				continue
			}
			route, changed = c.gateway.Route(c.req.Member, c.req.Session)
			c.step(Routed{route})
			actions = c.step(answered)
		case Waiting:
			if !c.wait(changed) {
				actions = c.step(Stop{})
				continue
			}
			route, changed = c.gateway.Route(c.req.Member, c.req.Session)
			actions = c.step(Routed{route})
		}
	}
	switch reason := c.machine.Reason(); reason {
	case Done:
		return c.answer, c.err
	case Stopped:
		return nil, &Error{reason, c.req.Member, c.req.Session, c.over()}
	default:
		return nil, &Error{reason, c.req.Member, c.req.Session, c.err}
	}
}

// over returns why the caller's time is up, or nil. The other gateway has the
// same deadline, and may say so before the timer of ctx has fired here.
func (c *call) over() error {
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	if deadline, ok := c.ctx.Deadline(); ok && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return nil
}

// wait waits until the route may have changed, or time is up; false: ctx ended first.
func (c *call) wait(changed <-chan struct{}) bool {
	at, _ := c.machine.Deadline()
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-c.ctx.Done():
		return false
	}
	return true
}

// send carries out the Send among the actions.
func (c *call) send(actions []Action) Answered {
	for _, action := range actions {
		if s, ok := action.(Send); ok {
			c.answer, c.err = c.give(s.To)
			return Answered{s.Attempt, outcomeOf(c.err)}
		}
	}
	return Answered{}
}

func (c *call) give(to roster.Holder) ([]byte, error) {
	switch {
	case to.ID == c.gateway.ID():
		return c.gateway.Deliver(c.ctx, c.req)
	case c.peers == nil:
		return nil, fmt.Errorf("%w: there is no peer link", ErrNotSent)
	default:
		return c.peers.Forward(c.ctx, to.Gateway, c.req)
	}
}

func outcomeOf(err error) Outcome {
	switch {
	case errors.Is(err, redirect.ErrUncertain), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Uncertain
	case errors.Is(err, redirect.ErrNotHere):
		return NotHere
	case errors.Is(err, ErrNotSent):
		return NotSent
	default:
		return Replied
	}
}

func (c *call) step(event Event) []Action {
	now, before := time.Now(), c.machine.State()
	actions := c.machine.Step(now, event)
	if c.hooks.Observe != nil {
		c.hooks.Observe(Observation{now, event, before, c.machine.State(), actions, c.machine.cfg.Forwarded})
	}
	return actions
}
