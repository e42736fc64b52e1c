// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// listen accepts nothing, but the system does.
func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestNetworkLeadsToSomeGateway(t *testing.T) {
	a, b, other := listen(t).Addr().String(), listen(t).Addr().String(), listen(t).Addr().String()
	n := newNetwork([]string{a, b})
	reached := func(address string) string {
		c, err := n.dial(t.Context(), address)
		require.NoError(t, err)
		defer c.Close()
		return c.RemoteAddr().String()
	}
	seen := make(map[string]bool)
	for range 64 { // that it is always the same has a chance of 2 to the power of -63
		seen[reached(serviceAddress)] = true
	}
	require.Equal(t, map[string]bool{a: true, b: true}, seen)
	require.Equal(t, other, reached(other))
	require.Empty(t, n.conns, "a connection that has been closed is forgotten")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := n.dial(ctx, other)
	require.ErrorIs(t, err, context.Canceled)
}

func TestNetworkCutsEveryConnection(t *testing.T) {
	l := listen(t)
	n := newNetwork(nil)
	var ends [2]net.Conn
	for i := range ends {
		c, err := n.dial(t.Context(), l.Addr().String())
		require.NoError(t, err)
		ends[i], err = l.Accept()
		require.NoError(t, err)
		defer ends[i].Close()
		defer c.Close()
	}
	n.cut()
	for _, end := range ends {
		_, err := end.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
	}
}
