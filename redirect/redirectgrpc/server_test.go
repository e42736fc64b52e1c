// SPDX-License-Identifier: Apache-2.0

package redirectgrpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/forward"
	"github.com/evenring/evenring/redirect/redirectgrpc/evenringpb"
	"github.com/evenring/evenring/ring"
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

func TestRedirectIsFollowed(t *testing.T) {
	f := newFleet()
	a, b := f.start(t, "a", gateOptions{}), f.start(t, "b", gateOptions{})
	f.meet(t)
	gates := map[string]*gate{a.addr: a, b.addr: b}

	// Everybody's Service is a.
	const all = 20
	for i := range all {
		hello := redirect.Hello{Member: ring.MemberID(fmt.Sprint("m", i)), Generation: 1, CanRedirect: true}
		verdict, stream, err := plain.Dial(bounded(t), a.addr, hello)
		require.NoError(t, err)
		if verdict.Outcome == redirect.Redirect {
			require.Equal(t, ring.GatewayID("b"), verdict.Gateway)
			require.Equal(t, b.Incarnation(), verdict.Incarnation)
			require.True(t, stream == nil)
			require.Same(t, b, gates[verdict.Endpoint])
			hello.Stay, hello.Hops, hello.Cap = true, 1, verdict.Cap
			verdict, stream, err = plain.Dial(bounded(t), verdict.Endpoint, hello)
			require.NoError(t, err)
		}
		require.Equal(t, redirect.Accept, verdict.Outcome, "%+v", verdict)
		t.Cleanup(func() { _ = stream.Close() })
	}
	require.Equal(t, all, a.Stats().Served+b.Stats().Served)
	require.InDelta(t, all/2, b.Stats().Served, 1)
	require.EqualValues(t, b.Stats().Served, b.Stats().RedirectsArrived, "each place was asked for over the link, and taken")
	require.Zero(t, a.Stats().AskFailures)
	require.Positive(t, a.Stats().Asks)
}

func TestNobodyIsSentToADeadGateway(t *testing.T) {
	f := newFleet()
	a := f.start(t, "a", gateOptions{})
	f.start(t, "b", gateOptions{})
	f.meet(t)
	f.kill("b")
	for i := range 10 {
		dial(t, plain, a.addr, redirect.Hello{Member: ring.MemberID(fmt.Sprint("m", i)), Generation: 1, CanRedirect: true})
	}
	require.Equal(t, 10, a.Stats().Served)
	require.Positive(t, a.Stats().AskFailures)
}

func TestDrainNotice(t *testing.T) {
	f := newFleet()
	a, b := f.start(t, "a", gateOptions{}), f.start(t, "b", gateOptions{})
	f.meet(t)
	hello := redirect.Hello{Member: "m", Generation: 1, Stay: true, CanRedirect: true}
	old := dial(t, plain, a.addr, hello)

	departures := make(chan redirect.Departure, 4)
	served, err := a.StartDrain(func(d redirect.Departure) { departures <- d })
	require.NoError(t, err)
	require.Len(t, served, 1)
	told, err := a.MoveAway(bounded(t), "m")
	require.NoError(t, err)
	heard, err := old.Notice()
	require.NoError(t, err)
	require.Equal(t, told, heard)
	require.Equal(t, redirect.Notice{Kind: redirect.NoticeMove, Reason: redirect.ReasonDraining, Gateway: "b", Endpoint: b.addr, Incarnation: b.Incarnation(), Cap: told.Cap}, heard)

	// Make before break.
	hello.Generation, hello.Cap, hello.Hops = 2, heard.Cap, 1
	dial(t, plain, heard.Endpoint, hello)
	require.Equal(t, redirect.Departure{Member: "m", To: "b"}, receive(t, departures))
	require.NoError(t, old.Close())
	eventually(t, func() bool { return a.Stats().Served+a.Stats().Held == 0 })
	require.Equal(t, 1, b.Stats().Served)
}

