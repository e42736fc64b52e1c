// SPDX-License-Identifier: Apache-2.0

// Package dialer carries out what a dialing machine decides: it dials, reads
// notices and closes streams, each in a goroutine of its own, and reports what
// came of it.
package dialer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
)

// Report is one thing that happened to one attempt: exactly one of Verdict,
// Notice, Err and Lost is set.
type Report struct {
	Generation placement.Generation
	Verdict    *redirect.Verdict // the gateway answered
	Notice     *redirect.Notice  // the gateway said something on the stream
	Err        error             // no verdict came
	Lost       bool              // the stream has ended
}

// Dialer holds the dials in flight and the open streams, each under the
// generation of its attempt. Its methods are called by one goroutine, the one
// that reads Reports.
type Dialer struct {
	base      context.Context // values for the transport, no deadline
	transport redirect.Transport
	reports   chan Report
	done      chan struct{} // closed by Shutdown: nobody reads reports any more
	running   sync.WaitGroup

	mu      sync.Mutex
	cancels map[placement.Generation]context.CancelFunc
	streams map[placement.Generation]redirect.Stream
}

// New returns a dialer over transport. The values of ctx reach the transport;
// its end does not: call [Dialer.Shutdown].
func New(ctx context.Context, transport redirect.Transport) *Dialer {
	return &Dialer{
		base:      context.WithoutCancel(ctx),
		transport: transport,
		reports:   make(chan Report),
		done:      make(chan struct{}),
		cancels:   make(map[placement.Generation]context.CancelFunc),
		streams:   make(map[placement.Generation]redirect.Stream),
	}
}

// Reports is where everything that happens arrives. The reports of one attempt
// come in order: its verdict or its error, then notices, then the loss.
func (d *Dialer) Reports() <-chan Report { return d.reports }

// Dial starts an attempt under hello's generation and returns at once.
func (d *Dialer) Dial(addr string, hello redirect.Hello, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(d.base, timeout)
	d.mu.Lock()
	d.cancels[hello.Generation] = cancel
	d.mu.Unlock()
	d.running.Go(func() { d.attempt(ctx, addr, hello) })
}

// attempt runs one attempt from its dial to the end of its stream.
func (d *Dialer) attempt(ctx context.Context, addr string, hello redirect.Hello) {
	generation := hello.Generation
	verdict, stream, err := d.transport.Dial(ctx, addr, hello)
	d.Abandon(generation)

	accepted := err == nil && verdict.Outcome == redirect.Accept
	if accepted && stream == nil {
		accepted, err = false, errors.New("dialer: the transport returned an accept without a stream")
	}
	if !accepted && stream != nil {
		_ = stream.Close()
	}
	if err != nil {
		d.report(Report{Generation: generation, Err: fmt.Errorf("dial %s: %w", addr, err)})
		return
	}
	if !accepted {
		d.report(Report{Generation: generation, Verdict: &verdict})
		return
	}

	// Closing tells the gateway that nobody comes back, whoever ended the stream.
	defer stream.Close()
	d.mu.Lock()
	d.streams[generation] = stream
	d.mu.Unlock()
	if !d.report(Report{Generation: generation, Verdict: &verdict}) {
		return
	}
	for {
		notice, err := stream.Notice()
		if err != nil {
			break
		}
		if !d.report(Report{Generation: generation, Notice: &notice}) {
			return
		}
	}
	d.forget(generation)
	d.report(Report{Generation: generation, Lost: true})
}

// report hands r over, and returns whether somebody took it.
func (d *Dialer) report(r Report) bool {
	select {
	case d.reports <- r:
		return true
	case <-d.done:
		return false
	}
}

// Abandon ends the wait for a verdict. What the dial still brings is reported
// like any other.
func (d *Dialer) Abandon(generation placement.Generation) {
	d.mu.Lock()
	cancel := d.cancels[generation]
	delete(d.cancels, generation)
	d.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// Stream returns the open stream of an attempt, or nil.
func (d *Dialer) Stream(generation placement.Generation) redirect.Stream {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.streams[generation]
}

// Close ends a stream without waiting for it.
func (d *Dialer) Close(generation placement.Generation) {
	if stream := d.forget(generation); stream != nil {
		d.running.Go(func() { _ = stream.Close() })
	}
}

func (d *Dialer) forget(generation placement.Generation) redirect.Stream {
	d.mu.Lock()
	defer d.mu.Unlock()
	stream := d.streams[generation]
	delete(d.streams, generation)
	return stream
}

// Shutdown abandons every dial, closes every stream and waits until nothing of
// it runs any more. A transport that ignores the end of its context makes it wait.
func (d *Dialer) Shutdown() {
	close(d.done)
	d.mu.Lock()
	cancels, streams := d.cancels, d.streams
	d.cancels = make(map[placement.Generation]context.CancelFunc)
	d.streams = make(map[placement.Generation]redirect.Stream)
	d.mu.Unlock()
	for _, cancel := range cancels {
		cancel()
	}
	for _, stream := range streams {
		d.running.Go(func() { _ = stream.Close() })
	}
	d.running.Wait()
}
