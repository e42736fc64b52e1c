// SPDX-License-Identifier: Apache-2.0

package gossip_test

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// nameserver answers for names with IPv4 addresses, over UDP.
type nameserver struct {
	conn *net.UDPConn

	mu    sync.Mutex
	names map[string][]netip.Addr // without the last dot
	asked int
}

func newNameserver(t *testing.T) *nameserver {
	t.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	n := &nameserver{conn: conn, names: make(map[string][]netip.Addr)}
	var serving sync.WaitGroup
	serving.Go(n.serve)
	t.Cleanup(func() {
		_ = conn.Close()
		serving.Wait()
	})
	return n
}

// resolver asks the server alone.
func (n *nameserver) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", n.conn.LocalAddr().String())
	}}
}

func (n *nameserver) set(name string, addrs ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.names[name] = nil
	for _, a := range addrs {
		n.names[name] = append(n.names[name], netip.MustParseAddr(a))
	}
}

func (n *nameserver) questions() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.asked
}

func (n *nameserver) serve() {
	b := make([]byte, 4096)
	for {
		size, from, err := n.conn.ReadFrom(b)
		if err != nil {
			return
		}
		if answer := n.answer(b[:size]); answer != nil {
			_, _ = n.conn.WriteTo(answer, from)
		}
	}
}

// answer follows RFC 1035, section 4.1.
func (n *nameserver) answer(query []byte) []byte {
	const header, typeA, noSuchName = 12, 1, 3
	if len(query) < header {
		return nil
	}
	var labels []string
	at := header
	for at < len(query) && query[at] != 0 {
		end := at + 1 + int(query[at])
		if end >= len(query) {
			return nil
		}
		labels = append(labels, string(query[at+1:end]))
		at = end
	}
	at += 5 // the last label, type and class
	if at > len(query) {
		return nil
	}
	n.mu.Lock()
	n.asked++
	addrs, known := n.names[strings.Join(labels, ".")]
	n.mu.Unlock()
	if binary.BigEndian.Uint16(query[at-4:]) != typeA {
		addrs = nil
	}
	flags := uint16(0x8180) // a response, and recursion has been done
	if !known {
		flags |= noSuchName
	}
	answer := binary.BigEndian.AppendUint16(query[:2:2], flags)
	for _, count := range []int{1, len(addrs), 0, 0} {
		answer = binary.BigEndian.AppendUint16(answer, uint16(count))
	}
	answer = append(answer, query[header:at]...)
	for _, addr := range addrs {
		answer = append(answer, 0xc0, header, 0, typeA, 0, 1, 0, 0, 0, 0, 0, 4) // the name as asked; class IN; no time to live
		answer = append(answer, addr.AsSlice()...)
	}
	return answer
}
