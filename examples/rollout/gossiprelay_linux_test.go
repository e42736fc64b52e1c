// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestGossipRelay(t *testing.T) {
	g, err := newGossipRelay()
	require.NoError(t, err)
	defer g.close()
	packets, err := net.ListenUDP("udp", g.behind)
	require.NoError(t, err)
	defer packets.Close()
	frames, err := net.Listen("tcp", g.behind.String())
	require.NoError(t, err)
	defer frames.Close()
	sender, err := net.Dial("udp", g.address())
	require.NoError(t, err)
	defer sender.Close()

	// heard sends a packet, which must be the next one behind the relay.
	heard := func(text string) {
		t.Helper()
		require.NoError(t, packets.SetReadDeadline(time.Now().Add(patience)))
		_, err := io.WriteString(sender, text)
		require.NoError(t, err)
		got := make([]byte, 99)
		n, err := packets.Read(got)
		require.NoError(t, err)
		require.Equal(t, text, string(got[:n]))
	}
	heard("one")
	c := through(t, g.relay)
	behind, err := frames.Accept()
	require.NoError(t, err)
	defer behind.Close()
	_, err = io.WriteString(c, "frame")
	require.NoError(t, err)
	reads(t, behind, "frame")

	g.set(swallowing)
	_, err = io.WriteString(sender, "dropped")
	require.NoError(t, err)
	require.NoError(t, packets.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
	_, err = packets.Read(make([]byte, 99))
	require.ErrorContains(t, err, "timeout")
	g.set(fair)
	heard("two")
}
