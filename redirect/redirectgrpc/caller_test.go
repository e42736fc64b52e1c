// SPDX-License-Identifier: Apache-2.0

package redirectgrpc

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/carry"
	"github.com/evenring/evenring/redirect/forward"
	"github.com/evenring/evenring/redirect/redirectgrpc/evenringpb"
)

// callee answers callers with an error.
type callee struct {
	evenringpb.UnimplementedCallerServer
	err error
}

func (c callee) Call(context.Context, *evenringpb.CallRequest) (*evenringpb.CallReply, error) {
	return nil, c.err
}

// failing returns what a caller makes of an error that a gateway ends its call with.
func failing(t testing.TB, err error) error {
	l := listen(t, "127.0.0.1:0")
	serve(t, l, func(s *grpc.Server) { evenringpb.RegisterCallerServer(s, callee{err: err}) })
	_, err = call(bounded(t), caller(t, l.Addr().String()), "m", "hi")
	return err
}

// Whatever a call ends with is known to the caller by the same name.
func TestCallReplies(t *testing.T) {
	for _, r := range forward.Reasons() {
		if r == forward.None || r == forward.Done {
			continue
		}
		want := &forward.Error{Reason: r, Member: "m", Err: errors.New("so")}
		require.Equal(t, want, failing(t, callStatus(want).Err()))
	}
	for _, row := range []struct{ err, want error }{
		{redirect.ErrNotAnswering, redirect.ErrNotAnswering},
		{status.Error(codes.DataLoss, "gone"), status.Error(codes.DataLoss, "gone")},
		{status.Error(codes.Unavailable, "mine"), status.Error(codes.Unavailable, "mine")},
		{errors.New("broken"), status.Error(codes.Unknown, "broken")},
		{errors.New("not \xff text"), status.Error(codes.Unknown, "not \uFFFD text")},
		{carry.ErrTooMany, status.Error(codes.ResourceExhausted, carry.ErrTooMany.Error())},
	} {
		require.Equal(t, row.want, failing(t, callStatus(row.err).Err()))
	}
}

// What a gateway does not say for itself may mean anything, unless it turns the caller away.
func TestCallsThatNobodyExplains(t *testing.T) {
	for _, code := range []codes.Code{codes.Unimplemented, codes.PermissionDenied, codes.Unauthenticated, codes.InvalidArgument} {
		err := failing(t, status.Error(code, "because"))
		require.Equal(t, status.Error(code, "because"), err)
	}
	for _, code := range []codes.Code{codes.Unavailable, codes.NotFound, codes.Unknown, codes.Internal, codes.ResourceExhausted} {
		err := failing(t, status.Error(code, "because"))
		require.ErrorIs(t, err, redirect.ErrUncertain)
		require.NotErrorIs(t, err, forward.ErrNotSent)
		require.ErrorContains(t, err, "because")
	}
	riddle, err := status.New(codes.Unavailable, "because").WithDetails(&evenringpb.Reply{Outcome: "sung"})
	require.NoError(t, err)
	require.ErrorIs(t, failing(t, riddle.Err()), redirect.ErrUncertain)
}

func TestCallsThatAreNotSent(t *testing.T) {
	addr := refusing(t)
	ask := redirect.Request{Member: "m"}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	closed := plainCaller(t)
	require.NoError(t, closed.Close())
	require.NoError(t, closed.Close())
	for _, row := range []struct {
		name string
		ctx  context.Context
		c    *Caller
		addr string
		text string
	}{
		{"nobody there", bounded(t), plainCaller(t), addr, "refused"},
		{"its context is over", over, plainCaller(t), addr, "canceled"},
		{"without credentials", bounded(t), new(Caller), addr, "credentials"},
		{"after Close", bounded(t), closed, addr, "closed"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := row.c.Call(row.ctx, row.addr, ask)
			require.ErrorIs(t, err, forward.ErrNotSent)
			require.ErrorContains(t, err, row.text)
			require.ErrorContains(t, err, "redirectgrpc: call at "+row.addr)
		})
	}
	for _, req := range []redirect.Request{{Member: "\xff"}, {Member: "m", Session: "\xff"}} {
		_, err := plainCaller(t).Call(bounded(t), addr, req)
		require.ErrorIs(t, err, forward.ErrNotSent)
		require.ErrorContains(t, err, "UTF-8")
	}
	_, err := plainCaller(t).Call(bounded(t), addr, redirect.Request{Member: "m", Payload: make([]byte, MaxCallBytes+1)})
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.ErrorContains(t, err, "the request has")
}

// A target with a scheme is gRPC's to resolve, and one connection serves all calls at an address.
func TestCallerKeepsConnections(t *testing.T) {
	f := newFleet()
	g := f.start(t, "a", taking)
	f.complete(t)
	dial(t, answeringAs("s"), g.addr, hello("s", 1))
	c := plainCaller(t)
	for _, addr := range []string{g.addr, g.addr, "dns:///" + g.addr} {
		answer, err := c.Call(bounded(t), addr, redirect.Request{Member: "s", Payload: []byte("hi")})
		require.NoError(t, err)
		require.Equal(t, "s: hi", string(answer))
	}
	require.Len(t, c.conns, 2)
	require.True(t, strings.HasPrefix(c.conns[g.addr].Target(), "passthrough:"))
}
