// SPDX-License-Identifier: Apache-2.0

package redirectgrpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/carry"
	"github.com/evenring/evenring/redirect/forward"
	"github.com/evenring/evenring/redirect/redirectgrpc/evenringpb"
	"github.com/evenring/evenring/ring"
)

var taking = gateOptions{calls: &CallConfig{}}

// complete makes the gateways know each other, and know that they are all.
func (f *fleet) complete(t testing.TB) {
	f.meet(t)
	var all []ring.GatewayID
	for id := range f.gates {
		all = append(all, id)
	}
	for _, g := range f.gates {
		g.Step(roster.Discovered{Gateways: all})
	}
	for _, g := range f.gates {
		eventually(t, func() bool { return g.Ready().Callers.OK && g.knows("stranger") == roster.Nobody })
	}
}

func (g *gate) knows(m ring.MemberID) roster.Where {
	route, _ := g.Route(m, "")
	return route.Where
}

func plainCaller(t testing.TB) *Caller {
	c := &Caller{Credentials: insecure.NewCredentials()}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// callerAt is a caller at one gateway.
type callerAt struct {
	*Caller
	addr string
}

func caller(t testing.TB, addr string) callerAt { return callerAt{plainCaller(t), addr} }

func call(ctx context.Context, to callerAt, m ring.MemberID, payload string) (string, error) {
	answer, err := to.Call(ctx, to.addr, redirect.Request{Member: m, Payload: []byte(payload)})
	return string(answer), err
}

// ended checks why a call failed.
func ended(t testing.TB, err error, want forward.Reason) {
	t.Helper()
	var failed *forward.Error
	require.ErrorAs(t, err, &failed)
	require.Equal(t, want, failed.Reason, "%v", err)
}

// answeringAs answers with its name and what it was sent.
func answeringAs(name string) Transport {
	tr := plain
	tr.Serve = func(_ context.Context, request []byte) ([]byte, error) {
		return []byte(name + ": " + string(request)), nil
	}
	return tr
}

func hello(m ring.MemberID, g placement.Generation) redirect.Hello {
	return redirect.Hello{Member: m, Generation: g, Stay: true, CanRedirect: true}
}

// A client that is no [Caller] is told the codes of what the member answers with, and of what became of the call.
func TestCodes(t *testing.T) {
	f := newFleet()
	a, b := f.start(t, "a", taking), f.start(t, "b", taking)
	refused := func(g *gate, m ring.MemberID, payload string, code codes.Code, text string) {
		t.Helper()
		conn, err := grpc.NewClient(target(g.addr), grpc.WithTransportCredentials(insecure.NewCredentials()))
		require.NoError(t, err)
		defer conn.Close()
		_, err = evenringpb.NewCallerClient(conn).Call(bounded(t), &evenringpb.CallRequest{Member: string(m), Payload: []byte(payload)})
		require.Equal(t, code, status.Code(err), "%v", err)
		require.ErrorContains(t, err, text)
	}
	refused(b, "s", "hi", codes.Unavailable, "incomplete")
	f.complete(t)
	tr := plain
	tr.Serve = func(_ context.Context, request []byte) ([]byte, error) {
		switch string(request[:5]) {
		case "denie":
			return nil, status.Error(codes.PermissionDenied, "not you")
		case "plain":
			return nil, errors.New("broken")
		default:
			return append(request, 0), nil
		}
	}
	dial(t, tr, a.addr, hello("s", 1))
	dial(t, plain, a.addr, hello("old", 1)) // has never heard of requests
	eventually(t, func() bool { return b.knows("s") == roster.Elsewhere && b.knows("old") == roster.Elsewhere })
	longest := strings.Repeat("x", MaxCallBytes)
	for _, g := range []*gate{a, b} {
		refused(g, "s", "denied", codes.PermissionDenied, "not you")
		refused(g, "s", "plain", codes.Unknown, "broken")
		refused(g, "old", "hi", codes.Unimplemented, "answers no requests")
		refused(g, "stranger", "hi", codes.NotFound, "nobody")
		refused(g, "", "hi", codes.InvalidArgument, "member")
		refused(g, "s", longest+"x", codes.ResourceExhausted, "the request has")
		refused(g, "s", longest, codes.ResourceExhausted, "the answer has")
	}
}

func TestCallAuthorize(t *testing.T) {
	f := newFleet()
	o := gateOptions{calls: &CallConfig{Authorize: func(_ context.Context, r redirect.Request) error {
		if string(r.Payload) == "secret" {
			return errors.New("that is secret")
		}
		return nil
	}}}
	a, b := f.start(t, "a", o), f.start(t, "b", gateOptions{})
	f.complete(t)
	dial(t, answeringAs("s"), a.addr, hello("s", 1))
	dial(t, answeringAs("t"), b.addr, hello("t", 1))
	eventually(t, func() bool { return a.knows("t") == roster.Elsewhere && b.knows("s") == roster.Elsewhere })
	_, err := call(bounded(t), caller(t, a.addr), "s", "secret")
	require.Equal(t, status.New(codes.PermissionDenied, "that is secret").Err(), err)
	answer, err := call(bounded(t), caller(t, a.addr), "s", "hi")
	require.NoError(t, err)
	require.Equal(t, "s: hi", answer)

	// Who takes no calls takes none from another gateway either.
	_, err = call(bounded(t), caller(t, b.addr), "t", "hi")
	require.Equal(t, codes.Unimplemented, status.Code(err))
	o.calls = &CallConfig{Forward: forward.Config{Patience: 1}}
	c := f.start(t, "c", o)
	f.complete(t)
	_, err = call(bounded(t), caller(t, c.addr), "t", "hi")
	ended(t, err, forward.Unreachable)
}

// A caller that says nothing of time does not wait for ever.
func TestCallTimeout(t *testing.T) {
	f := newFleet()
	a := f.start(t, "a", gateOptions{calls: &CallConfig{Timeout: 50 * time.Millisecond}})
	f.complete(t)
	tr := plain
	over := make(chan struct{}) // an answer as soon as its context ends might still be in time for the gateway
	tr.Serve = func(ctx context.Context, _ []byte) ([]byte, error) { <-over; return nil, ctx.Err() }
	dial(t, tr, a.addr, hello("s", 1))
	t.Cleanup(func() { close(over) })
	_, err := call(t.Context(), caller(t, a.addr), "s", "hi")
	ended(t, err, forward.Stopped)
	require.ErrorContains(t, err, "deadline exceeded")
}

// hopless is a peer whose end of a forwarded call a test writes.
type hopless struct {
	evenringpb.UnimplementedPeerServer
	forward func(context.Context) (*evenringpb.Reply, error)
}

func (h hopless) Forward(ctx context.Context, _ *evenringpb.CallRequest) (*evenringpb.Reply, error) {
	return h.forward(ctx)
}

// What is known of a forwarded call that ends without a reply: nothing, once it has been sent.
func TestForwardIsCareful(t *testing.T) {
	for _, row := range []struct {
		name string
		err  error
		want error
	}{
		{"of another version", status.Error(codes.Unimplemented, ""), forward.ErrNotSent},
		{"of another fleet", status.Error(codes.PermissionDenied, ""), forward.ErrNotSent},
		{"unavailable", status.Error(codes.Unavailable, ""), redirect.ErrUncertain},
		{"broken", status.Error(codes.Internal, ""), redirect.ErrUncertain},
		{"out of time", status.Error(codes.DeadlineExceeded, ""), redirect.ErrUncertain},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := listen(t, "127.0.0.1:0")
			serve(t, l, func(s *grpc.Server) {
				evenringpb.RegisterPeerServer(s, hopless{forward: func(context.Context) (*evenringpb.Reply, error) { return nil, row.err }})
			})
			_, err := plainPeers(t).Forward(bounded(t), at("b", l.Addr().String()), redirect.Request{Member: "s"})
			require.ErrorIs(t, err, row.want)
			require.Equal(t, status.Code(row.err), status.Code(err))
		})
	}
}

