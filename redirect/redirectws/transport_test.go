// SPDX-License-Identifier: Apache-2.0

package redirectws

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

func TestDialGivesTheHelloAndTheVerdict(t *testing.T) {
	hello := redirect.Hello{Member: "m", Generation: 9, Stay: true, Hops: 1, Cap: 4, Avoid: []ring.GatewayID{"x"}, CanRedirect: true, Home: "h", Proof: []byte("p")}
	for _, want := range []redirect.Verdict{
		{Outcome: redirect.Accept, Reason: redirect.ReasonStay, Gateway: "gw", Incarnation: 5, Cap: 3},
		{Outcome: redirect.Redirect, Reason: redirect.ReasonPlaced, Gateway: "b", Endpoint: "b:443", Cap: 3, Full: []ring.GatewayID{"a"}},
		{Outcome: redirect.Refuse, Reason: redirect.ReasonDraining, RetryAfter: 1500 * time.Millisecond},
		{}, // and one that admits nobody
	} {
		t.Run(want.Outcome.String(), func(t *testing.T) {
			hellos := make(chan []byte, 1)
			addr, _ := scriptedGateway(t, func(ctx context.Context, ws *websocket.Conn) {
				_, first, err := ws.Read(ctx)
				if err != nil {
					return
				}
				hellos <- first
				answer, err := encodeVerdict(want)
				if err != nil || !text(ctx, ws, string(answer)) {
					return
				}
				if want.Outcome == redirect.Accept {
					untilEnd(ctx, ws)
				}
			})
			verdict, stream, err := plain.Dial(inTime(t), addr, hello)
			require.NoError(t, err)
			require.Equal(t, want, verdict)
			var w word
			require.NoError(t, json.Unmarshal(receiveFrom(t, hellos), &w))
			require.Equal(t, hello, helloFromWire(w.Hello))
			if want.Outcome != redirect.Accept {
				require.True(t, stream == nil, "an interface that holds nothing")
				return
			}
			require.NoError(t, stream.Close())
		})
	}
}

func TestFailedDials(t *testing.T) {
	silent := listen(t, "127.0.0.1:0")
	t.Cleanup(func() { _ = silent.Close() })
	says := func(words ...string) string {
		addr, _ := scriptedGateway(t, func(ctx context.Context, ws *websocket.Conn) {
			if text(ctx, ws, words...) {
				untilEnd(ctx, ws)
			}
		})
		return addr
	}
	closes := func(code websocket.StatusCode, reason string) string {
		addr, _ := scriptedGateway(t, func(ctx context.Context, ws *websocket.Conn) {
			if _, _, err := ws.Read(ctx); err == nil {
				_ = ws.Close(code, reason)
			}
		})
		return addr
	}
	answers := func(handler http.HandlerFunc) string {
		l := listen(t, "127.0.0.1:0")
		serve(t, l, handler)
		return l.Addr().String()
	}
	is := func(want error) func(*testing.T, error) {
		return func(t *testing.T, err error) { require.ErrorIs(t, err, want) }
	}
	contains := func(want string) func(*testing.T, error) {
		return func(t *testing.T, err error) { require.ErrorContains(t, err, want) }
	}
	for _, row := range []struct {
		name  string
		addr  string
		limit time.Duration
		check func(*testing.T, error)
	}{
		{"nobody listens", refusing(t), patience, contains("refused")},
		{"nobody answers", silent.Addr().String(), 50 * time.Millisecond, is(context.DeadlineExceeded)},
		{"no verdict", says(`{}`, `{"song":1}`), 50 * time.Millisecond, is(context.DeadlineExceeded)},
		{"it ends without a verdict", closes(websocket.StatusNormalClosure, ""), patience, is(io.ErrUnexpectedEOF)},
		{"it is not let in", closes(websocket.StatusPolicyViolation, "who are you?"), patience, func(t *testing.T, err error) {
			require.Equal(t, websocket.StatusPolicyViolation, websocket.CloseStatus(err), "%v", err)
			require.ErrorContains(t, err, "who are you?")
		}},
		{"a verdict that is none", says(`{"verdict":[]}`), patience, contains("not a word")},
		{"words that are none", says(`sing`), patience, contains("not a word")},
		{"text that is none", says("{\"\xff\":1}"), patience, contains("UTF-8")},
		{"no gateway there", answers(http.NotFound), patience, contains("404")},
		{"another protocol", answers(func(w http.ResponseWriter, r *http.Request) {
			ws, err := websocket.Accept(w, r, nil)
			if err == nil {
				untilEnd(r.Context(), ws)
			}
		}), patience, contains("does not speak evenring.v1")},
		{"an address that is none", "127.0.0.1:port", patience, contains("port")},
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
		_, _, err := plain.Dial(ctx, silent.Addr().String(), someHello)
		require.ErrorIs(t, err, cause)
	})
	t.Run("no credentials", func(t *testing.T) {
		_, _, err := Transport{}.Dial(inTime(t), silent.Addr().String(), someHello)
		require.ErrorContains(t, err, "set TLS, or Plaintext")
	})
	t.Run("no header", func(t *testing.T) {
		tr := plain
		tr.Header = func(context.Context) (http.Header, error) { return nil, errors.New("no token today") }
		_, _, err := tr.Dial(inTime(t), silent.Addr().String(), someHello)
		require.ErrorContains(t, err, "no token today")
	})
	t.Run("Payloads", func(t *testing.T) {
		_, _, err := Transport{Payloads: -1}.Dial(inTime(t), silent.Addr().String(), someHello)
		require.ErrorContains(t, err, "Transport.Payloads")
	})
	t.Run("not UTF-8", func(t *testing.T) {
		_, _, err := plain.Dial(inTime(t), silent.Addr().String(), redirect.Hello{Member: "\xff"})
		require.ErrorContains(t, err, "UTF-8")
	})
}

