// SPDX-License-Identifier: Apache-2.0

package redirectgrpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
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

// caller is a client of one gateway, for callers.
func caller(t testing.TB, addr string) evenringpb.CallerClient {
	conn, err := grpc.NewClient(target(addr), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return evenringpb.NewCallerClient(conn)
}

func call(ctx context.Context, to evenringpb.CallerClient, m ring.MemberID, payload string) (string, error) {
	reply, err := to.Call(ctx, &evenringpb.CallRequest{Member: string(m), Payload: []byte(payload)})
	return string(reply.GetPayload()), err
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

// S21: a caller at B for s on A gets its answer from there; for one that nobody
// has, and for one that perhaps somebody has, it gets two different ones.
func TestCall(t *testing.T) {
	f := newFleet()
	a, b := f.start(t, "a", taking), f.start(t, "b", taking)
	ctx := bounded(t)
	_, err := call(ctx, caller(t, b.addr), "s", "hi")
	require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
	require.ErrorContains(t, err, "incomplete")

	f.complete(t)
	dial(t, answeringAs("s"), a.addr, hello("s", 1))
	eventually(t, func() bool { return b.knows("s") == roster.Elsewhere })
	for _, g := range []*gate{a, b} {
		answer, err := call(ctx, caller(t, g.addr), "s", "hi")
		require.NoError(t, err)
		require.Equal(t, "s: hi", answer)
		_, err = call(ctx, caller(t, g.addr), "stranger", "hi")
		require.Equal(t, codes.NotFound, status.Code(err), "%v", err)
		require.ErrorContains(t, err, "nobody")
	}
	_, err = call(ctx, caller(t, a.addr), "", "hi")
	require.Equal(t, codes.InvalidArgument, status.Code(err))
}

func TestCallSession(t *testing.T) {
	f := newFleet()
	a, b := f.start(t, "a", taking), f.start(t, "b", taking)
	f.complete(t)
	dial(t, answeringAs("s"), a.addr, hello("s", 1))
	eventually(t, func() bool { return b.knows("s") == roster.Elsewhere })
	session := func(to *gate) (string, error) {
		reply, err := caller(t, to.addr).Call(bounded(t), &evenringpb.CallRequest{Member: "s", Session: "x", Payload: []byte("hi")})
		return string(reply.GetPayload()), err
	}

	// It is not there yet: the call waits where its supervisor is.
	answers := make(chan string, 1)
	go func() { answer, err := session(b); answers <- fmt.Sprint(answer, err) }()
	dial(t, answeringAs("x"), a.addr, redirect.Hello{Member: "s", Session: "x", Generation: 1})
	require.Equal(t, "x: hi<nil>", receive(t, answers))

	// Its supervisor moves on: where it has a stream it is called there.
	dial(t, answeringAs("s"), b.addr, hello("s", 2))
	eventually(t, func() bool { return a.knows("s") == roster.Elsewhere })
	answer, err := session(a)
	require.NoError(t, err)
	require.Equal(t, "x: hi", answer)
}

// What the member answers with reaches the caller as it is, from here and over a hop.
func TestCallErrors(t *testing.T) {
	f := newFleet()
	a, b := f.start(t, "a", taking), f.start(t, "b", taking)
	f.complete(t)
	tr := plain
	tr.Serve = func(_ context.Context, request []byte) ([]byte, error) {
		switch string(request) {
		case "denied":
			return nil, status.Error(codes.PermissionDenied, "not you")
		case "plain":
			return nil, errors.New("broken")
		default:
			return nil, nil
		}
	}
	dial(t, tr, a.addr, hello("s", 1))
	dial(t, plain, a.addr, hello("old", 1)) // has never heard of requests
	eventually(t, func() bool { return b.knows("s") == roster.Elsewhere && b.knows("old") == roster.Elsewhere })
	for _, g := range []*gate{a, b} {
		c := caller(t, g.addr)
		_, err := call(bounded(t), c, "s", "denied")
		require.Equal(t, status.New(codes.PermissionDenied, "not you").Err(), err)
		_, err = call(bounded(t), c, "s", "plain")
		require.Equal(t, status.New(codes.Unknown, "broken").Err(), err)
		answer, err := call(bounded(t), c, "s", "nothing")
		require.NoError(t, err)
		require.Empty(t, answer)
		_, err = call(bounded(t), c, "old", "hi")
		require.Equal(t, codes.Unimplemented, status.Code(err), "%v", err)
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
	require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
	require.ErrorContains(t, err, "unreachable")
}

// The caller's deadline is the member's, and so is its giving up.
func TestCallDeadline(t *testing.T) {
	f := newFleet()
	a, b := f.start(t, "a", taking), f.start(t, "b", taking)
	f.complete(t)
	deadlines, causes := make(chan time.Time, 2), make(chan error, 2)
	tr := plain
	tr.Serve = func(ctx context.Context, _ []byte) ([]byte, error) {
		deadline, _ := ctx.Deadline()
		deadlines <- deadline
		<-ctx.Done()
		causes <- ctx.Err()
		return nil, ctx.Err() // an answer instead might still be in time for the caller
	}
	dial(t, tr, a.addr, hello("s", 1))
	eventually(t, func() bool { return b.knows("s") == roster.Elsewhere })
	for _, g := range []*gate{a, b} {
		deadline := time.Now().Add(time.Hour)
		ctx, cancel := context.WithDeadline(t.Context(), deadline)
		results := make(chan error, 1)
		c := caller(t, g.addr)
		go func() { _, err := call(ctx, c, "s", "hi"); results <- err }()
		require.WithinDuration(t, deadline, receive(t, deadlines), 5*time.Second)
		cancel()
		require.Equal(t, codes.Canceled, status.Code(receive(t, results)))
		require.ErrorIs(t, receive(t, causes), context.Canceled)

		short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err := call(short, c, "s", "hi")
		cancel()
		require.Equal(t, codes.DeadlineExceeded, status.Code(err), "%v", err)
		receive(t, deadlines)
		receive(t, causes)
	}
}

// A caller that says nothing of time does not wait for ever.
func TestCallTimeout(t *testing.T) {
	f := newFleet()
	a := f.start(t, "a", gateOptions{calls: &CallConfig{Timeout: 50 * time.Millisecond}})
	f.complete(t)
	tr := plain
	tr.Serve = func(ctx context.Context, _ []byte) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() }
	dial(t, tr, a.addr, hello("s", 1))
	_, err := call(t.Context(), caller(t, a.addr), "s", "hi")
	require.Equal(t, codes.DeadlineExceeded, status.Code(err), "%v", err)
}

// The stream breaks with a request on it: who may have executed it is not asked again,
// unless that does no harm.
func TestCallLost(t *testing.T) {
	for _, idempotent := range []bool{false, true} {
		t.Run(fmt.Sprint("idempotent=", idempotent), func(t *testing.T) {
			f := newFleet()
			a, b := f.start(t, "a", taking), f.start(t, "b", taking)
			f.complete(t)
			begun := make(chan struct{}, 1)
			tr := plain
			tr.Serve = func(ctx context.Context, _ []byte) ([]byte, error) {
				begun <- struct{}{}
				<-ctx.Done()
				return nil, ctx.Err()
			}
			broken := dial(t, tr, a.addr, hello("s", 1))
			eventually(t, func() bool { return b.knows("s") == roster.Elsewhere })
			results := make(chan error, 1)
			c := caller(t, b.addr)
			go func() {
				_, err := c.Call(bounded(t), &evenringpb.CallRequest{Member: "s", Idempotent: idempotent})
				results <- err
			}()
			receive(t, begun)
			broken.end() // without a goodbye
			dial(t, answeringAs("s"), b.addr, hello("s", 2))
			err := receive(t, results)
			if idempotent {
				require.NoError(t, err)
				return
			}
			require.Equal(t, codes.Unknown, status.Code(err), "%v", err)
			require.ErrorContains(t, err, "lost")
		})
	}
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
	t.Run("gone", func(t *testing.T) {
		_, err := plainPeers(t).Forward(bounded(t), at("b", refusing(t)), redirect.Request{Member: "s"})
		require.ErrorIs(t, err, forward.ErrNotSent)
	})
	t.Run("gone with it", func(t *testing.T) {
		l, begun := listen(t, "127.0.0.1:0"), make(chan struct{})
		s := serve(t, l, func(s *grpc.Server) {
			evenringpb.RegisterPeerServer(s, hopless{forward: func(ctx context.Context) (*evenringpb.Reply, error) {
				close(begun)
				<-ctx.Done()
				return nil, ctx.Err()
			}})
		})
		go func() { <-begun; s.Stop() }()
		_, err := plainPeers(t).Forward(bounded(t), at("b", l.Addr().String()), redirect.Request{Member: "s"})
		require.ErrorIs(t, err, redirect.ErrUncertain)
	})
}

// A gateway that is gone has certainly not executed anything.
func TestCallUnreachable(t *testing.T) {
	f := newFleet()
	a := f.start(t, "a", taking)
	b := f.start(t, "b", gateOptions{calls: &CallConfig{Forward: forward.Config{Patience: patience}}})
	f.complete(t)
	dial(t, answeringAs("s"), a.addr, hello("s", 1))
	eventually(t, func() bool { return b.knows("s") == roster.Elsewhere })
	f.kill("a")
	results := make(chan string, 1)
	c := caller(t, b.addr)
	go func() {
		answer, err := call(bounded(t), c, "s", "hi")
		results <- fmt.Sprint(answer, err)
	}()
	dial(t, answeringAs("s again"), b.addr, hello("s", 2))
	require.Equal(t, "s again: hi<nil>", receive(t, results))

	require.NoError(t, b.peers.Close())
	_, err := b.peers.Forward(bounded(t), at("a", a.addr), redirect.Request{Member: "s"})
	require.ErrorIs(t, err, forward.ErrNotSent)
	_, err = new(Peers).Forward(bounded(t), at("a", ""), redirect.Request{Member: "s"})
	require.ErrorIs(t, err, forward.ErrNotSent)
}

// Requests to a member that left no stream behind but one that closes: it is asked for nothing more.
func TestClosingStreamTurnsRequestsAway(t *testing.T) {
	f := newFleet()
	a := f.start(t, "a", taking)
	f.complete(t)
	begun, release := make(chan string, 2), make(chan struct{})
	tr := plain
	tr.Serve = func(_ context.Context, request []byte) ([]byte, error) {
		begun <- string(request)
		<-release
		return request, nil
	}
	stream := dial(t, tr, a.addr, hello("s", 1))
	letGo := sync.OnceFunc(func() { close(release) })
	t.Cleanup(letGo)
	c := caller(t, a.addr)
	results := make(chan string, 2)
	invoke := func(payload string) {
		go func() { answer, err := call(bounded(t), c, "s", payload); results <- fmt.Sprint(answer, err) }()
	}
	invoke("first")
	require.Equal(t, "first", receive(t, begun))
	closed := make(chan struct{})
	go func() { defer close(closed); _ = stream.Close() }()
	receive(t, stream.closed)
	_, err := stream.Notice()
	require.ErrorIs(t, err, ErrClosed)

	// Turned away; a newer stream of the member takes it.
	invoke("second")
	dial(t, answeringAs("newer"), a.addr, hello("s", 2))
	require.Equal(t, "newer: second<nil>", receive(t, results))
	letGo()
	require.Equal(t, "first<nil>", receive(t, results))
	receive(t, closed)
	require.Empty(t, begun)
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
	err := receive(t, results)
	require.Equal(t, codes.Unknown, status.Code(err))
	require.ErrorContains(t, err, "lost")

	tr.Linger = -1
	_, _, err = tr.Dial(bounded(t), a.addr, hello("s", 2))
	require.ErrorContains(t, err, "Transport.Linger is -1ns")
}

// A stream that the gateway ends is kept for its answers, for a while.
func TestEndedStreamIsKeptForItsAnswers(t *testing.T) {
	for _, linger := range []time.Duration{0, time.Millisecond} {
		t.Run(fmt.Sprint("linger=", linger), func(t *testing.T) {
			f := newFleet()
			o := taking
			o.server.Linger = linger
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
			letGo := sync.OnceFunc(func() { close(release) })
			t.Cleanup(letGo)
			results := make(chan string, 1)
			c := caller(t, a.addr)
			go func() {
				answer, err := call(bounded(t), c, "s", "hi")
				results <- fmt.Sprint(answer, err)
			}()
			receive(t, begun)
			a.EndAll(redirect.ReasonExpired)
			notice, err := stream.Notice()
			require.NoError(t, err)
			require.Equal(t, redirect.NoticeEnd, notice.Kind)
			if linger == 0 {
				letGo()
				require.Equal(t, "late<nil>", receive(t, results))
			} else {
				require.Contains(t, receive(t, results), "lost")
				letGo()
			}
			_, err = stream.Notice()
			require.Error(t, err)
		})
	}
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
}

// What is too long for a message ends in an error, and not with the stream.
func TestTooLong(t *testing.T) {
	f := newFleet()
	a, b := f.start(t, "a", taking), f.start(t, "b", taking)
	f.complete(t)
	tr := plain
	tr.Serve = func(_ context.Context, request []byte) ([]byte, error) {
		switch string(request[:4]) {
		case "more":
			return append(request, 0), nil
		case "text":
			return nil, errors.New(strings.Repeat("\xff", 5<<20))
		default:
			return request, nil
		}
	}
	dial(t, tr, a.addr, hello("s", 1))
	eventually(t, func() bool { return b.knows("s") == roster.Elsewhere })
	longest := strings.Repeat("x", MaxCallBytes)
	for _, g := range []*gate{a, b} {
		answer, err := call(bounded(t), caller(t, g.addr), "s", longest)
		require.NoError(t, err)
		require.Len(t, answer, MaxCallBytes)
		_, err = call(bounded(t), caller(t, g.addr), "s", longest+"x")
		require.Equal(t, codes.ResourceExhausted, status.Code(err))
		require.ErrorContains(t, err, "the request has")
		_, err = call(bounded(t), caller(t, g.addr), "s", "more"+longest[4:])
		require.Equal(t, codes.ResourceExhausted, status.Code(err))
		require.ErrorContains(t, err, "the answer has")
		_, err = call(bounded(t), caller(t, g.addr), "s", "text")
		require.Equal(t, codes.Unknown, status.Code(err))
		require.Equal(t, roster.Here, a.knows("s"))
	}
	require.Equal(t, 1, a.Stats().Served, "the stream is the same")
}

// A supervisor that has too much to do says so.
func TestTooManyRequests(t *testing.T) {
	_, err := replyFromWire(replyToWire(nil, carry.ErrTooMany))
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
}
