// SPDX-License-Identifier: Apache-2.0

package redirectws

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/redirect"
)

// pipes is a network within a bubble, whose connections hold little: who writes more
// waits until somebody reads. It listens, and dials.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once

	pumps sync.WaitGroup
	mu    sync.Mutex
	made  []*pipe
}

// pipe is one end of a connection, which may fall silent.
type pipe struct {
	net.Conn // net.Pipe's, which holds nothing
	out      chan []byte
	dead     chan struct{} // closed: nothing passes any more
	die      func()
	gone     chan struct{} // closed: this end has been closed
	close    func()
}

// join makes a connection of what net.Pipe makes.
func (p *pipes) join() (near, far *pipe) {
	a, b := net.Pipe()
	dead := make(chan struct{})
	die := sync.OnceFunc(func() { close(dead) })
	end := func(conn net.Conn) *pipe {
		e := &pipe{Conn: conn, out: make(chan []byte, 4), dead: dead, die: die, gone: make(chan struct{})}
		e.close = sync.OnceFunc(func() {
			close(e.gone)
			_ = conn.SetReadDeadline(time.Unix(1, 0))
			_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
		})
		p.pumps.Go(e.pump)
		return e
	}
	return end(a), end(b)
}

func (p *pipe) pump() {
	for {
		var b []byte
		select {
		case b = <-p.out:
		case <-p.gone:
			select {
			case b = <-p.out:
			default:
				select {
				case <-p.dead: // the other end is not told
				default:
					_ = p.Conn.Close()
				}
				return
			}
		}
		select {
		case <-p.dead: // what was sent is lost
		default:
			_, _ = p.Conn.Write(b)
		}
	}
}

func (p *pipe) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	select {
	case <-p.dead:
		<-p.gone
		return 0, net.ErrClosed
	default:
		return n, err
	}
}

func (p *pipe) Write(b []byte) (int, error) {
	select {
	case p.out <- bytes.Clone(b):
		return len(b), nil
	case <-p.gone:
		return 0, net.ErrClosed
	}
}

func (p *pipe) Close() error { p.close(); return nil }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := p.join()
	select {
	case p.conns <- far:
		p.mu.Lock()
		defer p.mu.Unlock()
		p.made = append(p.made, near)
		return near, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// bubbled starts, within a bubble, a gateway and a transport between which is a network
// that holds little.
func bubbled(t *testing.T, cfg ServerConfig) (*redirect.Gateway, Transport, *pipes) {
	gw, err := redirect.NewGateway(redirect.Config{Gateway: "gw", Incarnation: 1}, redirect.Hooks{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { gw.Run(ctx, nil) })
	handler, err := NewHandler(gw, cfg)
	require.NoError(t, err)
	network := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	server := &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: patience}
	running.Go(func() { _ = server.Serve(network) })
	t.Cleanup(func() {
		over, end := context.WithCancel(context.Background())
		end()
		_ = handler.Shutdown(over)
		_ = server.Close()
		cancel()
		running.Wait()
		network.pumps.Wait()
	})
	return gw, Transport{Plaintext: true, Payloads: 1, HTTP: &http.Transport{DialContext: network.dial}}, network
}

func bubbleDial(t *testing.T, tr Transport) *Stream {
	_, stream, err := tr.Dial(t.Context(), "gw:1", someHello)
	require.NoError(t, err)
	require.NotNil(t, stream)
	return stream.(*Stream)
}

// wait lets time pass in the bubble.
func wait(d time.Duration) { <-time.After(d) }

// A stream on which nobody says anything for an hour is kept.
func TestQuietStreamsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gw, tr, _ := bubbled(t, ServerConfig{Heartbeat: 24 * time.Hour})
		s := bubbleDial(t, tr)
		wait(time.Hour)
		require.Equal(t, 1, gw.Stats().Served)
		require.NoError(t, s.Close())
		synctest.Wait()
		require.Equal(t, 0, gw.Stats().Served+gw.Stats().Held)
	})
}

// Both ends find out by themselves, in time, that the other has vanished.
func TestSilenceIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gw, tr, network := bubbled(t, ServerConfig{})
		s := bubbleDial(t, tr)
		wait(time.Minute + time.Second)
		network.made[0].die()
		died := time.Now()
		for {
			if _, err := s.Notice(); err != nil {
				require.ErrorIs(t, err, errSilent)
				break
			}
		}
		require.LessOrEqual(t, time.Since(died), pingAfter+pingTimeout+time.Second)
		for gw.Stats().Served > 0 && time.Since(died) < time.Hour {
			wait(time.Second)
		}
		require.LessOrEqual(t, time.Since(died), pingAfter+pingTimeout+2*time.Second)
		require.Equal(t, 1, gw.Stats().Held)
		require.NoError(t, s.Close())
	})
}

