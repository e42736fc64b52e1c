// SPDX-License-Identifier: Apache-2.0

package gossip_test

import (
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement/roster/gossip"
)

// relay is the network before one gateway: the others reach it through the
// relay alone, if the gateway advertises the relay's address.
type relay struct {
	addr    string
	streams *net.TCPListener
	packets *net.UDPConn
	to      atomic.Pointer[string]
	noTCP   atomic.Bool // streams break at once
	noUDP   atomic.Bool // packets vanish
	running sync.WaitGroup

	mu   sync.Mutex
	open map[net.Conn]struct{}
	over bool
}

func newRelay(t *testing.T) *relay {
	t.Helper()
	r := &relay{open: make(map[net.Conn]struct{})}
	for r.packets == nil { // a port that is free for both
		var err error
		r.streams, err = net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		require.NoError(t, err)
		at := r.streams.Addr().(*net.TCPAddr)
		if r.packets, err = net.ListenUDP("udp", &net.UDPAddr{IP: at.IP, Port: at.Port}); err != nil {
			r.packets = nil
			require.NoError(t, r.streams.Close())
		}
	}
	r.addr = r.streams.Addr().String()
	r.running.Go(r.relayStreams)
	r.running.Go(r.relayPackets)
	t.Cleanup(func() {
		_ = r.streams.Close()
		_ = r.packets.Close()
		r.breakStreams(true)
		r.running.Wait()
	})
	return r
}

// before puts the relay before a gateway that is about to start.
func (r *relay) before(t *testing.T) func(*gossip.Config) {
	t.Helper()
	addr := freeAddr(t)
	r.to.Store(&addr)
	return func(c *gossip.Config) { c.Bind, c.Advertise = addr, r.addr }
}

// cut breaks what is under way, and lets nothing through any more.
func (r *relay) cut() {
	r.noUDP.Store(true)
	r.noTCP.Store(true)
	r.breakStreams(false)
}

func (r *relay) heal() {
	r.noUDP.Store(false)
	r.noTCP.Store(false)
}

func (r *relay) breakStreams(over bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = r.over || over
	for c := range r.open {
		_ = c.Close()
	}
	clear(r.open)
}

// keep reports whether the connection may be used.
func (r *relay) keep(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over || r.noTCP.Load() {
		_ = c.(*net.TCPConn).SetLinger(0) // a reset
		_ = c.Close()
		return false
	}
	r.open[c] = struct{}{}
	return true
}

func (r *relay) drop(c net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, c)
	_ = c.Close()
}

func (r *relay) relayStreams() {
	for {
		in, err := r.streams.Accept()
		if err != nil {
			return
		}
		if !r.keep(in) {
			continue
		}
		r.running.Go(func() {
			defer r.drop(in)
			out, err := net.Dial("tcp", *r.to.Load())
			if err != nil || !r.keep(out) {
				return
			}
			defer r.drop(out)
			r.running.Go(func() {
				_, _ = io.Copy(in, out)
				_ = in.(*net.TCPConn).CloseWrite()
			})
			_, _ = io.Copy(out, in)
			_ = out.(*net.TCPConn).CloseWrite()
		})
	}
}

func (r *relay) relayPackets() {
	b := make([]byte, 64<<10)
	for {
		n, err := r.packets.Read(b)
		if err != nil {
			return
		}
		if r.noUDP.Load() {
			continue
		}
		to := net.UDPAddrFromAddrPort(netip.MustParseAddrPort(*r.to.Load()))
		_, _ = r.packets.WriteTo(b[:n], to)
	}
}
