// SPDX-License-Identifier: Apache-2.0

package redirectws

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

const (
	pingAfter    = 10 * time.Second // of silence
	pingTimeout  = 5 * time.Second
	signEvery    = 2 * time.Second // while nothing is read
	closeTimeout = time.Second     // for the other end to take part in the end
)

var errBroken = errors.New("the connection has broken off")

var errSilent = fmt.Errorf("nothing has come for %v", pingAfter+pingTimeout)

// link is one WebSocket connection, either end of it. It finds out by itself
// whether the other end is still there.
type link struct {
	ws   *websocket.Conn
	wire wire

	writing atomic.Int32  // messages that are being written
	parked  atomic.Bool   // nothing is read, for there is no room
	parking chan struct{} // it has begun
	once    sync.Once
	gone    chan struct{} // closed: the connection was given up, for cause
	cause   error
}

func newLink() *link { return &link{parking: make(chan struct{}, 1), gone: make(chan struct{})} }

// answersPing keeps an answer to a ping from waiting behind something that the
// other end does not take: that would be the end of the connection, and what is
// being written shows as much.
func (l *link) answersPing(context.Context, []byte) bool { return !l.busy() }

func (l *link) busy() bool { return l.writing.Load() > 0 || l.wire.writing.Load() > 0 }

// read returns the next message. The end of ctx ends the connection.
func (l *link) read(ctx context.Context) (websocket.MessageType, []byte, error) {
	kind, data, err := l.ws.Read(ctx)
	if err == nil {
		return kind, data, nil
	}
	select {
	case <-l.gone:
		return 0, nil, l.cause
	default:
	}
	if errors.Is(err, io.EOF) {
		err = errBroken // io.EOF is the word for an end in good order
	}
	return 0, nil, err
}

// write writes one message. The end of ctx ends the connection.
func (l *link) write(ctx context.Context, kind websocket.MessageType, data []byte) error {
	l.writing.Add(1)
	defer l.writing.Add(-1)
	return l.ws.Write(ctx, kind, data)
}

// park says that the reader waits for room, and unpark that it goes on. Meanwhile it
// cannot know whether anything comes.
func (l *link) park() {
	l.parked.Store(true)
	select {
	case l.parking <- struct{}{}:
	default:
	}
}

func (l *link) unpark() {
	l.wire.stamp()
	l.parked.Store(false)
}

// watch gives the connection up when the other end is silent, until ctx ends.
// While nothing is read here, sign shows the other end that somebody is here all the same.
func (l *link) watch(ctx context.Context, sign func() error) {
	timer := time.NewTimer(pingAfter)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-l.parking:
			timer.Reset(signEvery)
			continue
		case <-ctx.Done():
			return
		}
		wait := signEvery
		switch quiet := l.wire.quiet(); {
		case l.parked.Load():
			if err := sign(); err != nil {
				l.giveUp(err)
				return
			}
		case quiet >= pingAfter+pingTimeout:
			l.giveUp(errSilent)
			return
		case quiet >= pingAfter:
			l.ping(ctx, pingAfter+pingTimeout-quiet)
			wait = max(min(pingTimeout/10, pingAfter+pingTimeout-l.wire.quiet()), 0)
		default:
			wait = pingAfter - quiet
		}
		timer.Reset(wait)
	}
}

// ping asks for a sign, and waits for an answer, for so long. While something is being
// written it waits a little: the ping would come after it.
func (l *link) ping(ctx context.Context, limit time.Duration) {
	if !l.busy() {
		bounded, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		_ = l.ws.Ping(bounded) // what has come counts, and not what it was
		return
	}
	timer := time.NewTimer(min(limit, pingTimeout/10))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// giveUp ends the connection without a word.
func (l *link) giveUp(cause error) {
	l.once.Do(func() {
		l.cause = cause
		close(l.gone)
	})
	l.wire.cut()
}

// close ends the connection in good order, as far as the other end takes part.
func (l *link) close(code websocket.StatusCode, reason string) {
	timer := time.AfterFunc(closeTimeout, l.wire.cut)
	defer timer.Stop()
	_ = l.ws.Close(code, clip(reason, maxCloseReason)) // it is over either way
}

// drop ends the connection at once.
func (l *link) drop() { _ = l.ws.CloseNow() }

const maxCloseReason = 123 // bytes; a WebSocket takes no more

// clip returns as much of text as fits.
func clip(text string, limit int) string {
	return strings.ToValidUTF8(text[:min(len(text), limit)], "")
}

// wire is the network connection under a WebSocket. The zero value is ready.
type wire struct {
	last    atomic.Int64 // when anything last came, in nanoseconds
	writing atomic.Int32 // what is being written

	mu   sync.Mutex
	conn net.Conn // nil: none yet
	done bool     // it is cut
}

var errCut = errors.New("the dial was given up")

// use returns conn with its readings noted.
func (w *wire) use(conn net.Conn) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done {
		_ = conn.Close()
		return nil, errCut
	}
	w.conn = conn
	w.stamp()
	return noted{conn, w}, nil
}

// cut closes the connection, and any that comes later.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = true
	if w.conn != nil {
		_ = w.conn.Close() // perhaps a second time
	}
}

var epoch = time.Now() // of the monotonic clock

func (w *wire) stamp() { w.last.Store(int64(time.Since(epoch))) }

// quiet returns how long nothing has come.
func (w *wire) quiet() time.Duration { return time.Since(epoch) - time.Duration(w.last.Load()) }

// noted is a connection that notes when something comes, and while something goes.
type noted struct {
	net.Conn
	wire *wire
}

// Read implements [net.Conn].
func (n noted) Read(p []byte) (int, error) {
	count, err := n.Conn.Read(p)
	if count > 0 {
		n.wire.stamp()
	}
	return count, err
}

// Write implements [net.Conn].
func (n noted) Write(p []byte) (int, error) {
	n.wire.writing.Add(1)
	defer n.wire.writing.Add(-1)
	return n.Conn.Write(p)
}