// A supervisor that does not take its payloads for an hour is slowed down, and kept; and
// then it gets them all.
func TestSlowSupervisorIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const all = 40
		sent := make(chan int, all)
		gw, tr, _ := bubbled(t, ServerConfig{Serve: func(_ context.Context, s *ServerStream) error {
			for i := range all {
				if err := s.Send([]byte{byte(i)}); err != nil {
					return err
				}
				sent <- i
			}
			_, err := s.Recv()
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}})
		s := bubbleDial(t, tr)
		wait(time.Hour)
		require.Less(t, len(sent), all, "it is slowed down")
		require.Equal(t, 1, gw.Stats().Served)
		for i := range all {
			payload, err := s.Recv()
			require.NoError(t, err)
			require.Equal(t, []byte{byte(i)}, payload)
		}
		require.NoError(t, s.Close())
	})
}

// So is a supervisor whose payloads the gateway does not take.
func TestSlowGatewayIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const all = 40
		begin := make(chan struct{})
		got := make(chan byte, all)
		gw, tr, _ := bubbled(t, ServerConfig{Serve: func(ctx context.Context, s *ServerStream) error {
			select {
			case <-begin:
			case <-ctx.Done():
				return ctx.Err()
			}
			for {
				payload, err := s.Recv()
				if errors.Is(err, io.EOF) {
					return nil
				}
				if err != nil {
					return err
				}
				got <- payload[0]
			}
		}})
		s := bubbleDial(t, tr)
		results := make(chan error, 1)
		go func() {
			for i := range all {
				if err := s.Send([]byte{byte(i)}); err != nil {
					results <- err
					return
				}
			}
			results <- nil
		}()
		wait(time.Hour)
		require.Empty(t, results, "it is slowed down")
		require.Equal(t, 1, gw.Stats().Served)
		close(begin)
		require.NoError(t, <-results)
		for i := range all {
			require.Equal(t, byte(i), <-got)
		}
		require.NoError(t, s.Close())
	})
}

// And so are two that do not take what the other sends.
func TestSlowBothWaysIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gw, tr, _ := bubbled(t, ServerConfig{Serve: func(ctx context.Context, s *ServerStream) error {
			for range 1000 {
				if err := s.Send([]byte("down")); err != nil {
					return err
				}
			}
			<-ctx.Done()
			return ctx.Err()
		}})
		s := bubbleDial(t, tr)
		results := make(chan error, 1)
		go func() {
			for {
				if err := s.Send([]byte("up")); err != nil {
					results <- err
					return
				}
			}
		}()
		wait(time.Hour)
		require.Empty(t, results)
		require.Equal(t, 1, gw.Stats().Served)
		s.end() // a mutex that is waited for holds up a bubble's time, so no Close here
		require.Error(t, <-results)
		require.NoError(t, s.Close())
	})
}

// A supervisor in another language answers pings, as its WebSocket library does, and says no
// more: it is kept. One whose library does not answer is given up.
func TestAnswersToPingsAreEnough(t *testing.T) {
	for _, answers := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			gw, _, network := bubbled(t, ServerConfig{Heartbeat: 24 * time.Hour})
			ws, _ := open(t, "gw:1", websocket.DialOptions{
				HTTPClient:     &http.Client{Transport: &http.Transport{DialContext: network.dial, DisableKeepAlives: true}},
				Subprotocols:   []string{Subprotocol},
				OnPingReceived: func(context.Context, []byte) bool { return answers },
			})
			require.True(t, text(t.Context(), ws, `{"hello":{"member":"m","generation":1}}`))
			_, _, err := ws.Read(t.Context())
			require.NoError(t, err)
			ended := make(chan error, 1)
			go func() { _, _, err := ws.Read(context.Background()); ended <- err }()
			wait(time.Hour)
			require.Equal(t, answers, gw.Stats().Served == 1)
			require.Equal(t, answers, len(ended) == 0)
			_ = ws.CloseNow()
			require.Error(t, <-ended)
		})
	}
}
