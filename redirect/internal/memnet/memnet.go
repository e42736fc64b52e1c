// SPDX-License-Identifier: Apache-2.0

// Package memnet is a network in memory, for the tests and examples of what
// dials gateways.
package memnet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/evenring/evenring/redirect"
)

// Network is a [redirect.Transport] in memory. The zero value is ready and has
// no gateways. It is safe for concurrent use.
type Network struct {
	mu      sync.Mutex
	answers map[string]Answer
	open    map[*Stream]bool
}

// Answer is a gateway's word on a hello. It may block until ctx ends, or longer,
// and may fail.
type Answer func(ctx context.Context, hello redirect.Hello) (redirect.Verdict, error)

// Always answers every hello with the same verdict.
func Always(verdict redirect.Verdict) Answer {
	return func(context.Context, redirect.Hello) (redirect.Verdict, error) { return verdict, nil }
}

// Silent says nothing until the dial's context ends.
func Silent(ctx context.Context, _ redirect.Hello) (redirect.Verdict, error) {
	<-ctx.Done()
	return redirect.Verdict{}, ctx.Err()
}

// Listen puts a gateway at addr. A nil answer takes it away; its streams stay.
func (n *Network) Listen(addr string, answer Answer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.answers == nil {
		n.answers = make(map[string]Answer)
		n.open = make(map[*Stream]bool)
	}
	n.answers[addr] = answer
}

// Dial implements [redirect.Transport].
func (n *Network) Dial(ctx context.Context, addr string, hello redirect.Hello) (redirect.Verdict, redirect.Stream, error) {
	n.mu.Lock()
	answer := n.answers[addr]
	n.mu.Unlock()
	if answer == nil {
		return redirect.Verdict{}, nil, fmt.Errorf("memnet: nobody listens at %s", addr)
	}
	verdict, err := answer(ctx, hello)
	if err != nil || verdict.Outcome != redirect.Accept {
		return verdict, nil, err
	}
	stream := &Stream{Addr: addr, Hello: hello, network: n, notices: make(chan redirect.Notice), ended: make(chan struct{})}
	n.mu.Lock()
	n.open[stream] = true
	n.mu.Unlock()
	return verdict, stream, nil
}

// Open returns how many streams are open.
func (n *Network) Open() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.open)
}

// At returns the open streams at addr, in no order.
func (n *Network) At(addr string) []*Stream {
	n.mu.Lock()
	defer n.mu.Unlock()
	var list []*Stream
	for s := range n.open {
		if s.Addr == addr {
			list = append(list, s)
		}
	}
	return list
}

// Stream is an accepted stream, both ends of it.
type Stream struct {
	Addr  string
	Hello redirect.Hello

	network *Network
	notices chan redirect.Notice
	once    sync.Once
	ended   chan struct{}
	cause   error // why it ended; read it after ended is closed
}

// Say sends a notice and reports whether it was read before the stream ended.
func (s *Stream) Say(notice redirect.Notice) bool {
	select {
	case s.notices <- notice:
		return true
	case <-s.ended:
		return false
	}
}

// Notice implements [redirect.Stream].
func (s *Stream) Notice() (redirect.Notice, error) {
	select {
	case notice := <-s.notices:
		return notice, nil
	case <-s.ended:
		return redirect.Notice{}, s.cause
	}
}

// Close implements [redirect.Stream].
func (s *Stream) Close() error {
	s.end(io.EOF)
	return nil
}

// Break ends the stream uncleanly.
func (s *Stream) Break() { s.end(errors.New("memnet: connection reset")) }

func (s *Stream) end(cause error) {
	s.once.Do(func() {
		s.network.mu.Lock()
		delete(s.network.open, s)
		s.network.mu.Unlock()
		s.cause = cause
		close(s.ended)
	})
}
