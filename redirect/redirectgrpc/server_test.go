// SPDX-License-Identifier: Apache-2.0

package redirectgrpc

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/forward"
	"github.com/evenring/evenring/redirect/redirectgrpc/evenringpb"
)

// raw opens a stream by hand.
func raw(t testing.TB, addr string) evenringpb.Gateway_AttachClient {
	conn, err := grpc.NewClient(target(addr), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	attach, err := evenringpb.NewGatewayClient(conn).Attach(bounded(t))
	require.NoError(t, err)
	return attach
}

func helloFrame(h redirect.Hello) *evenringpb.ClientFrame {
	return &evenringpb.ClientFrame{Frame: &evenringpb.ClientFrame_Hello{Hello: helloToWire(h)}}
}

func upFrame(payload string) *evenringpb.ClientFrame {
	return &evenringpb.ClientFrame{Frame: &evenringpb.ClientFrame_Payload{Payload: []byte(payload)}}
}

func goodbyeFrame() *evenringpb.ClientFrame {
	return &evenringpb.ClientFrame{Frame: &evenringpb.ClientFrame_Goodbye{Goodbye: new(evenringpb.Goodbye)}}
}

func laterUp() *evenringpb.ClientFrame {
	f := new(evenringpb.ClientFrame)
	f.ProtoReflect().SetUnknown(later())
	return f
}

func TestServerConfig(t *testing.T) {
	err := ServerConfig{HelloTimeout: -1, Heartbeat: -2, Linger: -3, Calls: &CallConfig{Timeout: -4, Forward: forward.Config{Patience: -5}}}.Validate()
	require.ErrorContains(t, err, "ServerConfig.HelloTimeout is -1ns")
	require.ErrorContains(t, err, "ServerConfig.Heartbeat is -2ns")
	require.ErrorContains(t, err, "ServerConfig.Linger is -3ns")
	require.ErrorContains(t, err, "ServerConfig.Calls: redirectgrpc: CallConfig.Timeout is -4ns")
	require.ErrorContains(t, err, "CallConfig.Forward: forward: Config.Patience is -5ns")
	require.Error(t, Register(grpc.NewServer(), nil, ServerConfig{Heartbeat: -1}))
	require.NoError(t, ServerConfig{}.Validate())
	require.Equal(t, ServerConfig{HelloTimeout: DefaultHelloTimeout, Heartbeat: DefaultHeartbeat, Linger: DefaultServerLinger}, ServerConfig{}.resolved())
	require.Equal(t, &CallConfig{Timeout: DefaultCallTimeout}, ServerConfig{Calls: &CallConfig{}}.resolved().Calls)
}

// The examiner sees that it ends; that the end is io.EOF is promised here.
func TestSupersededStreamEnds(t *testing.T) {
	g := alone(t, ServerConfig{})
	old := dial(t, plain, g.addr, someHello)
	newer := someHello
	newer.Generation++
	dial(t, plain, g.addr, newer)
	n, err := old.Notice()
	require.NoError(t, err)
	require.Equal(t, redirect.NoticeEnd, n.Kind)
	require.Equal(t, redirect.ReasonSuperseded, n.Reason)
	_, err = old.Notice()
	require.Equal(t, io.EOF, err)
	require.Equal(t, 1, g.Stats().Served)
}

// What is no goodbye is a loss, also where the connection is as it was.
func TestLoss(t *testing.T) {
	for _, row := range []struct {
		name string
		end  func(*testing.T, *Stream)
	}{
		{"the stream is cut", func(_ *testing.T, s *Stream) { s.end() }},
		{"its half ends without a goodbye", func(t *testing.T, s *Stream) { require.NoError(t, s.attach.CloseSend()) }},
	} {
		for name, app := range map[string]func(context.Context, *ServerStream) error{
			"":              nil,
			" while served": func(ctx context.Context, _ *ServerStream) error { <-ctx.Done(); return ctx.Err() },
		} {
			t.Run(row.name+name, func(t *testing.T) {
				g := alone(t, ServerConfig{Serve: app})
				s := dial(t, plain, g.addr, someHello)
				require.Equal(t, 1, g.Stats().Served)
				row.end(t, s)
				eventually(t, func() bool { return g.Stats().Served == 0 })
				require.Equal(t, 1, g.Stats().Held)
				_, err := s.Notice()
				require.Error(t, err)
			})
		}
	}
}

func TestConversationsThatDoNotStart(t *testing.T) {
	for _, row := range []struct {
		name   string
		frames []*evenringpb.ClientFrame
		half   bool // end the client's half
		limit  time.Duration
		code   codes.Code
		text   string
	}{
		{"silence", nil, false, 50 * time.Millisecond, codes.DeadlineExceeded, "no hello within"},
		{"only frames that are not known", []*evenringpb.ClientFrame{laterUp(), {}}, false, 50 * time.Millisecond, codes.DeadlineExceeded, "no hello within"},
		{"a payload first", []*evenringpb.ClientFrame{upFrame("p")}, false, patience, codes.FailedPrecondition, "before the hello"},
		{"goodbye first", []*evenringpb.ClientFrame{goodbyeFrame()}, false, patience, codes.Aborted, "goodbye"},
		{"nothing at all", nil, true, patience, codes.Aborted, "without a goodbye"},
	} {
		t.Run(row.name, func(t *testing.T) {
			g := alone(t, ServerConfig{HelloTimeout: row.limit})
			attach := raw(t, g.addr)
			for _, f := range row.frames {
				require.NoError(t, attach.Send(f))
			}
			if row.half {
				require.NoError(t, attach.CloseSend())
			}
			_, err := attach.Recv()
			require.Equal(t, row.code, status.Code(err), "%v", err)
			require.ErrorContains(t, err, row.text)
			require.Zero(t, g.Stats().Served)
		})
	}
}

func TestSecondHelloEndsTheStream(t *testing.T) {
	g := alone(t, ServerConfig{})
	attach := raw(t, g.addr)
	require.NoError(t, attach.Send(helloFrame(someHello)))
	f, err := attach.Recv()
	require.NoError(t, err)
	require.Equal(t, redirect.Accept, verdictFromWire(f.GetVerdict()).Outcome)
	require.NoError(t, attach.Send(helloFrame(someHello)))
	_, err = attach.Recv()
	require.Equal(t, codes.FailedPrecondition, status.Code(err), "%v", err)
}

// A supervisor of a later version uses frames and fields that this gateway does not know.
func TestLaterSupervisor(t *testing.T) {
	payloads := make(chan string, 1)
	g := alone(t, ServerConfig{Serve: func(_ context.Context, s *ServerStream) error {
		payload, err := s.Recv()
		payloads <- string(payload)
		return err
	}})
	attach := raw(t, g.addr)
	hello := helloFrame(someHello)
	hello.ProtoReflect().SetUnknown(later())
	hello.GetHello().ProtoReflect().SetUnknown(later())
	for _, f := range []*evenringpb.ClientFrame{laterUp(), hello, laterUp(), upFrame("p")} {
		require.NoError(t, attach.Send(f))
	}
	f, err := attach.Recv()
	require.NoError(t, err)
	require.Equal(t, redirect.Accept, verdictFromWire(f.GetVerdict()).Outcome)
	require.Equal(t, "p", receive(t, payloads))
	_, err = attach.Recv()
	require.Equal(t, io.EOF, err)
}

func TestAuthorize(t *testing.T) {
	g := alone(t, ServerConfig{Authorize: func(_ context.Context, h redirect.Hello) error {
		if h.Member != "m" {
			return fmt.Errorf("%s is not yours", h.Member)
		}
		return nil
	}})
	dial(t, plain, g.addr, someHello)
	_, _, err := plain.Dial(bounded(t), g.addr, redirect.Hello{Member: "other", Generation: 1})
	require.Equal(t, codes.PermissionDenied, status.Code(err), "%v", err)
	require.ErrorContains(t, err, "other is not yours")
	require.Equal(t, 1, g.Stats().Served)
}

func TestServeEndsTheStream(t *testing.T) {
	for _, row := range []struct {
		name string
		err  error
		want func(*testing.T, error)
	}{
		{"with an error", status.Error(codes.Unauthenticated, "token expired"), func(t *testing.T, err error) {
			require.Equal(t, codes.Unauthenticated, status.Code(err), "%v", err)
			require.ErrorContains(t, err, "token expired")
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			g := alone(t, ServerConfig{Serve: func(_ context.Context, s *ServerStream) error {
				for range payloadQueue {
					if err := s.Send([]byte("last words of " + s.Hello().Member)); err != nil {
						return err
					}
				}
				return row.err
			}})
			s := dial(t, plain, g.addr, someHello)
			for range payloadQueue {
				payload, err := s.Recv()
				require.NoError(t, err)
				require.Equal(t, "last words of m", string(payload))
			}
			_, err := s.Recv()
			row.want(t, err)
			eventually(t, func() bool { return g.Stats().Held == 1 })
		})
	}
}
