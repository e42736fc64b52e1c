// SPDX-License-Identifier: Apache-2.0

package supervisortest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// wire is a relay in front of a gateway: what lies between the two ends.
type wire struct {
	addr string

	running sync.WaitGroup
	silent  atomic.Bool // nothing passes any more, and nobody is told
	mu      sync.Mutex
	conns   []net.Conn
}

func (e *exam) wire(g *gate) *wire {
	l := e.listen()
	w := &wire{addr: l.Addr().String()}
	w.running.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", g.addr)
			if err != nil {
				_ = near.Close()
				continue
			}
			w.mu.Lock()
			w.conns = append(w.conns, near, far)
			w.mu.Unlock()
			w.running.Go(func() { w.pass(near, far) })
			w.running.Go(func() { w.pass(far, near) })
		}
	})
	e.t.Cleanup(func() { _ = l.Close(); w.cut(); w.running.Wait() })
	return w
}

// pass takes everything, so that nobody is held up by a full wire.
func (w *wire) pass(from, to net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && !w.silent.Load() {
			_, _ = to.Write(buffer[:n]) // who has closed is found out by reading
		}
		if err != nil {
			if !w.silent.Load() {
				_ = to.Close()
			}
			return
		}
	}
}

// cut breaks every connection.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, conn := range w.conns {
		_ = conn.Close()
	}
	w.conns = nil
}

// impostor listens like a gateway, and says words of its own to whoever connects.
type impostor struct {
	exam    *exam
	addr    string
	running sync.WaitGroup
	taken   atomic.Int32 // connections
	closed  atomic.Int32 // by the other end
}

// impostor: hangUp says whether it closes the connection when it has spoken.
func (e *exam) impostor(words []byte, hangUp bool) *impostor {
	l := e.listen()
	i := &impostor{exam: e, addr: l.Addr().String()}
	i.running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			i.taken.Add(1)
			i.running.Go(func() { i.meet(conn, words, hangUp) })
		}
	})
	e.t.Cleanup(func() { _ = l.Close(); i.running.Wait() })
	return i
}

func (i *impostor) meet(conn net.Conn, words []byte, hangUp bool) {
	defer func() { _ = conn.Close() }()
	_, _ = conn.Write(words) // it need not be read
	if hangUp {
		_ = conn.(*net.TCPConn).CloseWrite() // a reset might overtake what was said
	}
	_ = conn.SetReadDeadline(time.Now().Add(i.exam.patience))
	if _, err := io.Copy(io.Discard, conn); !timedOut(err) {
		i.closed.Add(1)
	}
}

// deserted waits until every connection has been closed by those who made it.
func (i *impostor) deserted() {
	i.exam.t.Helper()
	i.exam.eventually(i.exam.patience, func() string {
		if taken, closed := i.taken.Load(), i.closed.Load(); taken == 0 || taken != closed {
			return fmt.Sprintf("%d of %d connections that were made are closed", closed, taken)
		}
		return ""
	})
}

func timedOut(err error) bool {
	var netErr net.Error
	return errors.As(err, &netErr) && netErr.Timeout()
}
