// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/ring"
)

// The errors of a mesh; compare with [errors.Is].
var (
	// ErrClosed: the mesh has been closed.
	ErrClosed = errors.New("gossip: closed")
	// ErrUnknownPeer: no live node has that gateway ID.
	ErrUnknownPeer = errors.New("gossip: unknown peer")
	// ErrBacklog: too much waits for that peer already, or the message is too long.
	ErrBacklog = errors.New("gossip: backlog is full")
	// ErrKey: a gateway that was contacted has other keys, or one of the two has
	// none. It is in what [roster.DiscoveryFailed] carries.
	ErrKey = errors.New("gossip: the keys do not fit")
	// ErrAlone: every peer has been lost, or none has been found yet. It is in
	// what [roster.DiscoveryFailed] carries.
	ErrAlone = errors.New("gossip: no other gateway can be reached")
)

// Mesh is one gateway's place among all, and its [roster.Transport]. All
// methods are safe for concurrent use. End it with Leave or Close.
type Mesh struct {
	cfg     Config
	self    identity
	replica roster.Replica
	link    *link
	list    *memberlist.Memberlist
	addr    string
	keys    keys

	ctx      context.Context // ends with the mesh
	cancel   context.CancelFunc
	tasks    sync.WaitGroup
	started  chan struct{} // closed when list is there
	inbox    *inbox
	search   chan struct{} // look at the seeds now
	closing  sync.Once
	sent     atomic.Uint64 // messages queued, once for each peer
	received atomic.Uint64 // messages understood
	ending   sync.Mutex    // memberlist must not be left while or after it is shut down

	mu      sync.Mutex
	peers   map[string]*peer    // by node name
	lost    map[string]lost     // by node name
	busy    map[string]struct{} // what a look waits for, also one that is over
	found   bool                // the seeds have been heard, or there are none
	failure error               // why they have not, as far as known
	leaving bool
	closed  bool
	changed chan struct{} // closed, and made anew, when WaitPeers is to look again
}