// S32: wherever an answer of HTTP points, credentials do not go.
func TestS32HTTPRedirectsAreNotFollowed(t *testing.T) {
	visited := make(chan string, 1)
	l := listen(t, "127.0.0.1:0")
	serve(t, l, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { visited <- r.Header.Get("Authorization") }))
	elsewhere := l.Addr().String()
	l = listen(t, "127.0.0.1:0")
	serve(t, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+elsewhere+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	header := func(context.Context) (http.Header, error) {
		return http.Header{"Authorization": {"secret"}}, nil
	}
	tr := plain
	tr.Header = header
	_, _, err := tr.Dial(inTime(t), l.Addr().String(), someHello)
	require.ErrorContains(t, err, "307")
	p := &Peers{Plaintext: true, Header: header}
	defer p.Close()
	_, err = p.Ask(inTime(t), at("b", l.Addr().String()), someQuestion)
	require.ErrorContains(t, err, "307")
	c := &Caller{Plaintext: true, Header: header}
	defer c.Close()
	_, err = c.Call(inTime(t), l.Addr().String(), redirect.Request{Member: "m"})
	require.ErrorContains(t, err, "307")
	require.Empty(t, visited)
}

func TestContextBoundsOnlyTheDial(t *testing.T) {
	type key struct{}
	speak := make(chan struct{})
	addr, _ := scriptedGateway(t, accepting(func(ctx context.Context, ws *websocket.Conn) {
		<-speak
		if text(ctx, ws, `{"notice":{"kind":"heartbeat"}}`) {
			untilEnd(ctx, ws)
		}
	}))
	seen := make(chan any, 1)
	tr := plain
	tr.Header = func(ctx context.Context) (http.Header, error) { seen <- ctx.Value(key{}); return nil, nil }
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), key{}, "secret"))
	_, stream, err := tr.Dial(ctx, addr, someHello)
	require.NoError(t, err)
	cancel()
	close(speak)
	n, err := stream.Notice()
	require.NoError(t, err)
	require.Equal(t, redirect.NoticeHeartbeat, n.Kind)
	require.Equal(t, "secret", receiveFrom(t, seen))
	require.NoError(t, stream.Close())
}

func TestStreamEnds(t *testing.T) {
	addr, _ := scriptedGateway(t, accepting(func(_ context.Context, ws *websocket.Conn) { _ = ws.Close(4000, "oops") }))
	s := dial(t, plain, addr, someHello)
	for _, end := range []func() error{
		func() error { _, err := s.Notice(); return err },
		func() error { _, err := s.Recv(); return err },
	} {
		err := end()
		require.Equal(t, websocket.StatusCode(4000), websocket.CloseStatus(err), "%v", err)
		require.ErrorContains(t, err, "oops")
	}
	<-s.ended
	require.ErrorIs(t, s.Send(nil), io.EOF)
	require.NoError(t, s.Close())
	_, err := s.Notice()
	require.Equal(t, ErrClosed, err)
	require.Equal(t, ErrClosed, s.Send(nil))
}

// What cannot be understood ends the stream, at either end, and the other is told why.
func TestWordsThatAreNone(t *testing.T) {
	for _, w := range []string{`sing`, `[]`, `{"notice":1}`, `{"notice":{"incarnation":-1}}`, `{"request":{"timeout":1}}`, "\xff"} {
		codes := make(chan websocket.StatusCode, 1)
		addr, _ := scriptedGateway(t, accepting(func(ctx context.Context, ws *websocket.Conn) {
			text(ctx, ws, w)
			_, _, err := ws.Read(ctx)
			codes <- websocket.CloseStatus(err)
		}))
		s := dial(t, plain, addr, someHello)
		_, err := s.Notice()
		require.ErrorContains(t, err, "not a word", w)
		require.Equal(t, websocket.StatusInvalidFramePayloadData, receiveFrom(t, codes), w)
	}
}

