// SPDX-License-Identifier: Apache-2.0

package redirectgrpc

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/redirectgrpc/evenringpb"
	"github.com/evenring/evenring/ring"
)

// later is a frame of a kind that this version does not know.
func later() []byte {
	raw := protowire.AppendTag(nil, 99, protowire.BytesType)
	return protowire.AppendString(raw, "from a later version")
}

func laterFrame() *evenringpb.ServerFrame {
	f := new(evenringpb.ServerFrame)
	f.ProtoReflect().SetUnknown(later())
	return f
}

func TestDialGivesTheHelloAndTheVerdict(t *testing.T) {
	hello := redirect.Hello{Member: "m", Generation: 9, Stay: true, Hops: 1, Cap: 4, Avoid: []ring.GatewayID{"x"}, CanRedirect: true, Home: "h", Proof: []byte("p")}
	for _, want := range []redirect.Verdict{
		{Outcome: redirect.Accept, Reason: redirect.ReasonStay, Gateway: "gw", Incarnation: 5, Cap: 3},
		{Outcome: redirect.Redirect, Reason: redirect.ReasonPlaced, Gateway: "b", Endpoint: "b:443", Cap: 3, Full: []ring.GatewayID{"a"}},
		{Outcome: redirect.Refuse, Reason: redirect.ReasonDraining, RetryAfter: 1500 * time.Millisecond},
		{}, // and one that admits nobody
	} {
		t.Run(want.Outcome.String(), func(t *testing.T) {
			heard := make(chan redirect.Hello, 1)
			addr, _ := scriptedGateway(t, func(attach evenringpb.Gateway_AttachServer) error {
				first, err := attach.Recv()
				if err != nil {
					return err
				}
				heard <- helloFromWire(first.GetHello())
				if err := attach.Send(verdictFrame(want)); err != nil {
					return err
				}
				if want.Outcome != redirect.Accept {
					return nil
				}
				return untilEnd(attach)
			})
			verdict, stream, err := plain.Dial(bounded(t), addr, hello)
			require.NoError(t, err)
			require.Equal(t, want, verdict)
			require.Equal(t, hello, receive(t, heard))
			if want.Outcome != redirect.Accept {
				require.True(t, stream == nil, "an interface that holds nothing")
				return
			}
			require.NoError(t, stream.Close())
		})
	}
}

func TestAddresses(t *testing.T) {
	accept := func(s *grpc.Server) { evenringpb.RegisterGatewayServer(s, scripted{attach: accepting(untilEnd)}) }
	tcp := listen(t, "127.0.0.1:0")
	serve(t, tcp, accept)
	_, port, err := net.SplitHostPort(tcp.Addr().String())
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "evenring") // a socket's path is short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "gw.sock")
	unix, err := net.Listen("unix", socket)
	require.NoError(t, err)
	serve(t, unix, accept)

	for _, addr := range []string{"127.0.0.1:" + port, "localhost:" + port} {
		t.Run(addr, func(t *testing.T) { require.NoError(t, dial(t, plain, addr, someHello).Close()) })
	}
	for _, addr := range []string{"127.0.0.1:" + port, "dns:///localhost:" + port, "unix:" + socket, "unix://" + socket} {
		t.Run("the Service at "+addr, func(t *testing.T) {
			tr := plain
			tr.Service = addr
			require.NoError(t, dial(t, tr, addr, someHello).Close())
		})
	}
}