func TestGoodbyeAndLoss(t *testing.T) {
	for _, row := range []struct {
		name string
		end  func(*testing.T, *Stream)
		held int
	}{
		{"goodbye", func(t *testing.T, s *Stream) { require.NoError(t, s.Close()) }, 0},
		{"the stream is cut", func(_ *testing.T, s *Stream) { s.end() }, 1},
		{"the connection is cut", func(_ *testing.T, s *Stream) { _ = s.conn.Close() }, 1},
		{"its half ends without a goodbye", func(t *testing.T, s *Stream) { require.NoError(t, s.attach.CloseSend()) }, 1},
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
				require.Equal(t, row.held, g.Stats().Held)
				_, err := s.Notice()
				require.Error(t, err)
			})
		}
	}
}

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

func TestSessions(t *testing.T) {
	g := alone(t, ServerConfig{})
	session := dial(t, plain, g.addr, redirect.Hello{Member: "m", Session: "s", Stay: true})
	require.Equal(t, 1, g.Stats().Sessions)
	require.NoError(t, session.Close())
	eventually(t, func() bool { return g.Stats().Sessions == 0 })
}

func TestRefusal(t *testing.T) {
	g := alone(t, ServerConfig{})
	_, err := g.StartDrain(func(redirect.Departure) {})
	require.NoError(t, err)
	verdict, stream, err := plain.Dial(bounded(t), g.addr, someHello)
	require.NoError(t, err)
	require.True(t, stream == nil)
	require.Equal(t, redirect.Refuse, verdict.Outcome)
	require.Equal(t, redirect.ReasonDraining, verdict.Reason)
	require.Positive(t, verdict.RetryAfter)
}

