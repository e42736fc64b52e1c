// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"bytes"
	"testing"

	"github.com/hashicorp/memberlist"
	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement/roster"
)

func TestPeerQueueGathers(t *testing.T) {
	t.Parallel()
	p := newPeer(identity{"gw-1", 1}, &memberlist.Node{}, 4<<20)
	small, large := []byte("small"), bytes.Repeat([]byte{7}, frameSize)
	for range 3 {
		require.NoError(t, p.send(small))
	}
	require.NoError(t, p.send(large))
	require.NoError(t, p.send(small))
	told := make(chan struct{}, 1)
	p.farewell(told)

	for _, want := range [][][]byte{{small, small, small}, {large}, {small}} {
		frame, bye := p.next()
		require.Nil(t, bye, "the goodbye comes last")
		require.Equal(t, frameMessages, frame[0])
		var got [][]byte
		require.NoError(t, eachMessage(frame[1:], func(message []byte) { got = append(got, message) }))
		require.Equal(t, want, got)
	}
	frame, bye := p.next()
	require.Nil(t, frame)
	require.NotNil(t, bye)
	_, bye = p.next()
	require.Nil(t, bye, "it is said once")
	require.Zero(t, p.bytes)
}

func TestPeerQueueIsBounded(t *testing.T) {
	t.Parallel()
	p := newPeer(identity{"gw-1", 1}, &memberlist.Node{}, 100)
	require.NoError(t, p.send(make([]byte, 60)))
	require.ErrorIs(t, p.send(make([]byte, 60)), ErrBacklog)
	require.NoError(t, p.send(make([]byte, 30)), "what fits goes in")
	p.next()
	require.NoError(t, p.send(make([]byte, 60)), "what has gone makes room")
}

func TestInboxIsBounded(t *testing.T) {
	t.Parallel()
	b := newInbox(100)
	require.True(t, b.put(roster.Received{}, 60))
	require.False(t, b.put(roster.Received{}, 60))
	require.True(t, b.put(roster.LinkUp{Gateway: "gw-1"}, 0), "what is no message always fits")
	require.Len(t, b.take(), 2)
	require.False(t, b.put(roster.Received{}, 60), "it is not done with yet")
	b.release(60)
	require.True(t, b.put(roster.Received{}, 60))
}