func TestDialFails(t *testing.T) {
	silent := listen(t, "127.0.0.1:0") // the kernel opens the connection, nobody speaks
	t.Cleanup(func() { _ = silent.Close() })
	mute, _ := scriptedGateway(t, untilEnd)
	curt, _ := scriptedGateway(t, func(evenringpb.Gateway_AttachServer) error { return nil })
	strict, _ := scriptedGateway(t, func(evenringpb.Gateway_AttachServer) error { return status.Error(codes.PermissionDenied, "not you") })
	other := listen(t, "127.0.0.1:0")
	serve(t, other, func(*grpc.Server) {})

	code := func(want codes.Code) func(*testing.T, error) {
		return func(t *testing.T, err error) { require.Equal(t, want, status.Code(err), "%v", err) }
	}
	is := func(want error) func(*testing.T, error) {
		return func(t *testing.T, err error) { require.ErrorIs(t, err, want) }
	}
	for _, row := range []struct {
		name, addr string
		limit      time.Duration
		check      func(*testing.T, error)
	}{
		{"S31 nobody listens", refusing(t), patience, code(codes.Unavailable)},
		{"no such address", "127.0.0.1:nowhere", patience, func(t *testing.T, err error) {
			require.EqualError(t, err, `redirectgrpc: dial 127.0.0.1:nowhere: the port is "nowhere"; it must be from 1 to 65535`)
		}},
		{"S36 the socket opens and nothing comes", silent.Addr().String(), 50 * time.Millisecond, is(context.DeadlineExceeded)},
		{"S36 the stream opens and no verdict comes", mute, 50 * time.Millisecond, is(context.DeadlineExceeded)},
		{"it ends without a verdict", curt, patience, is(io.ErrUnexpectedEOF)},
		{"it is not let in", strict, patience, code(codes.PermissionDenied)},
		{"no gateway there", other.Addr().String(), patience, code(codes.Unimplemented)},
	} {
		t.Run(row.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), row.limit)
			defer cancel()
			verdict, stream, err := plain.Dial(ctx, row.addr, someHello)
			require.Error(t, err)
			require.ErrorContains(t, err, row.addr)
			row.check(t, err)
			require.Zero(t, verdict)
			require.True(t, stream == nil)
		})
	}
	t.Run("it was given up", func(t *testing.T) {
		cause := errors.New("changed my mind")
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(cause)
		_, _, err := plain.Dial(ctx, mute, someHello)
		require.ErrorIs(t, err, cause)
	})
	t.Run("no credentials", func(t *testing.T) {
		_, _, err := Transport{}.Dial(bounded(t), mute, someHello)
		require.ErrorContains(t, err, "transport security")
	})
	t.Run("Payloads", func(t *testing.T) {
		_, _, err := Transport{Payloads: -1}.Dial(bounded(t), mute, someHello)
		require.ErrorContains(t, err, "Transport.Payloads")
	})
	t.Run("not UTF-8", func(t *testing.T) {
		_, _, err := plain.Dial(bounded(t), mute, redirect.Hello{Member: "\xff"})
		require.ErrorContains(t, err, "UTF-8")
	})
}

func TestContextBoundsOnlyTheDial(t *testing.T) {
	speak := make(chan struct{})
	seen := make(chan metadata.MD, 1)
	addr, _ := scriptedGateway(t, accepting(func(attach evenringpb.Gateway_AttachServer) error {
		md, _ := metadata.FromIncomingContext(attach.Context())
		seen <- md
		<-speak
		if err := attach.Send(noticeFrame(redirect.Notice{Kind: redirect.NoticeHeartbeat})); err != nil {
			return err
		}
		return untilEnd(attach)
	}))
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(context.Background(), "token", "secret"))
	_, stream, err := plain.Dial(ctx, addr, someHello)
	require.NoError(t, err)
	cancel()
	close(speak)
	n, err := stream.Notice()
	require.NoError(t, err)
	require.Equal(t, redirect.NoticeHeartbeat, n.Kind)
	require.Equal(t, []string{"secret"}, receive(t, seen).Get("token"))
	require.NoError(t, stream.Close())
}

