// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"sync"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// Home is the gateway that last accepted a supervisor. The zero value stands
// for "not known". Homes may be compared with ==.
type Home struct {
	Gateway     ring.GatewayID
	Endpoint    string // where it can be dialled directly; empty: only through the Service
	Incarnation placement.Incarnation
}

// Homes publishes a supervisor's home to whoever follows it, its sessions above
// all. The zero value is ready and knows no home. It is safe for concurrent use.
type Homes struct {
	mu      sync.Mutex
	home    Home
	changed chan struct{}
}

// Set publishes home. One that is equal to the last changes nothing and wakes nobody.
func (h *Homes) Set(home Home) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if home == h.home {
		return
	}
	h.home = home
	if h.changed != nil {
		close(h.changed)
		h.changed = nil
	}
}

// Home returns the home of now, and a channel that is closed once it is no
// longer that.
func (h *Homes) Home() (Home, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.changed == nil {
		h.changed = make(chan struct{})
	}
	return h.home, h.changed
}
