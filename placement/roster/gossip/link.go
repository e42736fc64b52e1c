// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// How long the network may take. memberlist sets no time limit for writing, so
// a peer that has stopped reading would hold its sender for good.
const (
	dialTimeout   = 3 * time.Second
	streamTimeout = 10 * time.Second
)

// link is memberlist's own transport with streams that end when it does.
type link struct {
	*memberlist.NetTransport
	host    string          // the address that it is bound to
	ctx     context.Context // of every dial
	cancel  context.CancelFunc
	streams chan net.Conn
	done    sync.WaitGroup // of accept
	traffic traffic

	mu    sync.Mutex
	open  map[*stream]struct{}
	ended bool
}

// stream is a connection that its link knows of.
type stream struct {
	net.Conn
	link    *link
	inOrder bool // Close waits until the other side has taken what was sent
}

// inOrder is the name of a node whose messages are to arrive one after the
// other. Each goes over a stream of its own, so that the next would overtake one
// that is still being read. No node has that name.
const inOrder = "in order"

// listen opens the sockets. With port 0, the free TCP port that it gets may be
// taken for UDP; then it tries another.
func listen(cfg *memberlist.NetTransportConfig) (*link, error) {
	const tries = 10
	for try := 1; ; try++ {
		inner, err := memberlist.NewNetTransport(cfg)
		if err == nil {
			l := &link{NetTransport: inner, host: cfg.BindAddrs[0], streams: make(chan net.Conn), open: make(map[*stream]struct{})}
			l.ctx, l.cancel = context.WithCancel(context.Background())
			l.done.Go(l.accept)
			return l, nil
		}
		if cfg.BindPort != 0 || try == tries {
			return nil, err
		}
	}
}

// bound returns where the link listens.
func (l *link) bound() netip.AddrPort {
	ip, _ := netip.ParseAddr(l.host) // memberlist takes nothing else
	return netip.AddrPortFrom(ip, uint16(l.GetAutoBindPort()))
}

func (l *link) accept() {
	for {
		select {
		case conn := <-l.NetTransport.StreamCh():
			s, err := l.track(conn)
			if err != nil {
				continue
			}
			select {
			case l.streams <- s:
			case <-l.ctx.Done():
				_ = s.Close()
			}
		case <-l.ctx.Done():
			return
		}
	}
}

// StreamCh implements [memberlist.Transport].
func (l *link) StreamCh() <-chan net.Conn { return l.streams }

// DialTimeout implements [memberlist.Transport].
func (l *link) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	dialer := net.Dialer{Timeout: min(timeout, dialTimeout)}
	conn, err := dialer.DialContext(l.ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(time.Now().Add(streamTimeout)); err != nil {
		_ = conn.Close()
		return nil, err
	}
	l.traffic.dials.Add(1)
	return l.track(conn)
}

// DialAddressTimeout implements [memberlist.NodeAwareTransport].
func (l *link) DialAddressTimeout(to memberlist.Address, timeout time.Duration) (net.Conn, error) {
	conn, err := l.DialTimeout(to.Addr, timeout)
	if err != nil {
		return nil, err
	}
	if to.Name == inOrder {
		conn.(*stream).inOrder = true
	}
	return conn, nil
}

// Shutdown implements [memberlist.Transport]. It may be called more than once.
func (l *link) Shutdown() error {
	err := l.NetTransport.Shutdown() // accept goes on until it has no listener left
	l.abort()
	l.done.Wait()
	return err
}

// abort ends every stream and every dial, now and from now on.
func (l *link) abort() {
	l.cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	for s := range l.open {
		_ = s.Conn.Close()
	}
	clear(l.open)
}

func (l *link) track(conn net.Conn) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	s := &stream{Conn: conn, link: l}
	l.open[s] = struct{}{}
	return s, nil
}

// Close implements [net.Conn].
func (s *stream) Close() error {
	if s.inOrder {
		_, _ = s.Conn.Read(make([]byte, 1)) // nothing, when the other side has done with it and closes; not for ever, since it was given a deadline
	}
	s.link.mu.Lock()
	delete(s.link.open, s)
	s.link.mu.Unlock()
	return s.Conn.Close()
}