// Join makes the gateway known to the others and connects the replica to
// them. It returns as soon as it listens, and looks for the others in the
// background: it tries the seeds until one answers, and again every now and
// then, so that a fleet whose gateways all start at once, or have lost each
// other, comes together. One goroutine steps the replica, until the mesh is
// closed. ctx bounds looking up the names in Bind and Advertise, nothing else.
func Join(ctx context.Context, cfg Config, replica roster.Replica) (*Mesh, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	m := &Mesh{
		cfg:     cfg,
		self:    identity{cfg.Gateway, cfg.Incarnation},
		replica: replica,
		started: make(chan struct{}),
		inbox:   newInbox(cfg.Backlog),
		search:  make(chan struct{}, 1),
		peers:   make(map[string]*peer),
		lost:    make(map[string]lost),
		busy:    make(map[string]struct{}),
		changed: make(chan struct{}),
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	if err := m.start(ctx); err != nil {
		m.cancel()
		return nil, fmt.Errorf("gossip: %w", err)
	}
	return m, nil
}

func (m *Mesh) start(ctx context.Context) error {
	conf, err := m.configure(ctx)
	if err != nil {
		return err
	}
	m.link, err = listen(&memberlist.NetTransportConfig{
		BindAddrs: []string{conf.BindAddr},
		BindPort:  conf.BindPort,
		Logger:    conf.Logger,
	})
	if err != nil {
		return err
	}
	conf.Transport = m.link
	conf.BindPort = m.link.GetAutoBindPort()
	if conf.AdvertisePort == 0 {
		conf.AdvertisePort = conf.BindPort
	}
	m.list, err = memberlist.Create(conf)
	if err != nil {
		m.cancel()
		_ = m.link.Shutdown() // it is not shut down if it was memberlist that failed
		m.tasks.Wait()
		return err
	}
	m.addr = m.list.LocalNode().Address()
	close(m.started)
	m.cfg.Logger.Info("gossip: listening", "gateway", m.self.gateway, "address", m.addr)
	m.tasks.Go(m.deliver)
	m.tasks.Go(m.seek)
	return nil
}

// Addr returns the host and port under which the others reach this gateway:
// a seed for them.
func (m *Mesh) Addr() string { return m.addr }

// Send implements [roster.Transport]. Among several starts of one gateway that
// are alive it means the newest by an ID, and all of them by every peer. It
// does not keep the message.
func (m *Mesh) Send(to ring.GatewayID, message []byte) error {
	if len(message) > maxMessage {
		return fmt.Errorf("%w: a message has %d bytes, and can have %d", ErrBacklog, len(message), maxMessage)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrClosed
	}
	if to != "" {
		p := m.newest(to)
		if p == nil {
			return fmt.Errorf("%w: %q", ErrUnknownPeer, to)
		}
		return m.queue(p, message)
	}
	var errs []error
	for _, p := range m.peers {
		if err := m.queue(p, message); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// WaitPeers waits until the seeds have been found and every gateway that is
// known then has been heard, or is out of reach, so that this one knows their
// loads when it starts to serve. It is for after redirect.Gateway.Run has been
// started with this mesh: gateways are heard once they have heard of each
// other. If ctx ends first, the error says what is missing; it is no reason
// not to serve, for the mesh goes on looking.
func (m *Mesh) WaitPeers(ctx context.Context) error {
	for {
		m.mu.Lock()
		changed := m.changed
		err := m.missing()
		m.mu.Unlock()
		if err == nil || errors.Is(err, ErrClosed) {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}

// missing says what WaitPeers still waits for. Called under the lock.
func (m *Mesh) missing() error {
	switch {
	case m.closed:
		return ErrClosed
	case !m.found && m.failure != nil:
		return m.failure
	case !m.found:
		return fmt.Errorf("%w yet", ErrAlone)
	}
	var silent []ring.GatewayID
	for _, p := range m.peers {
		if p.awaited && p.gateway != m.self.gateway && m.newest(p.gateway) == p {
			silent = append(silent, p.gateway)
		}
	}
	if len(silent) == 0 {
		return nil
	}
	slices.Sort(silent)
	return fmt.Errorf("gossip: not heard yet: %q", silent)
}

// Leave says goodbye to every peer, so that they remove this gateway at once,
// and closes the mesh. It takes no longer than timeout, and a moment to close;
// its error says that not everybody may have been told.
func (m *Mesh) Leave(timeout time.Duration) error {
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	by := time.Now().Add(timeout)
	m.mu.Lock()
	if m.closed || m.leaving {
		m.mu.Unlock()
		return ErrClosed
	}
	m.leaving = true
	told := make(chan struct{}, len(m.peers))
	waiting := len(m.peers)
	for _, p := range m.peers {
		p.farewell(told)
	}
	m.mu.Unlock()
	var err error
	for waiting > 0 && err == nil {
		select {
		case <-told:
			waiting--
		case <-deadline.C:
			err = fmt.Errorf("gossip: %d peers have not taken the goodbye within %v", waiting, timeout)
		case <-m.ctx.Done():
			err = ErrClosed
		}
	}
	if err == nil {
		err = m.leave(min(time.Until(by), m.cfg.Probe))
	}
	return errors.Join(err, m.Close())
}

// leave says memberlist's own goodbye, for those that know this gateway by
// hearsay. Everybody else has been told, and memberlist waits in vain if they
// leave as well: that it gives up is no error.
func (m *Mesh) leave(timeout time.Duration) error {
	m.ending.Lock()
	defer m.ending.Unlock()
	if m.ctx.Err() != nil {
		return ErrClosed
	}
	if err := m.list.Leave(max(timeout, time.Millisecond)); err != nil {
		m.cfg.Logger.Debug("gossip: left without word by hearsay", "error", err)
	}
	return nil
}

// Close ends the mesh without a goodbye: to the others it is as if the process
// had died. The replica is not stepped any more once Close has returned; it must
// not be called from the replica. Closing again does nothing.
func (m *Mesh) Close() error {
	var err error
	m.closing.Do(func() {
		m.mu.Lock()
		m.closed = true
		m.wakeWaiters()
		m.mu.Unlock()
		m.cancel()
		m.ending.Lock()
		err = m.list.Shutdown()
		m.ending.Unlock()
		m.tasks.Wait()
	})
	return err
}

// wakeWaiters is called under the lock.
func (m *Mesh) wakeWaiters() {
	close(m.changed)
	m.changed = make(chan struct{})
}
