// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"fmt"
	"sync"

	"github.com/hashicorp/memberlist"
)

// peer is one other node, and the queue of what it is to be sent.
type peer struct {
	identity
	node memberlist.Node // a copy: memberlist changes its own

	awaited bool // under the mesh's lock: neither heard yet, nor found to be out of reach

	mu     sync.Mutex
	limit  int
	frames [][]byte // the last may still grow
	bytes  int      // in frames
	bye    chan<- struct{}
	wake   chan struct{}
	gone   chan struct{} // closed when the node has gone
}

func newPeer(id identity, node *memberlist.Node, limit int) *peer {
	p := &peer{
		identity: id,
		node:     *node,
		awaited:  true,
		limit:    limit,
		wake:     make(chan struct{}, 1),
		gone:     make(chan struct{}),
	}
	p.node.Name = inOrder
	return p
}

// send queues a roster message.
func (p *peer) send(message []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bytes+len(message) > p.limit {
		return fmt.Errorf("%w: %d bytes wait for %v", ErrBacklog, p.bytes, p.identity)
	}
	last := len(p.frames) - 1
	if last < 0 || len(p.frames[last])+len(message) > frameSize {
		p.frames = append(p.frames, []byte{frameMessages})
		last++
	}
	before := len(p.frames[last])
	p.frames[last] = appendMessage(p.frames[last], message)
	p.bytes += len(p.frames[last]) - before
	signal(p.wake)
	return nil
}

// farewell queues a goodbye after all that waits. told gets a word when it has
// been sent, or has failed.
func (p *peer) farewell(told chan<- struct{}) {
	p.mu.Lock()
	p.bye = told
	p.mu.Unlock()
	signal(p.wake)
}

// next takes the frame to send next. Without one, bye is who waits for the
// goodbye, if anybody does.
func (p *peer) next() (frame []byte, bye chan<- struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.frames) == 0 {
		bye, p.bye = p.bye, nil
		return nil, bye
	}
	frame = p.frames[0]
	p.frames[0] = nil
	p.frames = p.frames[1:]
	p.bytes -= len(frame) - 1
	return frame, nil
}

func (p *peer) hasGone() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

// dismiss drops what waits for a peer that has gone. Whoever waits for the
// goodbye need not wait any more.
func (p *peer) dismiss() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frames, p.bytes = nil, 0
	if p.bye != nil {
		p.bye <- struct{}{}
		p.bye = nil
	}
}
