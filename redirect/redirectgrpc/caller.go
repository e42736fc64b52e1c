// SPDX-License-Identifier: Apache-2.0

package redirectgrpc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/forward"
	"github.com/evenring/evenring/redirect/redirectgrpc/evenringpb"
)

// Caller makes requests of supervisors and sessions, through any gateway. It keeps a
// connection for each address. Its fields must not be changed after the first Call. It
// must not be copied after that, and may be used concurrently.
type Caller struct {
	// Credentials secure the connections. nil: as Options say, and if they say
	// nothing, every call fails.
	Credentials credentials.TransportCredentials

	// Options are for every connection. They come after the caller's own, so they win.
	Options []grpc.DialOption

	mu     sync.Mutex
	conns  map[string]*grpc.ClientConn
	closed bool
}

// Call makes one request at the gateway at addr, "host:port" or a gRPC target with
// a scheme, and returns the member's answer. Errors are those of [forward.Call], of
// another process: a [*forward.Error], with the reason; [redirect.ErrNotAnswering]; and
// a gRPC status if the member answers so, or if the gateway turns the caller away. If the
// gateway itself is not reached, the error wraps [forward.ErrNotSent], and
// [redirect.ErrUncertain] if the request may have been executed. The gateway is told how
// long ctx has left, and gives up with it.
func (c *Caller) Call(ctx context.Context, addr string, req redirect.Request) ([]byte, error) {
	fail := func(kind, err error) error { return fmt.Errorf("redirectgrpc: call at %s: %w: %w", addr, kind, err) }
	if err := tooLong("request", req.Payload); err != nil {
		return nil, err
	}
	if !utf8.ValidString(string(req.Member)) || !utf8.ValidString(string(req.Session)) {
		return nil, fail(forward.ErrNotSent, errors.New("the member, or the session, is not valid UTF-8"))
	}
	conn, err := c.conn(addr)
	if err != nil {
		return nil, fail(forward.ErrNotSent, err)
	}
	watched, sent := watchSent(ctx)
	reply, err := evenringpb.NewCallerClient(conn).Call(watched, requestToWire(req))
	if err == nil {
		return reply.GetPayload(), nil
	}
	told := toldOf(err)
	switch {
	case told != nil:
		return answerOf(req, told)
	case ctx.Err() != nil && sent.Load():
		return nil, &forward.Error{Reason: forward.Stopped, Member: req.Member, Session: req.Session, Err: ctx.Err()}
	case ctx.Err() != nil:
		return nil, fail(forward.ErrNotSent, ctx.Err())
	case !sent.Load():
		return nil, fail(forward.ErrNotSent, err)
	case refused(err), status.Code(err) == codes.InvalidArgument:
		return nil, err
	default:
		return nil, fail(redirect.ErrUncertain, err)
	}
}

// toldOf returns what a gateway has said of a call that failed; nil: it was not
// the gateway that failed it, or one of a version that does not say.
func toldOf(err error) *evenringpb.Reply {
	for _, detail := range status.Convert(err).Details() {
		if told, ok := detail.(*evenringpb.Reply); ok {
			return told
		}
	}
	return nil
}

// answerOf reads what a gateway tells a caller.
func answerOf(req redirect.Request, told *evenringpb.Reply) ([]byte, error) {
	for _, r := range forward.Reasons() {
		if r.String() == told.GetOutcome() && r != forward.None && r != forward.Done {
			failed := &forward.Error{Reason: r, Member: req.Member, Session: req.Session}
			if told.GetMessage() != "" {
				failed.Err = errors.New(told.GetMessage())
			}
			return nil, failed
		}
	}
	return replyFromWire(told)
}

func (c *Caller) conn(addr string) (*grpc.ClientConn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errors.New("the caller is closed")
	}
	if conn := c.conns[addr]; conn != nil {
		return conn, nil
	}
	conn, err := grpc.NewClient(target(addr), slices.Concat(dialOptions(c.Credentials), linkOptions, c.Options)...)
	if err != nil {
		return nil, err
	}
	if c.conns == nil {
		c.conns = make(map[string]*grpc.ClientConn)
	}
	c.conns[addr] = conn
	return conn, nil
}

// Close ends every connection; what is going on fails. It returns nil, and may be
// called more than once.
func (c *Caller) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, conn := range c.conns {
		_ = conn.Close() // fails only if it was closed before
	}
	c.conns = nil
	return nil
}
