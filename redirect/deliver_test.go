// SPDX-License-Identifier: Apache-2.0

package redirect_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/redirect"
)

func answering(h *redirect.Hello) { h.Answers = true }

func admit(t *testing.T, g *redirect.Gateway, h redirect.Hello, change ...func(*redirect.Hello)) *redirect.Attachment {
	for _, f := range change {
		f(&h)
	}
	h.Stay, h.CanRedirect = true, true
	_, at := g.Admit(t.Context(), h)
	require.NotNil(t, at)
	return at
}

func loud(_ context.Context, payload []byte) ([]byte, error) { return append(payload, '!'), nil }

func TestDeliver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLAN().start(t, "A", redirect.Hooks{})
		req := redirect.Request{Member: "s", Payload: []byte("hi")}
		_, err := g.Deliver(t.Context(), req)
		require.ErrorIs(t, err, redirect.ErrNotHere)

		// It waits for the transport to say how, and no longer than its context.
		at := admit(t, g, redirect.Hello{Member: "s", Generation: 1}, answering)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { synctest.Wait(); cancel() }()
		_, err = g.Deliver(ctx, req)
		require.ErrorIs(t, err, context.Canceled)
		go func() { synctest.Wait(); at.Carry(loud) }()
		answer, err := g.Deliver(t.Context(), req)
		require.NoError(t, err)
		require.Equal(t, "hi!", string(answer))
		at.Carry(func(context.Context, []byte) ([]byte, error) { return nil, errors.New("a second one") })
		_, err = g.Deliver(t.Context(), req)
		require.NoError(t, err, "the first one counts")

		// A session is another stream.
		req.Session = "x"
		_, err = g.Deliver(t.Context(), req)
		require.ErrorIs(t, err, redirect.ErrNotHere)
		admit(t, g, redirect.Hello{Member: "s", Session: "x"}, answering).Carry(func(context.Context, []byte) ([]byte, error) {
			return nil, errors.New("busy")
		})
		_, err = g.Deliver(t.Context(), req)
		require.EqualError(t, err, "busy")

		// The newest stream takes the requests; one that has ended takes none.
		req.Session = ""
		newer := admit(t, g, redirect.Hello{Member: "s", Generation: 2})
		_, err = g.Deliver(t.Context(), req)
		require.ErrorIs(t, err, redirect.ErrNotAnswering)
		newest := admit(t, g, redirect.Hello{Member: "s", Generation: 3}, answering)
		newer.Leave(false)
		go func() { synctest.Wait(); newest.Leave(true); newest.Carry(loud) }()
		_, err = g.Deliver(t.Context(), req)
		require.ErrorIs(t, err, redirect.ErrNotHere)
		at.Leave(false)
		_, err = g.Deliver(t.Context(), req)
		require.ErrorIs(t, err, redirect.ErrNotHere)
	})
}

// A stream that was told to end takes no request; it is expected to have a successor.
func TestRouteOfAnEndedStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLAN().start(t, "A", redirect.Hooks{})
		where := func(s string) string {
			route, _ := g.Route("s", redirect.SessionID(s))
			return routed(route)
		}
		admit(t, g, redirect.Hello{Member: "s", Generation: 1}, answering)
		admit(t, g, redirect.Hello{Member: "s", Session: "x"}, answering)
		require.Equal(t, "here A", where(""))
		require.Equal(t, "here A", where("x"))
		g.EndAll(redirect.ReasonExpired)
		require.Equal(t, "here A?", where(""))
		require.Equal(t, "here A?", where("x"))
		_, err := g.Deliver(t.Context(), redirect.Request{Member: "s"})
		require.ErrorIs(t, err, redirect.ErrNotHere)
		admit(t, g, redirect.Hello{Member: "s", Generation: 2}, answering)
		require.Equal(t, "here A", where(""))
	})
}

// Whoever waits for a route hears of every change: of the roster, and of streams alone.
func TestRouteChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLAN()
		a, b := l.start(t, "A", redirect.Hooks{}), l.start(t, "B", redirect.Hooks{})
		changes := func(name string, f func()) {
			synctest.Wait()
			_, changed := a.Route("s", "x")
			_, same := a.Route("t", "")
			require.Equal(t, changed, same)
			select {
			case <-changed:
				require.Fail(t, "too early", name)
			default:
			}
			f()
			synctest.Wait()
			select {
			case <-changed:
			default:
				require.Fail(t, "not told", name)
			}
		}
		var at, session *redirect.Attachment
		changes("attached", func() { at = admit(t, a, redirect.Hello{Member: "s", Generation: 1}) })
		changes("a session", func() { session = admit(t, a, redirect.Hello{Member: "s", Session: "x"}) })
		changes("its end", func() { session.Leave(true) })
		changes("told to end", func() { a.End("s", redirect.ReasonStopped) })
		changes("lost", func() { at.Leave(false) })
		changes("attached elsewhere", func() { admit(t, b, redirect.Hello{Member: "s", Generation: 2}); pass(redirect.DefaultHold / 2) })
	})
}