// Frames and words of a later version are passed over, before the verdict and after it.
func TestLaterGateway(t *testing.T) {
	addr, _ := scriptedGateway(t, func(attach evenringpb.Gateway_AttachServer) error {
		odd := noticeFrame(redirect.Notice{Kind: redirect.NoticeMove})
		odd.GetNotice().Kind = "sing"
		verdict := verdictFrame(redirect.Verdict{Outcome: redirect.Accept})
		verdict.GetVerdict().Reason = "whim"
		verdict.ProtoReflect().SetUnknown(later())
		verdict.GetVerdict().ProtoReflect().SetUnknown(later())
		end := noticeFrame(redirect.Notice{Kind: redirect.NoticeEnd, Reason: redirect.ReasonMoved})
		end.GetNotice().ProtoReflect().SetUnknown(later())
		for _, f := range []*evenringpb.ServerFrame{laterFrame(), verdict, laterFrame(), odd, verdict, payloadFrame("p"), end} {
			if err := attach.Send(f); err != nil {
				return err
			}
		}
		return nil
	})
	verdict, stream, err := plain.Dial(bounded(t), addr, someHello)
	require.NoError(t, err)
	require.Equal(t, redirect.Verdict{Outcome: redirect.Accept}, verdict)
	n, err := stream.Notice()
	require.NoError(t, err)
	require.Equal(t, redirect.Notice{Kind: redirect.NoticeEnd, Reason: redirect.ReasonMoved}, n)
	_, err = stream.Notice()
	require.Equal(t, io.EOF, err)
	payload, err := stream.(*Stream).Recv()
	require.NoError(t, err, "what came before the end is still there")
	require.Equal(t, "p", string(payload))
	_, err = stream.(*Stream).Recv()
	require.Equal(t, io.EOF, err)
	require.NoError(t, stream.Close())
}

func TestStreamEnds(t *testing.T) {
	addr, _ := scriptedGateway(t, accepting(func(evenringpb.Gateway_AttachServer) error { return status.Error(codes.DataLoss, "oops") }))
	s := dial(t, plain, addr, someHello)
	_, err := s.Notice()
	require.Equal(t, codes.DataLoss, status.Code(err))
	_, err = s.Recv()
	require.Equal(t, codes.DataLoss, status.Code(err))
	<-s.ended
	require.Error(t, s.Send(nil))
	require.NoError(t, s.Close())
	_, err = s.Notice()
	require.Equal(t, ErrClosed, err)
	require.Equal(t, ErrClosed, s.Send(nil))
}

func TestCloseSaysGoodbye(t *testing.T) {
	heard := make(chan *evenringpb.ClientFrame, 4)
	addr, _ := scriptedGateway(t, accepting(func(attach evenringpb.Gateway_AttachServer) error {
		for {
			f, err := attach.Recv()
			if err != nil {
				close(heard)
				return nil
			}
			heard <- f
		}
	}))
	s := dial(t, plain, addr, someHello)
	errs := make(chan error, 2)
	go func() { _, err := s.Notice(); errs <- err }()
	go func() { _, err := s.Recv(); errs <- err }()
	require.NoError(t, s.Send([]byte("last words")))
	closes := make(chan error, 3)
	for range 3 {
		go func() { closes <- s.Close() }()
	}
	for range 3 {
		require.NoError(t, receive(t, closes))
	}
	require.Equal(t, ErrClosed, receive(t, errs))
	require.Equal(t, ErrClosed, receive(t, errs))
	require.Equal(t, "last words", string(receive(t, heard).GetPayload()))
	require.NotNil(t, receive(t, heard).GetGoodbye())
	require.Nil(t, receive(t, heard))
}

// A gateway that reads nothing and does not end the stream holds nobody up for long.
func TestCloseIsBounded(t *testing.T) {
	addr, _ := scriptedGateway(t, accepting(func(attach evenringpb.Gateway_AttachServer) error {
		<-attach.Context().Done()
		return nil
	}))
	s := dial(t, plain, addr, someHello)
	big := bytes.Repeat([]byte("x"), 1<<20)
	stuck := make(chan error, 1)
	go func() {
		for {
			if err := s.Send(big); err != nil {
				stuck <- err
				return
			}
		}
	}()
	started := time.Now()
	require.NoError(t, s.Close())
	require.Less(t, time.Since(started), 5*closeTimeout)
	require.Error(t, receive(t, stuck))
}

