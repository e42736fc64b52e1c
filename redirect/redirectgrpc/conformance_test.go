// SPDX-License-Identifier: Apache-2.0

package redirectgrpc

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/redirectgrpc/evenringpb"
	"github.com/evenring/evenring/redirect/supervisor/supervisortest"
)

// bearer is credentials that are asked for anew for each stream.
type bearer func() string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"token": b()}, nil
}

func (bearer) RequireTransportSecurity() bool { return false }

// laterVersion does what a gateway of a later version may do.
func laterVersion(attach evenringpb.Gateway_AttachServer) error {
	if _, err := attach.Recv(); err != nil {
		return err
	}
	verdict := verdictFrame(redirect.Verdict{Outcome: redirect.Accept})
	verdict.GetVerdict().Reason = "whim"
	verdict.GetVerdict().ProtoReflect().SetUnknown(later())
	odd := noticeFrame(redirect.Notice{})
	odd.GetNotice().Kind = "sing"
	move := noticeFrame(redirect.Notice{Kind: redirect.NoticeMove})
	move.GetNotice().Reason = "whim"
	end := noticeFrame(redirect.Notice{Kind: redirect.NoticeEnd, Reason: redirect.ReasonStopped})
	end.GetNotice().ProtoReflect().SetUnknown(later())
	for _, f := range []*evenringpb.ServerFrame{laterFrame(), verdict, laterFrame(), odd, move, end} {
		if err := attach.Send(f); err != nil {
			return err
		}
	}
	return nil
}

func TestConformance(t *testing.T) {
	supervisortest.Run(t, func(testing.TB) supervisortest.Subject {
		return supervisortest.Subject{
			Serve: func(t testing.TB, l net.Listener, g supervisortest.Gate) func(context.Context) {
				cfg := ServerConfig{Heartbeat: g.Heartbeat}
				if g.Authorize != nil {
					cfg.Authorize = func(ctx context.Context, _ redirect.Hello) error {
						md, _ := metadata.FromIncomingContext(ctx)
						return g.Authorize(md.Get("token")[0])
					}
				}
				if g.Serve != nil {
					cfg.Serve = func(ctx context.Context, s *ServerStream) error { return g.Serve(ctx, s) }
				}
				if g.Calls != nil {
					cfg.Calls = &CallConfig{Peers: g.Calls.Peers, Forward: g.Calls.Forward}
				}
				s := serve(t, l, func(s *grpc.Server) { require.NoError(t, Register(s, g.Gateway, cfg)) })
				return func(ctx context.Context) {
					defer context.AfterFunc(ctx, s.Stop)()
					s.GracefulStop()
				}
			},
			Transport: func(_ testing.TB, s supervisortest.Supervisor) redirect.Transport {
				tr := plain
				tr.Serve = s.Answer
				tr.Options = []grpc.DialOption{grpc.WithPerRPCCredentials(bearer(s.Token))}
				return tr
			},
			Peers:       func(t testing.TB) supervisortest.Peers { return plainPeers(t) },
			Caller:      func(t testing.TB) supervisortest.Caller { return plainCaller(t) },
			CallBytes:   MaxCallBytes,
			Payloads:    true,
			Credentials: true,
			Keepalive:   pingAfter + pingTimeout,
			Heartbeat:   DefaultHeartbeat,
			Later: func(t testing.TB, l net.Listener) {
				serve(t, l, func(s *grpc.Server) { evenringpb.RegisterGatewayServer(s, scripted{attach: laterVersion}) })
			},
			LaterHello: func(t testing.TB, addr string, hello redirect.Hello) redirect.Outcome {
				conn, err := grpc.NewClient(target(addr), grpc.WithTransportCredentials(insecure.NewCredentials()))
				require.NoError(t, err)
				t.Cleanup(func() { _ = conn.Close() })
				ctx, cancel := context.WithCancel(context.Background())
				t.Cleanup(cancel)
				attach, err := evenringpb.NewGatewayClient(conn).Attach(ctx)
				require.NoError(t, err)
				frame := helloFrame(hello)
				frame.GetHello().ProtoReflect().SetUnknown(later())
				require.NoError(t, attach.Send(laterUp()))
				require.NoError(t, attach.Send(frame))
				answer, err := attach.Recv()
				require.NoError(t, err)
				return verdictFromWire(answer.GetVerdict()).Outcome
			},
		}
	})
}

// The words of package redirectws are these, as protobuf maps them to JSON, but for the
// status of a reply.
func TestWordsOfWebSockets(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "redirectws", "testdata", "golden", "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		name, _ := strings.CutSuffix(filepath.Base(file), ".json")
		var into proto.Message
		switch kind, _, _ := strings.Cut(name, "-"); {
		case kind == "hello", kind == "goodbye", kind == "reply":
			into = new(evenringpb.ClientFrame)
		case kind == "verdict", kind == "notice", kind == "request", kind == "cancel":
			into = new(evenringpb.ServerFrame)
		case name == "ask":
			into = new(evenringpb.Question)
		case name == "ask-answer":
			into = new(evenringpb.Answer)
		case name == "call": // its timeout is gRPC's own affair
			into = new(evenringpb.CallRequest)
		default:
			into = new(evenringpb.Reply)
		}
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		passOver := protojson.UnmarshalOptions{DiscardUnknown: name == "reply-error" || name == "call"}
		require.NoError(t, passOver.Unmarshal(data, into), name)
		again, err := protojson.Marshal(into)
		require.NoError(t, err)
		if passOver.DiscardUnknown {
			continue
		}
		read := into.ProtoReflect().New().Interface()
		require.NoError(t, protojson.Unmarshal(again, read))
		require.True(t, proto.Equal(into, read), name)
		require.NotEqual(t, "{}", string(again), name)
	}
}
