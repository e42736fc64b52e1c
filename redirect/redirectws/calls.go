// SPDX-License-Identifier: Apache-2.0

package redirectws

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/carry"
	"github.com/evenring/evenring/redirect/forward"
)

// DefaultCallTimeout is the default of [CallConfig].
const DefaultCallTimeout = 30 * time.Second

// MaxCallBytes is how long the payload of a request, or of an answer, may be. A
// longer one is refused with status 413. It is what package redirectgrpc takes too.
const MaxCallBytes = 4<<20 - 64<<10

const maxErrorText = 8 << 10 // bytes

// Error is what a supervisor, or a session, answers a request with that it does
// not carry out; [Transport.Serve] returns one. It is also how a gateway turns a
// call away that it has not looked at.
type Error struct {
	Status  int // of HTTP, from 400 to 599; any other is 500
	Message string
}

// Error returns the status and the message.
func (e *Error) Error() string {
	return fmt.Sprintf("redirectws: %d %s: %s", e.Status, http.StatusText(e.Status), e.Message)
}

func errorf(status int, format string, args ...any) *Error {
	return &Error{status, fmt.Sprintf(format, args...)}
}

// CallConfig says how a gateway treats callers: whoever wants something of a
// supervisor, or of a session, wherever that is. The zero value of every field
// is its default. It also lets other gateways forward calls here.
type CallConfig struct {
	// Peers carries calls to the gateways that have the members; a [*Peers] does.
	// nil: only this gateway's own members can be called here.
	Peers forward.Peers

	// Authorize decides whether the caller may make this request. [RequestFrom]
	// has the request that it came in: the headers, the certificate. An
	// error ends the call with status 403 and the error's text. It
	// is not asked about calls that another gateway forwards; it was there. nil:
	// everybody may.
	Authorize func(context.Context, redirect.Request) error

	// Timeout bounds a call whose caller has set no deadline. 0: 30 s.
	Timeout time.Duration

	// Forward says how long a call waits for a member that is on its way. Its
	// other fields are set for each call.
	Forward forward.Config
	// Hooks watch the calls that are made here, and those that others forward here.
	Hooks forward.Hooks
}

// Validate reports every fault, each naming its field.
func (c CallConfig) Validate() error {
	var errs []error
	if c.Timeout < 0 {
		errs = append(errs, fmt.Errorf("redirectws: CallConfig.Timeout is %v; it cannot be below 0", c.Timeout))
	}
	c.Forward.Self = "any"
	if err := c.Forward.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("redirectws: CallConfig.Forward: %w", err))
	}
	return errors.Join(errs...)
}

func (c CallConfig) resolved() CallConfig {
	c.Timeout = cmp.Or(c.Timeout, DefaultCallTimeout)
	c.Forward.Forwarded = false
	return c
}

const noCalls = "this gateway takes no calls"

// call answers a caller.
func (h *Handler) call(w http.ResponseWriter, r *http.Request) {
	if h.cfg.Calls == nil {
		turnAway(w, http.StatusNotImplemented, noCalls)
		return
	}
	var c callWord
	if !take(w, r, &c) {
		return
	}
	req := callFromWire(&c)
	if req.Member == "" {
		turnAway(w, http.StatusBadRequest, "whom? the member is empty")
		return
	}
	ctx := withRequest(r)
	if h.cfg.Calls.Authorize != nil {
		if err := h.cfg.Calls.Authorize(ctx, req); err != nil {
			turnAway(w, http.StatusForbidden, err.Error())
			return
		}
	}
	ctx, cancel := bounded(ctx, cmp.Or(c.Timeout, span(h.cfg.Calls.Timeout)))
	defer cancel()
	answer, err := forward.Call(ctx, h.cfg.Calls.Forward, h.gw, h.cfg.Calls.Peers, req, h.cfg.Calls.Hooks)
	if h.gw.Ready().Supervisors.Reason == roster.ReasonDraining {
		// The connection is closed soon. Better between two requests than under one,
		// of which nobody could say whether it was executed.
		w.Header().Set("Connection", "close")
	}
	status, reply := callReply(answer, err)
	data, err := encode(reply)
	give(w, status, data, err)
}