// What is not answered when Linger is over is not said to be not executed.
func TestLinger(t *testing.T) {
	f := newFleet()
	a := f.start(t, "a", taking)
	f.complete(t)
	begun := make(chan struct{}, 1)
	tr := plain
	tr.Linger = time.Millisecond
	tr.Serve = func(ctx context.Context, _ []byte) ([]byte, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return nil, nil
	}
	stream := dial(t, tr, a.addr, hello("s", 1))
	results := make(chan error, 1)
	c := caller(t, a.addr)
	go func() { _, err := call(bounded(t), c, "s", "hi"); results <- err }()
	receive(t, begun)
	require.NoError(t, stream.Close())
	ended(t, receive(t, results), forward.Lost)

	tr.Linger = -1
	_, _, err := tr.Dial(bounded(t), a.addr, hello("s", 2))
	require.ErrorContains(t, err, "Transport.Linger is -1ns")
}

// A stream that the gateway ends is not kept for its answers for longer than Linger.
func TestServerLinger(t *testing.T) {
	f := newFleet()
	o := taking
	o.server.Linger = time.Millisecond
	a := f.start(t, "a", o)
	f.complete(t)
	begun, release := make(chan struct{}, 1), make(chan struct{})
	tr := plain
	tr.Serve = func(context.Context, []byte) ([]byte, error) {
		begun <- struct{}{}
		<-release
		return []byte("late"), nil
	}
	stream := dial(t, tr, a.addr, hello("s", 1))
	t.Cleanup(func() { close(release) })
	results := make(chan error, 1)
	c := caller(t, a.addr)
	go func() { _, err := call(bounded(t), c, "s", "hi"); results <- err }()
	receive(t, begun)
	a.EndAll(redirect.ReasonExpired)
	ended(t, receive(t, results), forward.Lost)
	notice, err := stream.Notice()
	require.NoError(t, err)
	require.Equal(t, redirect.NoticeEnd, notice.Kind)
	_, err = stream.Notice()
	require.Error(t, err)
}

