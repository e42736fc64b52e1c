// SPDX-License-Identifier: Apache-2.0

package rostertest

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/ring"
)

// node runs a roster over the transport under examination. It is the
// transport's replica, and stands between its roster and the transport in
// both directions.
type node struct {
	exam        *exam
	id          ring.GatewayID
	incarnation placement.Incarnation
	truth       map[ring.MemberID]roster.Entry // whom it serves; the examiner's alone
	state       placement.State                // likewise

	transport roster.Transport
	stop      func() // the transport
	cancel    context.CancelFunc
	running   sync.WaitGroup
	wake      chan struct{}

	mu      sync.Mutex
	roster  *roster.Roster
	rng     *rand.Rand
	late    []roster.Received // what has arrived and is held back
	sends   []roster.Send
	stopped bool
	refused error // the transport's last
}

// Step implements [roster.Replica].
func (n *node) Step(ev roster.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stopped {
		n.exam.fault("%s was stepped with %T after its transport had been stopped", n.id, ev)
		return
	}
	if r, ok := ev.(roster.Received); ok {
		n.receive(r)
		return
	}
	n.step(ev)
}

// receive takes a message as the weather has it.
func (n *node) receive(r roster.Received) {
	n.inspect(r)
	w := n.exam.weather.Load()
	if w.apart(speaker(r.Message).Gateway, n.id) || n.happens(w.loss/2) {
		return
	}
	for range 1 + n.repeats(w) {
		if n.happens(w.late) {
			n.late = append(n.late, r)
			n.stir()
		} else {
			n.step(r)
		}
	}
}

// inspect looks for what no transport may do.
func (n *node) inspect(r roster.Received) {
	if r.Message == nil {
		n.exam.fault("%s was given no message", n.id)
		return
	}
	from := speaker(r.Message)
	if r.From != "" && r.From != from.Gateway {
		n.exam.fault("%s was given a message of %s as one of %s", n.id, from.Gateway, r.From)
	}
	if from.Gateway == n.id && from.Incarnation == n.incarnation {
		n.exam.fault("%s was given its own %T", n.id, r.Message)
	}
	if q, ok := r.Message.(roster.SnapshotRequest); ok && q.Gateway != n.id {
		n.exam.fault("%s was given a request that is for %s", n.id, q.Gateway)
	}
}

// do is an event of this gateway's own.
func (n *node) do(ev roster.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.step(ev)
}

// step is called under the lock, as all that follow are that say nothing else.
func (n *node) step(ev roster.Event) {
	for _, act := range n.roster.Step(time.Now(), ev) {
		switch act := act.(type) {
		case roster.Send:
			n.sends = append(n.sends, act)
		case roster.Conflict:
			n.exam.fault("%s, %d, was told of itself, %d", n.id, n.incarnation, act.Incarnation)
		}
	}
	n.stir()
}

func (n *node) happens(share float64) bool { return share > 0 && n.rng.Float64() < share }

func (n *node) repeats(w *weather) int {
	if n.happens(w.twice) {
		return 1
	}
	return 0
}

// stir makes run look again. It needs no lock.
func (n *node) stir() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// run does what is due until ctx ends. It is called without the lock.
func (n *node) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		sends, wait := n.due()
		for _, s := range sends {
			n.send(s)
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-n.wake:
		case <-timer.C:
		}
	}
}

// due lets go of some of what is late, ticks the roster if it wants that, and
// returns what is to be sent and when to look again. It takes the lock.
func (n *node) due() (sends []roster.Send, wait time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	calm := n.exam.weather.Load().calm()
	n.late = slices.DeleteFunc(n.late, func(r roster.Received) bool {
		released := calm || n.happens(0.3)
		if released {
			n.step(r)
		}
		return released
	})
	now := time.Now()
	if at, ok := n.roster.Deadline(); ok && !now.Before(at) {
		n.step(roster.Tick{})
	}
	sends, n.sends = n.sends, nil
	wait = time.Hour
	if at, ok := n.roster.Deadline(); ok {
		wait = at.Sub(now)
	}
	if len(n.late) > 0 {
		wait = min(wait, batch)
	}
	return sends, wait
}

// send gives a message to the transport as the weather has it. It is called
// without the lock.
func (n *node) send(s roster.Send) {
	n.mu.Lock()
	w := n.exam.weather.Load()
	lost := n.happens(w.loss/2) || s.To != "" && w.apart(n.id, s.To)
	copies := 1 + n.repeats(w)
	n.mu.Unlock()
	if lost {
		return
	}
	for range copies {
		if err := n.transport.Send(s.To, roster.Append(nil, s.Message)); err != nil {
			n.mu.Lock()
			n.refused = err
			n.mu.Unlock()
		}
	}
}

// kill ends the node as if its process had died. It is called without the lock.
func (n *node) kill() {
	n.stop()
	n.mu.Lock()
	n.stopped = true
	n.mu.Unlock()
	n.cancel()
	n.running.Wait()
}
