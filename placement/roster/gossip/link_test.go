// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"log"
	"net"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/stretchr/testify/require"
)

func TestLinkEndsWithItsStreams(t *testing.T) {
	t.Parallel()
	deaf, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer deaf.Close()
	l, err := listen(&memberlist.NetTransportConfig{
		BindAddrs: []string{"127.0.0.1"},
		Logger:    log.New(t.Output(), "", 0),
	})
	require.NoError(t, err)

	conn, err := l.DialTimeout(deaf.Addr().String(), time.Minute)
	require.NoError(t, err)
	ended := make(chan error)
	go func() {
		for {
			if _, err := conn.Write(make([]byte, 1<<20)); err != nil {
				ended <- err
				return
			}
		}
	}()
	require.NoError(t, l.Shutdown())
	require.ErrorIs(t, <-ended, net.ErrClosed)
	_, err = l.DialTimeout(deaf.Addr().String(), time.Minute)
	require.Error(t, err, "it has ended")
	require.NoError(t, l.Shutdown())
}