// A peer of another version, or worse: what it says that is not known may mean that it was executed.
func TestReplies(t *testing.T) {
	for _, row := range []struct {
		answer []byte
		err    error
		want   error
	}{
		{[]byte("x"), nil, nil},
		{nil, redirect.ErrNotHere, redirect.ErrNotHere},
		{nil, fmt.Errorf("so: %w", redirect.ErrNotHere), redirect.ErrNotHere},
		{nil, redirect.ErrNotAnswering, redirect.ErrNotAnswering},
		{nil, redirect.ErrUncertain, redirect.ErrUncertain},
		{nil, &forward.Error{Reason: forward.Missed}, redirect.ErrNotHere},
		{nil, &forward.Error{Reason: forward.Away}, redirect.ErrNotHere},
		{nil, &forward.Error{Reason: forward.Lost}, redirect.ErrUncertain},
		{nil, &forward.Error{Reason: forward.Lost, Err: redirect.ErrNotHere}, redirect.ErrUncertain},
		{nil, &forward.Error{Reason: forward.Stopped, Err: context.Canceled}, redirect.ErrUncertain},
		{nil, status.Error(codes.DataLoss, "gone"), status.Error(codes.DataLoss, "gone")},
		{nil, context.DeadlineExceeded, status.Error(codes.DeadlineExceeded, "context deadline exceeded")},
	} {
		w := recoded(t, replyToWire(row.answer, row.err), new(evenringpb.Reply))
		answer, err := replyFromWire(w)
		require.Equal(t, row.want, err, "%v", row.err)
		require.Equal(t, row.answer, answer)
	}
	for _, w := range []*evenringpb.Reply{nil, {}, {Outcome: "sung"}} {
		_, err := replyFromWire(w)
		require.ErrorIs(t, err, redirect.ErrUncertain)
	}
}

func TestReasonCodes(t *testing.T) {
	executed := []forward.Reason{forward.None, forward.Done, forward.Lost}
	for _, r := range forward.Reasons() {
		code := callStatus(&forward.Error{Reason: r, Err: context.Canceled}).Code()
		switch r {
		case forward.Nobody:
			require.Equal(t, codes.NotFound, code)
		case forward.Stopped:
			require.Equal(t, codes.Canceled, code)
		case executed[0], executed[1], executed[2]:
			require.Equal(t, codes.Unknown, code, "%v: not to be tried again by a client that knows no better", r)
		default:
			require.Equal(t, codes.Unavailable, code)
		}
	}
	timeout := &forward.Error{Reason: forward.Stopped, Err: context.DeadlineExceeded}
	require.Equal(t, codes.DeadlineExceeded, callStatus(timeout).Code())
}

// A supervisor that has too much to do says so.
func TestTooManyRequests(t *testing.T) {
	_, err := replyFromWire(replyToWire(nil, carry.ErrTooMany))
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
}