// Payloads that nobody takes hold back what is behind them, but a connection
// that breaks ends the stream all the same.
func TestBrokenConnectionIsSeenBehindPayloads(t *testing.T) {
	sent := make(chan struct{})
	addr, server := scriptedGateway(t, accepting(func(attach evenringpb.Gateway_AttachServer) error {
		for range 10 {
			if err := attach.Send(payloadFrame("p")); err != nil {
				return err
			}
		}
		close(sent)
		return untilEnd(attach)
	}))
	tr := plain
	tr.Payloads = 2
	s := dial(t, tr, addr, someHello)
	receive(t, sent)
	ended := make(chan error, 1)
	go func() { _, err := s.Notice(); ended <- err }()
	server.Stop()
	require.Equal(t, codes.Unavailable, status.Code(receive(t, ended)))
	for range 2 {
		payload, err := s.Recv()
		require.NoError(t, err)
		require.Equal(t, "p", string(payload))
	}
	_, err := s.Recv()
	require.Error(t, err)
}

func TestPayloadsThatAreNotWantedHoldNothingUp(t *testing.T) {
	addr, _ := scriptedGateway(t, accepting(func(attach evenringpb.Gateway_AttachServer) error {
		for range 1000 {
			if err := attach.Send(payloadFrame("p")); err != nil {
				return err
			}
		}
		return attach.Send(noticeFrame(redirect.Notice{Kind: redirect.NoticeMove, Gateway: "b"}))
	}))
	tr := plain
	tr.Payloads = 0
	s := dial(t, tr, addr, someHello)
	n, err := s.Notice()
	require.NoError(t, err)
	require.Equal(t, ring.GatewayID("b"), n.Gateway)
	_, err = s.Recv()
	require.Equal(t, io.EOF, err)
}

// Nobody reads notices for a while: heartbeats give way, the rest waits.
func TestHeartbeatsGiveWay(t *testing.T) {
	addr, _ := scriptedGateway(t, accepting(func(attach evenringpb.Gateway_AttachServer) error {
		for range 10 * noticeQueue {
			if err := attach.Send(noticeFrame(redirect.Notice{Kind: redirect.NoticeHeartbeat})); err != nil {
				return err
			}
		}
		for _, f := range []*evenringpb.ServerFrame{payloadFrame("p"), noticeFrame(redirect.Notice{Kind: redirect.NoticeEnd})} {
			if err := attach.Send(f); err != nil {
				return err
			}
		}
		return nil
	}))
	s := dial(t, plain, addr, someHello)
	_, err := s.Recv()
	require.NoError(t, err, "a payload behind the heartbeats gets through")
	for range noticeQueue {
		n, err := s.Notice()
		require.NoError(t, err)
		require.Equal(t, redirect.NoticeHeartbeat, n.Kind)
	}
	n, err := s.Notice()
	require.NoError(t, err)
	require.Equal(t, redirect.NoticeEnd, n.Kind)
}

func TestOptionsWin(t *testing.T) {
	addr, _ := scriptedGateway(t, accepting(untilEnd))
	tr := Transport{
		Credentials: credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS13}),
		Options:     []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())},
	}
	require.NoError(t, dial(t, tr, addr, someHello).Close())
}

// The last word of a gateway that stops is not lost because the connection goes with it.
func TestLastNoticeSurvivesItsConnection(t *testing.T) {
	over := make(chan struct{})
	close(over)
	for range 100 {
		s := &Stream{
			notices: make(chan redirect.Notice, 1), payloads: make(chan []byte, 1),
			closed: make(chan struct{}), ended: over, gone: over, err: io.EOF,
		}
		last := redirect.Notice{Kind: redirect.NoticeEnd, Reason: redirect.ReasonStopped}
		s.gotNotice(last)
		put(s, s.payloads, []byte("hi"))
		got, err := s.Notice()
		require.NoError(t, err)
		require.Equal(t, last, got)
		payload, err := s.Recv()
		require.NoError(t, err)
		require.Equal(t, "hi", string(payload))
		put(s, s.notices, last)
		put(s, s.notices, last) // there is no room, and nobody who will make any
	}
}
