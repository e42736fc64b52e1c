// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// patience bounds what should happen soon. It is spent only by a test that fails.
const patience = 20 * time.Second

func eventually(t *testing.T, condition func() bool, what ...any) {
	t.Helper()
	require.Eventually(t, condition, patience, time.Millisecond, what...)
}

// target is a backend: a TCP server, and a page that says whether it is ready.
type target struct {
	listener *net.TCPListener
	ops      *httptest.Server
	ready    atomic.Bool
	accepted atomic.Int64
	serving  sync.WaitGroup
}

// newTarget starts a backend that is ready and serves each connection, which is closed after that.
func newTarget(t *testing.T, serve func(*net.TCPConn)) *target {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	b := &target{listener: l}
	b.ready.Store(true)
	b.ops = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" || !b.ready.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	b.serving.Go(func() {
		for {
			c, err := l.AcceptTCP()
			if err != nil {
				return
			}
			b.accepted.Add(1)
			b.serving.Go(func() {
				defer c.Close()
				serve(c)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		b.serving.Wait()
		b.ops.Close()
	})
	return b
}

// behind adds the backend to a balancer, and waits until it takes connections there.
func (b *target) behind(t *testing.T, lb *balancer, id string) {
	t.Helper()
	n := lb.ready()
	lb.add(id, b.listener.Addr().String(), b.ops.Listener.Addr().String())
	eventually(t, func() bool { return lb.ready() == n+1 })
}

// greet says a name and waits for the client to go.
func greet(name string) func(*net.TCPConn) {
	return func(c *net.TCPConn) {
		_, _ = io.WriteString(c, name)
		_, _ = io.Copy(io.Discard, c)
	}
}

func echo(c *net.TCPConn) { _, _ = io.Copy(c, c) }

func startBalancer(t *testing.T, seed uint64) *balancer {
	t.Helper()
	lb, err := newBalancer(seed)
	require.NoError(t, err)
	t.Cleanup(lb.close)
	return lb
}

// dial connects to the Service.
func dial(t *testing.T, lb *balancer) *net.TCPConn {
	t.Helper()
	c, err := net.DialTimeout("tcp", lb.address(), patience)
	require.NoError(t, err)
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}

// reads requires that so much comes, and no more is asked for.
func reads(t *testing.T, c net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	_, err := io.ReadFull(c, got)
	require.NoError(t, err)
	require.Equal(t, want, string(got))
}

// ends requires that nothing comes any more, and that without waiting for the deadline.
func ends(t *testing.T, c net.Conn) {
	t.Helper()
	rest, err := io.ReadAll(c)
	require.Empty(t, rest)
	if err != nil {
		require.ErrorIs(t, err, syscall.ECONNRESET)
	}
}

// visit connects, and returns which backend greeted: a name of one byte.
func visit(t *testing.T, lb *balancer) string {
	t.Helper()
	c := dial(t, lb)
	defer c.Close()
	name := make([]byte, 1)
	_, err := io.ReadFull(c, name)
	require.NoError(t, err)
	return string(name)
}

func TestBalancerPicksAtRandomAmongThoseThatAreReady(t *testing.T) {
	const visits = 300
	run := func() (order string, counts map[string]int) {
		lb := startBalancer(t, 42)
		idle := newTarget(t, greet("x"))
		idle.ready.Store(false)
		lb.add("gw-0", idle.listener.Addr().String(), idle.ops.Listener.Addr().String())
		for _, name := range []string{"a", "b", "c"} {
			newTarget(t, greet(name)).behind(t, lb, name)
		}
		counts = make(map[string]int)
		for range visits {
			name := visit(t, lb)
			counts[name]++
			order += name
		}
		require.Zero(t, idle.accepted.Load())
		return order, counts
	}
	order, counts := run()
	for _, name := range []string{"a", "b", "c"} {
		require.InDelta(t, visits/3, counts[name], visits/10, "%v", counts)
	}
	again, _ := run()
	require.Equal(t, order, again, "the seed says it all")
}

func TestBalancerSeedsDiffer(t *testing.T) {
	picks := func(seed uint64) (all []string) {
		lb := startBalancer(t, seed)
		for _, name := range []string{"a", "b"} {
			lb.backends[name] = &backend{address: name, ready: true, stop: func() {}}
		}
		for range 64 {
			all = append(all, lb.pick())
		}
		return all
	}
	require.Equal(t, picks(1), picks(1))
	require.NotEqual(t, picks(1), picks(2))
}

func TestBalancerSparesABackendThatIsNotReady(t *testing.T) {
	lb := startBalancer(t, 1)
	a, b := newTarget(t, echo), newTarget(t, echo)
	a.behind(t, lb, "a")
	old := dial(t, lb)
	_, err := io.WriteString(old, "before")
	require.NoError(t, err)
	reads(t, old, "before")
	b.behind(t, lb, "b")

	a.ready.Store(false)
	eventually(t, func() bool { return lb.ready() == 1 })
	for range 20 {
		c := dial(t, lb)
		_, err := io.WriteString(c, "new")
		require.NoError(t, err)
		reads(t, c, "new")
	}
	require.EqualValues(t, 1, a.accepted.Load())
	require.EqualValues(t, 20, b.accepted.Load())
	_, err = io.WriteString(old, "after")
	require.NoError(t, err)
	reads(t, old, "after")

	a.ready.Store(true)
	eventually(t, func() bool { return lb.ready() == 2 })
	eventually(t, func() bool { dial(t, lb); return a.accepted.Load() > 1 })
}

func TestBalancerForgetsABackendAndKeepsItsConnections(t *testing.T) {
	lb := startBalancer(t, 1)
	a := newTarget(t, echo)
	a.behind(t, lb, "a")
	old := dial(t, lb)
	_, err := io.WriteString(old, "before")
	require.NoError(t, err)
	reads(t, old, "before")

	lb.remove("a")
	lb.remove("a") // and nobody minds
	require.Zero(t, lb.ready())
	ends(t, dial(t, lb))
	_, err = io.WriteString(old, "after")
	require.NoError(t, err)
	reads(t, old, "after")
	require.EqualValues(t, 1, a.accepted.Load())
}

func TestBalancerPassesAHalfCloseOn(t *testing.T) {
	lb := startBalancer(t, 1)
	newTarget(t, func(c *net.TCPConn) { // answers only after the end
		all, _ := io.ReadAll(c)
		_, _ = fmt.Fprintf(c, "%d bytes", len(all))
	}).behind(t, lb, "a")
	c := dial(t, lb)
	_, err := io.WriteString(c, "hello")
	require.NoError(t, err)
	require.NoError(t, c.CloseWrite())
	answer, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Equal(t, "5 bytes", string(answer))
}

func TestBalancerPassesTheServersHalfCloseOn(t *testing.T) {
	lb := startBalancer(t, 1)
	got := make(chan string, 1)
	newTarget(t, func(c *net.TCPConn) {
		_ = c.CloseWrite()
		all, _ := io.ReadAll(c)
		got <- string(all)
	}).behind(t, lb, "a")
	c := dial(t, lb)
	ends(t, c)
	_, err := io.WriteString(c, "still here")
	require.NoError(t, err)
	require.NoError(t, c.CloseWrite())
	require.Equal(t, "still here", <-got)
}

// A backend that is killed resets its connections: the client's end then, though the client says nothing.
func TestBalancerPassesAResetOn(t *testing.T) {
	lb := startBalancer(t, 1)
	newTarget(t, func(c *net.TCPConn) {
		_, _ = io.ReadFull(c, make([]byte, 1))
		_ = c.SetLinger(0)
	}).behind(t, lb, "a")
	c := dial(t, lb)
	_, err := io.WriteString(c, "x")
	require.NoError(t, err)
	ends(t, c)
	eventually(t, func() bool { return tracked(lb) == 0 }, "half of it lives on")
}

// tracked is how many connections a balancer holds.
func tracked(lb *balancer) int {
	lb.mu.Lock()
	defer lb.mu.Unlock()
	return len(lb.conns)
}

func TestBalancerClosesWhatNobodyTakes(t *testing.T) {
	t.Run("no backend", func(t *testing.T) {
		ends(t, dial(t, startBalancer(t, 1)))
	})
	t.Run("a backend that refuses", func(t *testing.T) {
		lb := startBalancer(t, 1)
		a := newTarget(t, echo)
		a.behind(t, lb, "a")
		require.NoError(t, a.listener.Close())
		ends(t, dial(t, lb))
		eventually(t, func() bool { return tracked(lb) == 0 })
	})
}

func TestBalancerProbes(t *testing.T) {
	t.Run("a backend whose page is gone is not ready", func(t *testing.T) {
		lb := startBalancer(t, 1)
		a := newTarget(t, echo)
		a.behind(t, lb, "a")
		a.ops.Close()
		eventually(t, func() bool { return lb.ready() == 0 })
	})
	t.Run("nor is one whose address is none", func(t *testing.T) {
		lb := startBalancer(t, 1)
		require.False(t, lb.probe(t.Context(), "http://%zz/readyz"))
	})
}

func TestBalancerCloseEndsEverything(t *testing.T) {
	a := newTarget(t, echo)
	before := goleak.IgnoreCurrent()
	lb, err := newBalancer(1)
	require.NoError(t, err)
	a.behind(t, lb, "a")
	var clients []*net.TCPConn
	for range 10 {
		c := dial(t, lb)
		_, err := io.WriteString(c, "x")
		require.NoError(t, err)
		reads(t, c, "x")
		clients = append(clients, c)
	}

	lb.close()
	for _, c := range clients {
		ends(t, c)
	}
	_, err = net.DialTimeout("tcp", lb.address(), patience)
	require.Error(t, err)
	require.Zero(t, tracked(lb))
	a.ops.CloseClientConnections()
	_ = a.listener.Close()
	a.serving.Wait()
	goleak.VerifyNone(t, before)
}

// A connection that was accepted just before close must not outlive it.
func TestBalancerTakesNothingOnceClosed(t *testing.T) {
	lb := startBalancer(t, 1)
	lb.close()
	client, other := net.Pipe()
	defer other.Close()
	require.False(t, lb.track(client))
	_, err := client.Write([]byte("x"))
	require.ErrorIs(t, err, io.ErrClosedPipe)
	require.Zero(t, tracked(lb))
}

func TestBalancerCarriesBytesBothWaysUnderLoad(t *testing.T) {
	const connections, size = 24, 1 << 20
	lb := startBalancer(t, 1)
	for _, name := range []string{"a", "b", "c"} {
		newTarget(t, echo).behind(t, lb, name)
	}
	var all sync.WaitGroup
	faults := make(chan error, connections)
	for i := range connections {
		c := dial(t, lb)
		sent := make([]byte, size+i)
		_, _ = rand.NewChaCha8(sha256.Sum256([]byte{byte(i)})).Read(sent)
		all.Go(func() {
			_, _ = c.Write(sent)
			_ = c.CloseWrite()
		})
		all.Go(func() {
			got, err := io.ReadAll(c)
			if err == nil && !bytes.Equal(got, sent) {
				err = errors.New("it has changed on the way")
			}
			if err != nil {
				faults <- fmt.Errorf("connection %d, after %d bytes of %d: %w", i, len(got), len(sent), err)
			}
		})
	}
	all.Wait()
	close(faults)
	for err := range faults {
		require.NoError(t, err)
	}
	eventually(t, func() bool { return tracked(lb) == 0 })
}
