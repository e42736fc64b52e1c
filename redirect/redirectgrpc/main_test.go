// SPDX-License-Identifier: Apache-2.0

package redirectgrpc

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/redirectgrpc/evenringpb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds what should happen at once. It is spent only by a test that fails.
const patience = 10 * time.Second

func bounded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func listen(t testing.TB, addr string) net.Listener {
	l, err := net.Listen("tcp", addr)
	require.NoError(t, err)
	return l
}

// refusing returns an address at which nobody listens.
func refusing(t testing.TB) string {
	l := listen(t, "127.0.0.1:0")
	require.NoError(t, l.Close())
	return l.Addr().String()
}

// serve runs a gRPC server on l until the test ends, and waits for its handlers then.
func serve(t testing.TB, l net.Listener, register func(*grpc.Server), options ...grpc.ServerOption) *grpc.Server {
	s := grpc.NewServer(append(append(ServerOptions(), grpc.WaitForHandlers(true)), options...)...)
	register(s)
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { s.Stop(); <-done })
	return s
}

// script is a gateway's end of one stream, as a test wants it.
type script func(evenringpb.Gateway_AttachServer) error

type scripted struct {
	evenringpb.UnimplementedGatewayServer
	attach script
}

func (s scripted) Attach(attach evenringpb.Gateway_AttachServer) error { return s.attach(attach) }

// scriptedGateway serves a script and returns its address.
func scriptedGateway(t testing.TB, attach script) (string, *grpc.Server) {
	l := listen(t, "127.0.0.1:0")
	s := serve(t, l, func(s *grpc.Server) { evenringpb.RegisterGatewayServer(s, scripted{attach: attach}) })
	return l.Addr().String(), s
}

// accepting answers any hello with an Accept and goes on with then.
func accepting(then script) script {
	return func(attach evenringpb.Gateway_AttachServer) error {
		if _, err := attach.Recv(); err != nil {
			return err
		}
		if err := attach.Send(verdictFrame(redirect.Verdict{Outcome: redirect.Accept, Gateway: "gw"})); err != nil {
			return err
		}
		return then(attach)
	}
}

func verdictFrame(v redirect.Verdict) *evenringpb.ServerFrame {
	return &evenringpb.ServerFrame{Frame: &evenringpb.ServerFrame_Verdict{Verdict: verdictToWire(v)}}
}

func noticeFrame(n redirect.Notice) *evenringpb.ServerFrame {
	return &evenringpb.ServerFrame{Frame: &evenringpb.ServerFrame_Notice{Notice: noticeToWire(n)}}
}

func payloadFrame(payload string) *evenringpb.ServerFrame {
	return &evenringpb.ServerFrame{Frame: &evenringpb.ServerFrame_Payload{Payload: []byte(payload)}}
}

// untilEnd reads until the supervisor hangs up.
func untilEnd(attach evenringpb.Gateway_AttachServer) error {
	for {
		if _, err := attach.Recv(); err != nil {
			return nil
		}
	}
}

var plain = Transport{Credentials: insecure.NewCredentials(), Payloads: 16}

var someHello = redirect.Hello{Member: "m", Generation: 1, CanRedirect: true}

// dial dials with tr and expects an Accept.
func dial(t testing.TB, tr Transport, addr string, hello redirect.Hello) *Stream {
	verdict, stream, err := tr.Dial(bounded(t), addr, hello)
	require.NoError(t, err)
	require.Equal(t, redirect.Accept, verdict.Outcome, "%+v", verdict)
	s := stream.(*Stream)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func receive[T any](t testing.TB, from <-chan T) T {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(patience):
		require.FailNow(t, "nothing came")
		panic("unreachable")
	}
}
