// SPDX-License-Identifier: Apache-2.0

package redirectws

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/forward"
	"github.com/evenring/evenring/ring"
)

func TestServerConfig(t *testing.T) {
	err := ServerConfig{
		HelloTimeout: -1, Heartbeat: -2, Linger: -3, OriginPatterns: []string{"ok", "["},
		Calls: &CallConfig{Timeout: -4, Forward: forward.Config{Patience: -5}},
	}.Validate()
	require.ErrorContains(t, err, "ServerConfig.HelloTimeout is -1ns")
	require.ErrorContains(t, err, "ServerConfig.Heartbeat is -2ns")
	require.ErrorContains(t, err, "ServerConfig.Linger is -3ns")
	require.ErrorContains(t, err, `ServerConfig.OriginPatterns[1] is "["`)
	require.ErrorContains(t, err, "ServerConfig.Calls: redirectws: CallConfig.Timeout is -4ns")
	require.ErrorContains(t, err, "CallConfig.Forward: forward: Config.Patience is -5ns")
	_, err = NewHandler(nil, ServerConfig{Heartbeat: -1})
	require.Error(t, err)
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
		verdict, stream, err := plain.Dial(inTime(t), a.addr, hello)
		require.NoError(t, err)
		if verdict.Outcome == redirect.Redirect {
			require.Equal(t, ring.GatewayID("b"), verdict.Gateway)
			require.Equal(t, b.Incarnation(), verdict.Incarnation)
			require.True(t, stream == nil)
			require.Same(t, b, gates[verdict.Endpoint])
			hello.Stay, hello.Hops, hello.Cap = true, 1, verdict.Cap
			verdict, stream, err = plain.Dial(inTime(t), verdict.Endpoint, hello)
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
	told, err := a.MoveAway(inTime(t), "m")
	require.NoError(t, err)
	require.Equal(t, b.addr, told.Endpoint)
	n, err := old.Notice()
	require.NoError(t, err)
	require.Equal(t, told, n)

	// Make before break.
	hello.Generation, hello.Cap, hello.Hops = 2, n.Cap, 1
	dial(t, plain, n.Endpoint, hello)
	require.Equal(t, redirect.Departure{Member: "m", To: "b"}, receiveFrom(t, departures))
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
		{"the connection is cut", func(_ *testing.T, s *Stream) { s.link.wire.cut() }, 1},
		{"it ends without a goodbye", func(_ *testing.T, s *Stream) { s.link.close(websocket.StatusNormalClosure, "") }, 1},
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

// message is one that a supervisor sends by hand.
type message struct {
	kind websocket.MessageType
	data string
}

func words(texts ...string) []message {
	var all []message
	for _, w := range texts {
		all = append(all, message{websocket.MessageText, w})
	}
	return all
}

func TestConversationsThatDoNotStart(t *testing.T) {
	const short = 50 * time.Millisecond
	for _, row := range []struct {
		name     string
		messages []message
		limit    time.Duration
		code     websocket.StatusCode
		text     string
	}{
		{"silence", nil, short, websocket.StatusPolicyViolation, "no hello within"},
		{"only words that are not known", words(`{"sing":1}`, `{}`, `{"hello":null}`), short, websocket.StatusPolicyViolation, "no hello within"},
		{"a payload first", []message{{websocket.MessageBinary, "p"}}, patience, websocket.StatusProtocolError, "before the hello"},
		{"goodbye first", words(`{"goodbye":{}}`), patience, websocket.StatusProtocolError, "goodbye"},
		{"no word", words(`sing`), patience, websocket.StatusInvalidFramePayloadData, "not a word"},
		{"no hello", words(`{"hello":{"generation":"one"}}`), patience, websocket.StatusInvalidFramePayloadData, "not a word"},
		{"not UTF-8", words("{\"hello\":{\"member\":\"\xff\"}}"), patience, websocket.StatusInvalidFramePayloadData, "UTF-8"},
		{"too much", words(`{"hello":{"member":"` + string(bytes.Repeat([]byte("m"), maxHello)) + `"}}`), patience, websocket.StatusMessageTooBig, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			g := alone(t, ServerConfig{HelloTimeout: row.limit})
			ws := raw(t, g.addr)
			for _, m := range row.messages {
				require.NoError(t, ws.Write(inTime(t), m.kind, []byte(m.data)))
			}
			_, _, err := ws.Read(inTime(t))
			require.Equal(t, row.code, websocket.CloseStatus(err), "%v", err)
			require.ErrorContains(t, err, row.text)
			require.Zero(t, g.Stats().Served)
		})
	}
	t.Run("a hello that is not valid", func(t *testing.T) {
		g := alone(t, ServerConfig{})
		ws := raw(t, g.addr)
		require.True(t, text(inTime(t), ws, `{"hello":{}}`))
		verdict := heard(t, ws).Verdict
		require.Equal(t, "refuse bad-hello", verdict.Outcome+" "+verdict.Reason)
	})
	t.Run("another subprotocol", func(t *testing.T) {
		g := alone(t, ServerConfig{})
		ws, _ := open(t, g.addr, websocket.DialOptions{Subprotocols: []string{"evenring.v0"}})
		_, _, err := ws.Read(inTime(t))
		require.Equal(t, websocket.StatusPolicyViolation, websocket.CloseStatus(err), "%v", err)
		require.ErrorContains(t, err, "evenring.v1")
	})
}

func TestSecondHelloEndsTheStream(t *testing.T) {
	g := alone(t, ServerConfig{})
	ws := raw(t, g.addr)
	const hello = `{"hello":{"member":"m","generation":1}}`
	require.True(t, text(inTime(t), ws, hello))
	require.Equal(t, "accept", heard(t, ws).Verdict.Outcome)
	require.True(t, text(inTime(t), ws, hello))
	_, _, err := ws.Read(inTime(t))
	require.Equal(t, websocket.StatusProtocolError, websocket.CloseStatus(err), "%v", err)
}

func TestAuthorize(t *testing.T) {
	g := alone(t, ServerConfig{Authorize: func(ctx context.Context, h redirect.Hello) error {
		if owner := RequestFrom(ctx).Header.Get("Owner"); owner != string(h.Member) {
			return fmt.Errorf("%s is not %s", h.Member, owner)
		}
		return nil
	}})
	tr := plain
	tr.Header = func(context.Context) (http.Header, error) { return http.Header{"Owner": {"m"}}, nil }
	dial(t, tr, g.addr, someHello)
	_, _, err := tr.Dial(inTime(t), g.addr, redirect.Hello{Member: "other", Generation: 1})
	require.Equal(t, websocket.StatusPolicyViolation, websocket.CloseStatus(err), "%v", err)
	require.ErrorContains(t, err, "other is not m")
	require.Equal(t, 1, g.Stats().Served)
	require.Nil(t, RequestFrom(t.Context()))
}

// A page of another host opens no stream, unless it may.
func TestOrigins(t *testing.T) {
	g := alone(t, ServerConfig{OriginPatterns: []string{"*.example.com"}})
	for origin, want := range map[string]int{
		"":                        http.StatusSwitchingProtocols,
		"http://" + g.addr:        http.StatusSwitchingProtocols,
		"https://ok.example.com":  http.StatusSwitchingProtocols,
		"https://example.org":     http.StatusForbidden,
		"https://example.com.org": http.StatusForbidden,
	} {
		header := http.Header{}
		if origin != "" {
			header.Set("Origin", origin)
		}
		_, status := open(t, g.addr, websocket.DialOptions{Subprotocols: []string{Subprotocol}, HTTPHeader: header})
		require.Equal(t, want, status, origin)
	}
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
	require.NoError(t, receiveFrom(t, sent))
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
		require.Equal(t, fmt.Sprint(i), receiveFrom(t, got))
	}
	require.Equal(t, "EOF", receiveFrom(t, got))
	require.NoError(t, receiveFrom(t, closed))
}