// S42: the supervisor learns from a heartbeat which incarnation it is attached to.
func TestS42Heartbeat(t *testing.T) {
	g := alone(t, ServerConfig{Heartbeat: time.Millisecond})
	s := dial(t, plain, g.addr, someHello)
	for range 3 {
		n, err := s.Notice()
		require.NoError(t, err)
		require.Equal(t, redirect.Notice{Kind: redirect.NoticeHeartbeat, Gateway: "gw", Incarnation: g.Incarnation()}, n)
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

// echo returns what it receives, until the goodbye.
func echo(_ context.Context, s *ServerStream) error {
	for {
		payload, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.Send(append([]byte(s.Hello().Member+": "), payload...)); err != nil {
			return err
		}
	}
}

func TestPayloads(t *testing.T) {
	g := alone(t, ServerConfig{Serve: echo, Heartbeat: time.Millisecond})
	s := dial(t, plain, g.addr, someHello)
	sent := make(chan error, 1)
	const all = 500
	go func() {
		for i := range all {
			if err := s.Send([]byte(fmt.Sprint(i))); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	for i := range all {
		payload, err := s.Recv()
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint("m: ", i), string(payload))
	}
	require.NoError(t, receive(t, sent))
	n, err := s.Notice()
	require.NoError(t, err)
	require.Equal(t, redirect.NoticeHeartbeat, n.Kind, "payloads took no notice away")
	require.NoError(t, s.Close())
	eventually(t, func() bool { return g.Stats().Served == 0 })
	require.Zero(t, g.Stats().Held)
}

// S44: what was sent before the goodbye is delivered, though the stream is draining.
func TestS44RepliesBeforeTheGoodbyeArrive(t *testing.T) {
	begin, got := make(chan struct{}), make(chan string, 20)
	g := alone(t, ServerConfig{Serve: func(ctx context.Context, s *ServerStream) error {
		select {
		case <-begin:
		case <-ctx.Done():
			got <- "the stream ended first"
		}
		for {
			payload, err := s.Recv()
			if err != nil {
				got <- err.Error()
				return nil
			}
			got <- string(payload)
		}
	}})
	s := dial(t, plain, g.addr, someHello)
	for i := range 10 {
		require.NoError(t, s.Send([]byte(fmt.Sprint(i))))
	}
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	eventually(t, func() bool { return g.Stats().Served == 0 })
	close(begin)
	for i := range 10 {
		require.Equal(t, fmt.Sprint(i), receive(t, got))
	}
	require.Equal(t, "EOF", receive(t, got))
	require.NoError(t, receive(t, closed))
}

func TestServeEndsTheStream(t *testing.T) {
	for _, row := range []struct {
		name string
		err  error
		want func(*testing.T, error)
	}{
		{"in good order", nil, func(t *testing.T, err error) { require.Equal(t, io.EOF, err) }},
		{"with an error", status.Error(codes.Unauthenticated, "token expired"), func(t *testing.T, err error) {
			require.Equal(t, codes.Unauthenticated, status.Code(err), "%v", err)
			require.ErrorContains(t, err, "token expired")
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			g := alone(t, ServerConfig{Serve: func(_ context.Context, s *ServerStream) error {
				for range payloadQueue {
					if err := s.Send([]byte("last words")); err != nil {
						return err
					}
				}
				return row.err
			}})
			s := dial(t, plain, g.addr, someHello)
			for range payloadQueue {
				payload, err := s.Recv()
				require.NoError(t, err)
				require.Equal(t, "last words", string(payload))
			}
			_, err := s.Recv()
			row.want(t, err)
			eventually(t, func() bool { return g.Stats().Held == 1 })
		})
	}
}

func TestServeIsToldOfTheEnd(t *testing.T) {
	type end struct{ recv, send, ctx error }
	for _, row := range []struct {
		name string
		end  func(*gate, *Stream)
	}{
		{"the gateway ends it", func(g *gate, _ *Stream) { g.End("m", redirect.ReasonExpired) }},
		{"it is lost", func(_ *gate, s *Stream) { s.end() }},
	} {
		t.Run(row.name, func(t *testing.T) {
			ends := make(chan end, 1)
			g := alone(t, ServerConfig{Serve: func(ctx context.Context, s *ServerStream) error {
				_, err := s.Recv()
				<-ctx.Done()
				<-s.written
				ends <- end{err, s.Send(nil), ctx.Err()}
				return err
			}})
			s := dial(t, plain, g.addr, someHello)
			row.end(g, s)
			got := receive(t, ends)
			require.Error(t, got.recv)
			require.NotErrorIs(t, got.recv, io.EOF)
			require.Error(t, got.ctx)
			require.Error(t, got.send)
			n, err := s.Notice()
			if err == nil {
				require.Equal(t, redirect.ReasonExpired, n.Reason)
				_, err = s.Notice()
				require.Equal(t, io.EOF, err)
			}
		})
	}
}

// A supervisor that takes nothing cannot keep a stream that the gateway has ended.
func TestEndDoesNotWaitForASupervisorThatDoesNotRead(t *testing.T) {
	done := make(chan error, 1)
	g := alone(t, ServerConfig{Serve: func(_ context.Context, s *ServerStream) error {
		for {
			if err := s.Send(bytes.Repeat([]byte("x"), 1<<16)); err != nil {
				done <- err
				return err
			}
		}
	}})
	tr := plain
	tr.Payloads = 1
	dial(t, tr, g.addr, someHello)
	require.True(t, g.End("m", redirect.ReasonExpired))
	require.Error(t, receive(t, done))
	eventually(t, func() bool { return g.Stats().Served == 0 })
}

func TestPeerAsk(t *testing.T) {
	g := alone(t, ServerConfig{})
	p := plainPeers(t)
	to := at("gw", g.addr)
	answer, err := p.Ask(bounded(t), to, placement.Question{From: "a", Member: "m", Generation: 1, Limit: 1})
	require.NoError(t, err)
	require.True(t, answer.Yes)
	require.Equal(t, placement.Ready, answer.State)
	require.Equal(t, 1, g.Stats().Reserved)

	_, err = g.StartDrain(func(redirect.Departure) {})
	require.NoError(t, err)
	answer, err = p.Ask(bounded(t), to, placement.Question{From: "a", Member: "n", Generation: 1, Limit: 5})
	require.NoError(t, err)
	require.False(t, answer.Yes)
	require.Equal(t, placement.Draining, answer.State)
	require.Len(t, answer.Reports, 1)
	require.Equal(t, ring.GatewayID("gw"), answer.Reports[0].Gateway)
	require.Equal(t, 1, answer.Reports[0].Reserved)
}
