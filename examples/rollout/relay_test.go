// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// startRelay starts a relay to a target, or to nowhere if that is nil.
func startRelay(t *testing.T, to *target) *relay {
	t.Helper()
	r, err := newRelay(func() string {
		if to == nil {
			return ""
		}
		return to.listener.Addr().String()
	})
	require.NoError(t, err)
	t.Cleanup(r.close)
	return r
}

// through dials a relay.
func through(t *testing.T, r *relay) net.Conn {
	t.Helper()
	c, err := net.DialTimeout("tcp", r.address(), patience)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	return c
}

// isReset waits for a connection's end, which must be a reset.
func isReset(t *testing.T, c net.Conn) {
	t.Helper()
	_, err := c.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

func TestRelayPassesOn(t *testing.T) {
	r := startRelay(t, newTarget(t, greet("a")))
	reads(t, through(t, r), "a")
}

func TestRelayToNowhere(t *testing.T) {
	ends(t, through(t, startRelay(t, nil)))
}

func TestRelayCuts(t *testing.T) {
	r := startRelay(t, newTarget(t, greet("a")))
	first, second := through(t, r), through(t, r)
	reads(t, first, "a")
	reads(t, second, "a")
	require.Zero(t, r.cut(func() bool { return false }))
	chosen := 0
	require.Equal(t, 1, r.cut(func() bool { chosen++; return chosen == 1 }))
	require.Equal(t, 2, chosen, "each is asked for once")
	require.Eventually(t, func() bool { r.mu.Lock(); defer r.mu.Unlock(); return len(r.pairs) == 1 && len(r.conns) == 2 }, patience, time.Millisecond)
	require.Equal(t, 1, r.cut(func() bool { return true }))
	isReset(t, first)
	isReset(t, second)
	reads(t, through(t, r), "a")
}

func TestRelayRefuses(t *testing.T) {
	r := startRelay(t, newTarget(t, greet("a")))
	old := through(t, r)
	reads(t, old, "a")
	r.set(refusing)
	if c, err := net.DialTimeout("tcp", r.address(), patience); err != nil { // the reset may be there first
		require.ErrorIs(t, err, syscall.ECONNRESET)
	} else {
		t.Cleanup(func() { _ = c.Close() })
		require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
		isReset(t, c)
	}
	require.Equal(t, 1, r.cut(func() bool { return true }), "what there is goes on")
	r.set(fair)
	reads(t, through(t, r), "a")
}

func TestRelaySwallows(t *testing.T) {
	to := newTarget(t, greet("a"))
	r := startRelay(t, to)
	r.set(swallowing)
	c := through(t, r)
	eventually(t, func() bool { r.mu.Lock(); defer r.mu.Unlock(); return len(r.conns) == 1 })
	require.NoError(t, c.SetReadDeadline(time.Now().Add(10*time.Millisecond)))
	_, err := c.Read(make([]byte, 1))
	require.ErrorContains(t, err, "timeout", "nothing comes of it")
	require.NoError(t, c.SetReadDeadline(time.Now().Add(patience)))
	r.set(fair)
	isReset(t, c)
	require.Zero(t, to.accepted.Load())
	reads(t, through(t, r), "a")
}

func TestRelayCloseEndsWhatItSwallowed(t *testing.T) {
	r := startRelay(t, nil)
	r.set(swallowing)
	c := through(t, r)
	eventually(t, func() bool { r.mu.Lock(); defer r.mu.Unlock(); return len(r.conns) == 1 })
	r.close()
	ends(t, c)
	r.close() // and nobody minds
}
