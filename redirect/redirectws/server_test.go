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

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/forward"
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
		{"it ends without a goodbye", func(_ *testing.T, s *Stream) { s.link.close(websocket.StatusNormalClosure, "") }},
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

// A goodbye that comes with the hello, before anybody has looked, does not undo it; one that comes first is a fault.
func TestGoodbyeBesideTheHello(t *testing.T) {
	for range 64 { // of two channels that are ready, either may be taken
		s, end := newServerStream(t.Context(), newLink(), true)
		s.hello.Member = "m"
		close(s.greeted)
		close(s.over)
		hello, err := s.greeting(time.Minute)
		require.NoError(t, err)
		require.Equal(t, s.hello, hello)
		end()
	}
	s, end := newServerStream(t.Context(), newLink(), true)
	defer end()
	close(s.over)
	_, err := s.greeting(time.Minute)
	require.Equal(t, websocket.StatusProtocolError, websocket.CloseStatus(err), "%v", err)
}

func TestServeEndsTheStream(t *testing.T) {
	for _, row := range []struct {
		name string
		err  error
		want func(*testing.T, error)
	}{
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
