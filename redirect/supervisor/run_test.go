// SPDX-License-Identifier: Apache-2.0

package supervisor_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/internal/memnet"
	"github.com/evenring/evenring/redirect/supervisor"
	"github.com/evenring/evenring/ring"
)

func accept(gateway ring.GatewayID, endpoint string) redirect.Verdict {
	return redirect.Verdict{Outcome: redirect.Accept, Gateway: gateway, Endpoint: endpoint, Incarnation: 1}
}

func redirectTo(gateway ring.GatewayID, endpoint string) redirect.Verdict {
	return redirect.Verdict{Outcome: redirect.Redirect, Gateway: gateway, Endpoint: endpoint, Incarnation: 1}
}

// running is a supervisor that runs over a network in memory.
type running struct {
	*memnet.Network
	homes supervisor.Homes
	stop  func() // ends it and waits

	mu      sync.Mutex
	streams []string // addresses, in the order of their accepts
	gaps    []bool   // what Connected was told
	dials   []string
}

// run starts a supervisor inside of a synctest bubble.
func run(t *testing.T, network *memnet.Network) *running {
	r := &running{Network: network}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	cfg := supervisor.Config{Member: "s", Service: "service", Jitter: func() float64 { return 0.5 }}
	go func() {
		done <- supervisor.Run(ctx, cfg, network, supervisor.Hooks{
			Home: r.homes.Set,
			Stream: func(s redirect.Stream, _ supervisor.Home) {
				r.note(func() { r.streams = append(r.streams, s.(*memnet.Stream).Addr) })
			},
			Connected: func(connected bool, _ time.Time) {
				r.note(func() { r.gaps = append(r.gaps, connected) })
			},
			Observe: func(o supervisor.Observation) {
				for _, action := range o.Actions {
					if d, ok := action.(supervisor.Dial); ok {
						r.note(func() { r.dials = append(r.dials, d.Addr) })
					}
				}
			},
		})
	}()
	r.stop = func() {
		cancel()
		require.NoError(t, <-done)
		require.Zero(t, network.Open(), "streams left open")
	}
	synctest.Wait()
	return r
}

func (r *running) note(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

// seen returns what has been noted so far in one of r's lists.
func seen[T any](r *running, list *[]T) []T {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(*list)
}

func (r *running) home() ring.GatewayID {
	home, _ := r.homes.Home()
	return home.Gateway
}

func TestRunFollowsRedirect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network memnet.Network
		network.Listen("service", memnet.Always(redirectTo("B", "b")))
		network.Listen("b", memnet.Always(accept("B", "b")))
		r := run(t, &network)
		require.Equal(t, []string{"service", "b"}, seen(r, &r.dials))
		require.Equal(t, ring.GatewayID("B"), r.home())
		r.stop()
		require.Equal(t, []bool{true, false}, seen(r, &r.gaps))
	})
}

func TestRunMakesBeforeItBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network memnet.Network
		answer := make(chan redirect.Verdict)
		network.Listen("service", memnet.Always(accept("A", "a")))
		network.Listen("c", func(context.Context, redirect.Hello) (redirect.Verdict, error) { return <-answer, nil })
		r := run(t, &network)
		old := network.At("service")[0]
		require.True(t, old.Say(redirect.Notice{Kind: redirect.NoticeMove, Gateway: "C", Endpoint: "c"}))
		synctest.Wait()
		require.Equal(t, []string{"service", "c"}, seen(r, &r.dials))
		require.Len(t, network.At("service"), 1, "the old stream works until the new one is accepted")

		answer <- accept("C", "c")
		synctest.Wait()
		require.Empty(t, network.At("service"))
		require.Equal(t, []string{"service", "c"}, seen(r, &r.streams))
		require.Equal(t, []bool{true}, seen(r, &r.gaps), "there was no gap")
		r.stop()
	})
}

func TestRunGoesHomeThenToTheService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network memnet.Network
		network.Listen("service", memnet.Always(accept("A", "a")))
		r := run(t, &network)
		time.AfterFunc(time.Minute, func() {
			network.Listen("service", memnet.Always(accept("B", "b")))
			network.At("service")[0].Break()
		})
		<-time.After(time.Minute + 5*time.Second)
		synctest.Wait()
		require.Equal(t, []string{"service", "a", "a", "service"}, seen(r, &r.dials))
		require.Equal(t, ring.GatewayID("B"), r.home())
		require.Equal(t, []bool{true, false, true}, seen(r, &r.gaps))
		r.stop()
	})
}

func TestRunSilentGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network memnet.Network
		network.Listen("service", memnet.Silent)
		r := run(t, &network)
		<-time.After(9 * time.Second)
		synctest.Wait()
		require.Len(t, seen(r, &r.dials), 1)
		network.Listen("service", memnet.Always(accept("A", "a")))
		<-time.After(3 * time.Second)
		synctest.Wait()
		require.Equal(t, ring.GatewayID("A"), r.home())
		r.stop()
	})
}

