// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/evenring/evenring/placement/roster"
)

// How often other gateways are looked for, in probe intervals.
const (
	firstRetry = 1
	lastRetry  = 10
	relook     = 30 // with peers: others may have started apart, or have been cut off
)

// rememberLost is for how long a node that died or was cut off is looked for.
// memberlist forgets it sooner, and would never find it again.
const rememberLost = time.Hour

// lost is such a node.
type lost struct {
	identity
	addr  string
	until time.Time
}

// seek looks for other gateways until the mesh is closed.
func (m *Mesh) seek() {
	if !m.seeks() {
		m.settle(nil)
	}
	retry := firstRetry * m.cfg.Probe
	for {
		m.look()
		wait := relook * m.cfg.Probe
		if m.wanting() {
			wait, retry = retry, min(2*retry, lastRetry*m.cfg.Probe)
		} else {
			retry = firstRetry * m.cfg.Probe
		}
		timer := time.NewTimer(wait/2 + rand.N(wait/2))
		select {
		case <-timer.C:
		case <-m.search:
		case <-m.ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// seeks reports whether there are seeds, or may be.
func (m *Mesh) seeks() bool { return len(m.cfg.Seeds) > 0 || m.cfg.Discover != nil }

// wanting reports whether there is reason to look again soon.
func (m *Mesh) wanting() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.found || len(m.peers) == 0 && (m.seeks() || len(m.lost) > 0)
}

// settle takes the outcome of a look at the seeds: nil if they name nobody but
// this gateway, and what went wrong otherwise, which does not matter if there
// are peers.
func (m *Mesh) settle(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch alone := len(m.peers) == 0; {
	case m.closed:
	case alone && err == nil && len(m.lost) == 0, !alone && !m.found:
		m.found = true
		m.report()
		m.wakeWaiters()
	case alone && err != nil:
		m.failure = fmt.Errorf("%w: %w", ErrAlone, err)
		m.cfg.Logger.Warn("gossip: no peer found", "error", err)
		m.inbox.put(roster.DiscoveryFailed{Err: m.failure}, 0)
		m.wakeWaiters()
	}
}
