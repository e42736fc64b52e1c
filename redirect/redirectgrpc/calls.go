// SPDX-License-Identifier: Apache-2.0

package redirectgrpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/carry"
	"github.com/evenring/evenring/redirect/forward"
	"github.com/evenring/evenring/redirect/redirectgrpc/evenringpb"
)

// DefaultCallTimeout is the default of [CallConfig].
const DefaultCallTimeout = 30 * time.Second

// MaxCallBytes is how long the payload of a request, or of an answer, may be. A
// longer one is refused with status ResourceExhausted: with what goes with it, it
// would not fit into a message of 4 MiB, which is as much as gRPC takes by
// default, and a stream on which more comes breaks.
const MaxCallBytes = 4<<20 - 64<<10

const maxMessage = 8 << 10 // of an error's text

// CallConfig says how a gateway treats callers: whoever wants something of a
// supervisor, or of a session, wherever that is. The zero value of every field
// is its default. It also lets other gateways forward calls here.
type CallConfig struct {
	// Peers carries calls to the gateways that have the members; a [*Peers] does.
	// nil: only this gateway's own members can be called here.
	Peers forward.Peers

	// Authorize decides whether the caller may make this request. The context
	// carries what gRPC knows: the peer and its certificate, the metadata. An
	// error ends the call with status PermissionDenied and the error's text. It
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
		errs = append(errs, fmt.Errorf("redirectgrpc: CallConfig.Timeout is %v; it cannot be below 0", c.Timeout))
	}
	c.Forward.Self = "any"
	if err := c.Forward.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("redirectgrpc: CallConfig.Forward: %w", err))
	}
	return errors.Join(errs...)
}

func (c CallConfig) resolved() CallConfig {
	c.Timeout = cmp.Or(c.Timeout, DefaultCallTimeout)
	c.Forward.Forwarded = false
	return c
}

type callerServer struct {
	evenringpb.UnimplementedCallerServer
	gw  *redirect.Gateway
	cfg CallConfig
}

func (c callerServer) Call(ctx context.Context, r *evenringpb.CallRequest) (*evenringpb.CallReply, error) {
	req := requestFromWire(r)
	if req.Member == "" {
		return nil, status.Error(codes.InvalidArgument, "whom? the member is empty")
	}
	if c.cfg.Authorize != nil {
		if err := c.cfg.Authorize(ctx, req); err != nil {
			return nil, status.Error(codes.PermissionDenied, err.Error())
		}
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.cfg.Timeout)
		defer cancel()
	}
	answer, err := forward.Call(ctx, c.cfg.Forward, c.gw, c.cfg.Peers, req, c.cfg.Hooks)
	if err != nil {
		return nil, callStatus(err).Err()
	}
	return &evenringpb.CallReply{Payload: answer}, nil
}

// Forward answers another gateway that was called for a member which should be here.
func (p peerServer) Forward(ctx context.Context, r *evenringpb.CallRequest) (*evenringpb.Reply, error) {
	if p.calls == nil {
		return nil, status.Error(codes.Unimplemented, "this gateway takes no calls")
	}
	cfg := p.calls.Forward
	cfg.Forwarded = true
	answer, err := forward.Call(ctx, cfg, p.gw, nil, requestFromWire(r), p.calls.Hooks)
	return replyToWire(answer, err), nil
}

// callStatus is what a caller is told of an error. Its details say what a [Caller] makes of it.
func callStatus(err error) *status.Status {
	s, told := statusOf(err), replyToWire(nil, err)
	var failed *forward.Error
	switch {
	case errors.As(err, &failed):
		s = status.New(reasonCode(failed), clip(err.Error()))
		told = &evenringpb.Reply{Outcome: failed.Reason.String()}
		if failed.Err != nil {
			told.Message = clip(failed.Err.Error())
		}
	case errors.Is(err, redirect.ErrNotAnswering):
		s = status.New(codes.Unimplemented, err.Error())
	default: // text that is not valid would cost the details
		s = status.New(s.Code(), clip(s.Message()))
	}
	if detailed, err := s.WithDetails(told); err == nil {
		return detailed
	}
	return s
}

// clip makes an error's text fit for the wire.
func clip(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxMessage)], "\uFFFD")
}

func reasonCode(e *forward.Error) codes.Code {
	switch e.Reason {
	case forward.Nobody:
		return codes.NotFound
	case forward.Incomplete, forward.Away, forward.Missed, forward.Unreachable:
		return codes.Unavailable
	case forward.Stopped:
		return status.FromContextError(e.Err).Code()
	default:
		return codes.Unknown // which is what it is: a client must not take it for safe to try again
	}
}

// statusOf is an application's error as a status.
func statusOf(err error) *status.Status {
	if s, ok := status.FromError(err); ok {
		return s
	}
	if errors.Is(err, carry.ErrTooMany) {
		return status.New(codes.ResourceExhausted, err.Error())
	}
	return status.FromContextError(err)
}

// The outcomes on the wire.
const (
	wireAnswered     = "answered"
	wireNotHere      = "not-here"
	wireNotAnswering = "no-calls"
	wireUncertain    = "uncertain"
)

// replyToWire says what became of a request.
func replyToWire(answer []byte, err error) *evenringpb.Reply {
	switch {
	case err == nil:
		return &evenringpb.Reply{Outcome: wireAnswered, Payload: answer}
	case errors.Is(err, redirect.ErrUncertain):
		return &evenringpb.Reply{Outcome: wireUncertain}
	case errors.Is(err, redirect.ErrNotHere):
		return &evenringpb.Reply{Outcome: wireNotHere}
	case errors.Is(err, redirect.ErrNotAnswering):
		return &evenringpb.Reply{Outcome: wireNotAnswering}
	default:
		s := statusOf(err)
		return &evenringpb.Reply{Outcome: wireAnswered, Code: int32(s.Code()), Message: clip(s.Message())}
	}
}

// tooLong refuses a payload that would break the stream.
func tooLong(what string, payload []byte) error {
	if len(payload) <= MaxCallBytes {
		return nil
	}
	return status.Errorf(codes.ResourceExhausted, "redirectgrpc: the %s has %d bytes; it may have %d", what, len(payload), MaxCallBytes)
}

// replyFromWire is its inverse, as [redirect.Gateway.Deliver] has it. Who says
// what is not known may have executed the request.
func replyFromWire(w *evenringpb.Reply) ([]byte, error) {
	switch w.GetOutcome() {
	case wireAnswered:
		if code := codes.Code(w.GetCode()); code != codes.OK {
			return nil, status.Error(code, w.GetMessage())
		}
		return w.GetPayload(), nil
	case wireNotHere:
		return nil, redirect.ErrNotHere
	case wireNotAnswering:
		return nil, redirect.ErrNotAnswering
	default:
		return nil, redirect.ErrUncertain
	}
}