// A transport that does not care about its context holds up nobody but the
// return, and what it brings late is closed.
func TestRunStubbornDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network memnet.Network
		release := make(chan struct{})
		network.Listen("service", memnet.Always(redirectTo("B", "b")))
		network.Listen("b", func(context.Context, redirect.Hello) (redirect.Verdict, error) {
			<-release
			return accept("B", "b"), nil
		})
		r := run(t, &network)
		network.Listen("service", memnet.Always(accept("A", "a")))
		<-time.After(11 * time.Second)
		synctest.Wait()
		require.Equal(t, ring.GatewayID("A"), r.home())
		release <- struct{}{}
		synctest.Wait()
		require.Empty(t, network.At("b"), "the late accept is closed")

		require.True(t, network.At("service")[0].Say(redirect.Notice{Kind: redirect.NoticeMove, Gateway: "C", Endpoint: "b"}))
		synctest.Wait()
		time.AfterFunc(time.Hour, func() { close(release) })
		begun := time.Now()
		r.stop()
		require.Equal(t, time.Hour, time.Since(begun), "Run waits for what it has started")
	})
}

func TestRunBadTransports(t *testing.T) {
	for name, dial := range map[string]transportFunc{
		"accept without a stream": func(context.Context, string, redirect.Hello) (redirect.Verdict, redirect.Stream, error) {
			return accept("A", "a"), nil, nil
		},
		"zero verdict": func(context.Context, string, redirect.Hello) (redirect.Verdict, redirect.Stream, error) {
			return redirect.Verdict{}, nil, nil
		},
		"error": func(context.Context, string, redirect.Hello) (redirect.Verdict, redirect.Stream, error) {
			return accept("A", "a"), nil, errors.New("broken")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				failures := 0
				require.NoError(t, supervisor.Run(ctx, supervisor.Config{Member: "s", Service: "service"}, dial, supervisor.Hooks{
					Observe: func(o supervisor.Observation) {
						require.False(t, o.After.Connected())
						if o.After == supervisor.Waiting {
							failures++
						}
					},
				}))
				require.Greater(t, failures, 2)
				require.Less(t, failures, 40)
			})
		})
	}
}

// A stream beside a verdict that is no accept is closed all the same.
func TestRunClosesStrayStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network memnet.Network
		network.Listen("service", memnet.Always(accept("A", "a")))
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		stray := transportFunc(func(ctx context.Context, addr string, hello redirect.Hello) (redirect.Verdict, redirect.Stream, error) {
			_, stream, err := network.Dial(ctx, addr, hello)
			return redirect.Verdict{Outcome: redirect.Refuse, RetryAfter: time.Hour}, stream, err
		})
		require.NoError(t, supervisor.Run(ctx, supervisor.Config{Member: "s", Service: "service"}, stray, supervisor.Hooks{}))
		require.Zero(t, network.Open())
	})
}

func TestRunMisuse(t *testing.T) {
	require.ErrorContains(t, supervisor.Run(t.Context(), supervisor.Config{}, &memnet.Network{}, supervisor.Hooks{}), "Config.Member")
	require.ErrorContains(t, supervisor.Run(t.Context(), supervisor.Config{}, nil, supervisor.Hooks{}), "transport is nil")
}

type contextKey struct{}

func TestRunContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), contextKey{}, "token"))
		var hello redirect.Hello
		var value any
		transport := transportFunc(func(ctx context.Context, _ string, h redirect.Hello) (redirect.Verdict, redirect.Stream, error) {
			hello, value = h, ctx.Value(contextKey{})
			cancel()
			<-ctx.Done()
			return redirect.Verdict{}, nil, ctx.Err()
		})
		require.NoError(t, supervisor.Run(ctx, supervisor.Config{Member: "s", Service: "service"}, transport, supervisor.Hooks{}))
		require.Equal(t, "token", value)
		require.EqualValues(t, time.Now().UnixNano(), hello.Generation, "generations start from the clock")
	})
}

type transportFunc func(context.Context, string, redirect.Hello) (redirect.Verdict, redirect.Stream, error)

func (f transportFunc) Dial(ctx context.Context, addr string, hello redirect.Hello) (redirect.Verdict, redirect.Stream, error) {
	return f(ctx, addr, hello)
}

func TestHomes(t *testing.T) {
	var homes supervisor.Homes
	home, changed := homes.Home()
	require.Zero(t, home)
	homes.Set(supervisor.Home{})
	select {
	case <-changed:
		t.Fatal("nothing has changed")
	default:
	}
	homes.Set(supervisor.Home{Gateway: "A"})
	<-changed
	home, next := homes.Home()
	require.Equal(t, supervisor.Home{Gateway: "A"}, home)
	require.NotEqual(t, changed, next)
}