// A supervisor that says goodbye and stays does not keep the application.
func TestApplicationEndsAfterTheGoodbye(t *testing.T) {
	ended := make(chan error, 1)
	g := alone(t, ServerConfig{Serve: func(ctx context.Context, s *ServerStream) error {
		_, err := s.Recv()
		<-ctx.Done()
		ended <- err
		return nil
	}})
	ws := raw(t, g.addr)
	require.True(t, text(inTime(t), ws, `{"hello":{"member":"m","generation":"1"}}`, `{"goodbye":{}}`))
	require.Equal(t, io.EOF, receiveFrom(t, ended))
	require.Equal(t, "accept", heard(t, ws).Verdict.Outcome)
	_, _, err := ws.Read(inTime(t))
	require.Error(t, err)
}

func TestServeEndsTheStream(t *testing.T) {
	for _, row := range []struct {
		name string
		err  error
		want func(*testing.T, error)
	}{
		{"in good order", nil, func(t *testing.T, err error) { require.Equal(t, io.EOF, err) }},
		{"with an error", errors.New("token expired"), func(t *testing.T, err error) {
			require.Equal(t, websocket.StatusInternalError, websocket.CloseStatus(err), "%v", err)
			require.ErrorContains(t, err, "token expired")
		}},
		{"with a code", websocket.CloseError{Code: 4001, Reason: "token expired"}, func(t *testing.T, err error) {
			require.Equal(t, websocket.StatusCode(4001), websocket.CloseStatus(err), "%v", err)
			require.ErrorContains(t, err, "token expired")
		}},
		{"with a long story", errors.New("ü" + string(bytes.Repeat([]byte("ü"), 1000))), func(t *testing.T, err error) {
			require.Equal(t, websocket.StatusInternalError, websocket.CloseStatus(err), "%v", err)
			require.ErrorContains(t, err, "üüü")
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
			got := receiveFrom(t, ends)
			require.Error(t, got.recv)
			require.NotErrorIs(t, got.recv, io.EOF, "that would be a goodbye")
			require.Error(t, got.ctx)
			require.Error(t, got.send)
			if n, err := s.Notice(); err == nil {
				require.Equal(t, redirect.ReasonExpired, n.Reason)
				_, err = s.Notice()
				require.Error(t, err)
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
	s := dial(t, tr, g.addr, someHello)
	eventually(t, s.link.parked.Load)
	require.True(t, g.End("m", redirect.ReasonExpired))
	require.Error(t, receiveFrom(t, done))
	eventually(t, func() bool { return g.Stats().Served == 0 })
}

func TestPeerAsk(t *testing.T) {
	g := alone(t, ServerConfig{})
	p := plainPeers(t)
	to := at("gw", g.addr)
	answer, err := p.Ask(inTime(t), to, placement.Question{From: "a", Member: "m", Generation: 1, Limit: 1})
	require.NoError(t, err)
	require.True(t, answer.Yes)
	require.Equal(t, placement.Ready, answer.State)
	require.Equal(t, 1, g.Stats().Reserved)

	_, err = g.StartDrain(func(redirect.Departure) {})
	require.NoError(t, err)
	answer, err = p.Ask(inTime(t), to, placement.Question{From: "a", Member: "n", Generation: 1, Limit: 5})
	require.NoError(t, err)
	require.False(t, answer.Yes)
	require.Equal(t, placement.Draining, answer.State)
	require.Len(t, answer.Reports, 1)
	require.Equal(t, ring.GatewayID("gw"), answer.Reports[0].Gateway)
	require.Equal(t, 1, answer.Reports[0].Reserved)
}

// What is posted is JSON, says so, and is not too long.
func TestPosts(t *testing.T) {
	f := newFleet()
	g := f.start(t, "gw", taking)
	f.meet(t)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, path := range []string{AskPath, ForwardPath, CallPath} {
		for _, row := range []struct {
			kind, body string
			want       int
		}{
			{"text/plain", `{}`, http.StatusUnsupportedMediaType},
			{"", `{}`, http.StatusUnsupportedMediaType},
			{contentType, `sing`, http.StatusBadRequest},
			{contentType, `{"member":1}`, http.StatusBadRequest},
			{contentType, "{\"member\":\"\xff\"}", http.StatusBadRequest},
			{contentType + "; charset=utf-8", `[]`, http.StatusBadRequest},
			{contentType, string(bytes.Repeat([]byte(" "), maxMessage+1)), http.StatusRequestEntityTooLarge},
		} {
			answer, err := client.Post("http://"+g.addr+path, row.kind, bytes.NewReader([]byte(row.body)))
			require.NoError(t, err)
			body, err := io.ReadAll(answer.Body)
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
			require.Equal(t, row.want, answer.StatusCode, "%s: %.20s: %s", path, row.body, body)
			var w replyWord
			require.NoError(t, decode(body, &w))
			require.Equal(t, wireRefused, w.Outcome)
		}
		answer, err := client.Get("http://" + g.addr + path)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusMethodNotAllowed, answer.StatusCode)
	}
}

// Shutdown waits for streams to end, lets no more in, and ends those that do not.
func TestShutdown(t *testing.T) {
	g := alone(t, ServerConfig{})
	s := dial(t, plain, g.addr, someHello)
	over := make(chan error, 1)
	go func() { over <- g.handler.Shutdown(inTime(t)) }()
	eventually(t, func() bool {
		_, _, err := plain.Dial(inTime(t), g.addr, redirect.Hello{Member: "n", Generation: 1})
		return err != nil
	})
	_, _, err := plain.Dial(inTime(t), g.addr, redirect.Hello{Member: "n", Generation: 1})
	require.ErrorContains(t, err, "503")
	require.Empty(t, over)
	g.EndAll(redirect.ReasonStopped)
	require.NoError(t, receiveFrom(t, over))
	n, err := s.Notice()
	require.NoError(t, err)
	require.Equal(t, redirect.ReasonStopped, n.Reason)
	_, err = s.Notice()
	require.Equal(t, io.EOF, err)
	require.NoError(t, g.handler.Shutdown(inTime(t)))

	g = alone(t, ServerConfig{})
	s = dial(t, plain, g.addr, someHello)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, g.handler.Shutdown(ctx), context.Canceled)
	_, err = s.Notice()
	require.Error(t, err)
	require.Equal(t, 1, g.Stats().Held)
}