// forward answers another gateway that was called for a member which should be here.
func (h *Handler) forward(w http.ResponseWriter, r *http.Request) {
	if h.cfg.Calls == nil {
		turnAway(w, http.StatusNotImplemented, noCalls)
		return
	}
	var c callWord
	if !take(w, r, &c) {
		return
	}
	ctx, cancel := bounded(r.Context(), c.Timeout)
	defer cancel()
	cfg := h.cfg.Calls.Forward
	cfg.Forwarded = true
	data, err := encode(replyToWire(forward.Call(ctx, cfg, h.gw, nil, callFromWire(&c), h.cfg.Calls.Hooks)))
	give(w, http.StatusOK, data, err)
}

// ask answers another gateway's question.
func (h *Handler) ask(w http.ResponseWriter, r *http.Request) {
	var q questionWord
	if !take(w, r, &q) {
		return
	}
	data, err := encodeAnswer(h.gw.Asked(questionFromWire(&q)))
	give(w, http.StatusOK, data, err)
}

// The outcomes on the wire. A caller hears the texts of [forward.Reason] too.
const (
	wireAnswered     = "answered"
	wireNotHere      = "not-here"
	wireNotAnswering = "no-calls"
	wireUncertain    = "uncertain"
	wireRefused      = "refused"
)

// callReply is what a caller is told.
func callReply(answer []byte, err error) (int, *replyWord) {
	var failed *forward.Error
	if !errors.As(err, &failed) {
		reply := replyToWire(answer, err)
		switch reply.Outcome {
		case wireAnswered:
			return cmp.Or(reply.Status, http.StatusOK), reply
		default: // the member answers no requests
			return http.StatusNotImplemented, reply
		}
	}
	text := ""
	if failed.Err != nil {
		text = clip(failed.Err.Error(), maxErrorText)
	}
	return reasonStatus(failed), &replyWord{Outcome: failed.Reason.String(), Message: text}
}

func reasonStatus(e *forward.Error) int {
	switch e.Reason {
	case forward.Nobody:
		return http.StatusNotFound
	case forward.Incomplete, forward.Away, forward.Missed, forward.Unreachable:
		return http.StatusServiceUnavailable
	case forward.Stopped:
		return http.StatusGatewayTimeout
	default:
		return http.StatusBadGateway // it is not safe to try again
	}
}

// replyToWire says what became of a request.
func replyToWire(answer []byte, err error) *replyWord {
	var told *Error
	switch {
	case err == nil:
		return &replyWord{Outcome: wireAnswered, Payload: answer}
	case errors.Is(err, redirect.ErrUncertain):
		return &replyWord{Outcome: wireUncertain}
	case errors.Is(err, redirect.ErrNotHere):
		return &replyWord{Outcome: wireNotHere}
	case errors.Is(err, redirect.ErrNotAnswering):
		return &replyWord{Outcome: wireNotAnswering}
	case !errors.As(err, &told):
		told = &Error{Message: err.Error()}
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			told.Status = http.StatusGatewayTimeout
		case errors.Is(err, carry.ErrTooMany):
			told.Status = http.StatusTooManyRequests
		}
	}
	return &replyWord{Outcome: wireAnswered, Status: failure(told.Status), Message: clip(told.Message, maxErrorText)}
}

// failure returns a status that says so.
func failure(status int) int {
	if status < 400 || status > 599 {
		return http.StatusInternalServerError
	}
	return status
}

// replyFromWire is its inverse, as [redirect.Gateway.Deliver] has it. Who says
// what is not known may have executed the request.
func replyFromWire(w *replyWord) ([]byte, error) {
	switch w.Outcome {
	case wireAnswered:
		if w.Status != 0 {
			return nil, &Error{failure(w.Status), w.Message}
		}
		return some(w.Payload), nil
	case wireNotHere:
		return nil, redirect.ErrNotHere
	case wireNotAnswering:
		return nil, redirect.ErrNotAnswering
	default:
		return nil, redirect.ErrUncertain
	}
}

// tooLong refuses a payload that the other end would not take.
func tooLong(what string, payload []byte, limit int) error {
	if len(payload) <= limit {
		return nil
	}
	return errorf(http.StatusRequestEntityTooLarge, "the %s has %d bytes; it may have %d", what, len(payload), limit)
}