func TestCloseSaysGoodbye(t *testing.T) {
	type message struct {
		kind websocket.MessageType
		data string
	}
	all := make(chan message, 4)
	addr, _ := scriptedGateway(t, accepting(func(ctx context.Context, ws *websocket.Conn) {
		for {
			kind, data, err := ws.Read(ctx)
			if err != nil {
				close(all)
				return
			}
			all <- message{kind, string(data)}
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
		require.NoError(t, receiveFrom(t, closes))
	}
	require.Equal(t, ErrClosed, receiveFrom(t, errs))
	require.Equal(t, ErrClosed, receiveFrom(t, errs))
	require.Equal(t, message{websocket.MessageBinary, "last words"}, receiveFrom(t, all))
	require.Equal(t, message{websocket.MessageText, `{"goodbye":{}}`}, receiveFrom(t, all))
	require.Zero(t, receiveFrom(t, all))
}

// A gateway that reads nothing and does not end the stream holds nobody up for long.
func TestCloseIsBounded(t *testing.T) {
	over := make(chan struct{})
	addr, _ := scriptedGateway(t, accepting(func(context.Context, *websocket.Conn) { <-over }))
	t.Cleanup(func() { close(over) })
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
	require.NoError(t, s.Close())
	require.Error(t, receiveFrom(t, stuck))
}

// Payloads that nobody takes hold back what is behind them, but a connection
// that breaks ends the stream all the same.
func TestBrokenConnectionIsSeenBehindPayloads(t *testing.T) {
	sent, broken := make(chan struct{}), make(chan struct{})
	addr, server := scriptedGateway(t, accepting(func(ctx context.Context, ws *websocket.Conn) {
		for range 10 {
			if !payload(ctx, ws, "p") {
				return
			}
		}
		close(sent)
		<-broken
	}))
	tr := plain
	tr.Payloads = 2
	s := dial(t, tr, addr, someHello)
	receiveFrom(t, sent)
	eventually(t, s.link.parked.Load)
	ended := make(chan error, 1)
	go func() { _, err := s.Notice(); ended <- err }()
	close(broken)
	server.stop()
	require.Error(t, receiveFrom(t, ended))
	for range 2 {
		payload, err := s.Recv()
		require.NoError(t, err)
		require.Equal(t, "p", string(payload))
	}
	eventually(t, func() bool { _, err := s.Recv(); return err != nil })
}

func TestPayloadsThatAreNotWantedHoldNothingUp(t *testing.T) {
	addr, _ := scriptedGateway(t, accepting(func(ctx context.Context, ws *websocket.Conn) {
		for range 1000 {
			if !payload(ctx, ws, "p") {
				return
			}
		}
		text(ctx, ws, `{"notice":{"kind":"move","gateway":"b"}}`)
		_ = ws.Close(websocket.StatusNormalClosure, "")
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
	addr, _ := scriptedGateway(t, accepting(func(ctx context.Context, ws *websocket.Conn) {
		for range 10 * noticeQueue {
			if !text(ctx, ws, `{"notice":{"kind":"heartbeat"}}`) {
				return
			}
		}
		if payload(ctx, ws, "p") && text(ctx, ws, `{"notice":{"kind":"end"}}`) {
			untilEnd(ctx, ws)
		}
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

func TestTooLongPayloads(t *testing.T) {
	g := alone(t, ServerConfig{Serve: echo})
	s := dial(t, plain, g.addr, someHello)
	longest := bytes.Repeat([]byte("x"), MaxPayloadBytes)
	require.ErrorContains(t, s.Send(append(longest, 0)), "the payload has")
	require.NoError(t, s.Send(longest))
	_, err := s.Recv()
	require.Equal(t, websocket.StatusInternalError, websocket.CloseStatus(err), "the echo is longer: %v", err)
	require.ErrorContains(t, err, "the payload has")
}

// The connections are made as HTTP says.
func TestHTTP(t *testing.T) {
	g := alone(t, ServerConfig{})
	base := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		require.Equal(t, "gateway:1", addr)
		return new(net.Dialer).DialContext(ctx, network, g.addr)
	}}
	tr := plain
	tr.HTTP = base
	require.NoError(t, dial(t, tr, "gateway:1", someHello).Close())
	p := &Peers{Plaintext: true, HTTP: base}
	defer p.Close()
	_, err := p.Ask(inTime(t), at("gw", "gateway:1"), someQuestion)
	require.NoError(t, err)
}
