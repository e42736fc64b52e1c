// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	typed "k8s.io/client-go/kubernetes/typed/discovery/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/evenring/evenring/placement/roster"
)

// The errors of a discovery; compare with [errors.Is].
var (
	// ErrClosed: the discovery has been closed.
	ErrClosed = errors.New("kube: closed")
	// ErrForbidden: the API server does not let this gateway list and watch
	// endpointslices. It is in what [roster.DiscoveryFailed] carries.
	ErrForbidden = errors.New("kube: not allowed to list and watch endpointslices; its service account needs a Role with the verbs get, list and watch on them")
)

// After a failure the API server is asked again at these intervals, which double,
// and half as much again at random. Two minutes without one start them anew.
const (
	firstRetry = 200 * time.Millisecond
	lastRetry  = 15 * time.Second
)

// namespaceFile is where Kubernetes tells a pod its namespace.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// Discovery watches the slices of one Service for one gateway. All methods are
// safe for concurrent use. End it with Close.
type Discovery struct {
	cfg     Config
	replica roster.Replica
	conns   *conns
	ctx     context.Context // ends with the discovery
	cancel  context.CancelFunc
	tasks   sync.WaitGroup
	wake    chan struct{} // next may have something to say

	mu        sync.Mutex
	view      *view
	peers     []Peer        // what view had when it last changed; not written to
	lastFault string        // the last one that was logged
	changed   chan struct{} // closed, and made anew, when waiters are to look again
}

// Start begins to watch, and returns. One goroutine steps the replica, until
// the discovery is closed. An API server that cannot be reached, or refuses, is no
// error here: the replica is told, and the server is asked again for ever.
func Start(cfg Config, replica roster.Replica) (*Discovery, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	if err := cfg.locate(); err != nil {
		return nil, fmt.Errorf("kube: %w", err)
	}
	conns := track(cfg.Client)
	api, err := typed.NewForConfig(cfg.Client)
	if err != nil {
		return nil, fmt.Errorf("kube: Config.Client: %w", err)
	}
	d := &Discovery{
		cfg: cfg, replica: replica, conns: conns,
		wake: make(chan struct{}, 1), view: newView(cfg), changed: make(chan struct{}),
	}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	logger := logr.FromSlogHandler(aside{cfg.Logger.Handler()})
	reflector := cache.NewReflectorWithOptions(source{d, api.EndpointSlices(cfg.Namespace)}, &discoveryv1.EndpointSlice{}, store{d}, cache.ReflectorOptions{
		Name:    "kube",
		Logger:  &logger,
		Backoff: &wait.Backoff{Duration: firstRetry, Cap: lastRetry, Steps: 100, Factor: 2, Jitter: 0.5},
	})
	d.tasks.Go(func() { reflector.RunWithContext(klog.NewContext(d.ctx, logger)) })
	d.tasks.Go(d.deliver)
	return d, nil
}

// locate fills in what only the pod knows.
func (c *Config) locate() error {
	if c.Client == nil {
		inside, err := rest.InClusterConfig()
		if err != nil {
			return fmt.Errorf("Config.Client is nil: %w", err)
		}
		c.Client = inside
	} else {
		c.Client = rest.CopyConfig(c.Client)
	}
	if c.Client.WarningHandler == nil && c.Client.WarningHandlerWithContext == nil {
		c.Client.WarningHandler = rest.NoWarnings{}
	}
	if c.Namespace == "" {
		text, err := os.ReadFile(namespaceFile)
		if err != nil {
			return fmt.Errorf("Config.Namespace is empty: %w", err)
		}
		c.Namespace = strings.TrimSpace(string(text))
	}
	return nil
}

// Peers yields every gateway that the slices list, this one included, in the
// order of their IDs. It is a snapshot of now and may be ranged over many times. While
// the API server cannot be reached it is what was known last.
func (d *Discovery) Peers() iter.Seq[Peer] {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := d.peers
	return func(yield func(Peer) bool) {
		for _, p := range all {
			p.Addresses = slices.Clone(p.Addresses)
			if !yield(p) {
				return
			}
		}
	}
}

// Seeds returns the gossip addresses of all other gateways, one of each: the
// first of [Peer.Addresses]. It waits for the first list, and returns an
// error if there is none because the API server has failed, or ctx ends. While the
// server cannot be reached later on, it returns the addresses known last.
func (d *Discovery) Seeds(ctx context.Context) ([]string, error) {
	if err := d.wait(ctx, true); err != nil {
		return nil, err
	}
	var seeds []string
	for p := range d.Peers() {
		if p.Gateway != d.cfg.Gateway && len(p.Addresses) > 0 {
			seeds = append(seeds, p.Addresses[0])
		}
	}
	return seeds, nil
}

// WaitList waits for the first list, complete or not. If ctx ends first, the
// error has the API server's last one with it.
func (d *Discovery) WaitList(ctx context.Context) error { return d.wait(ctx, false) }

func (d *Discovery) wait(ctx context.Context, impatient bool) error {
	for {
		d.mu.Lock()
		listed, failure, changed := d.view.listed, d.view.failure, d.changed
		d.mu.Unlock()
		switch {
		case d.ctx.Err() != nil:
			return ErrClosed
		case listed:
			return nil
		case failure != nil && impatient:
			return failure
		}
		select {
		case <-changed:
		case <-d.ctx.Done():
		case <-ctx.Done():
			return errors.Join(ctx.Err(), failure)
		}
	}
}

// Close ends the discovery. The replica is not stepped any more once Close has
// returned; it must not be called from the replica. Closing again does nothing.
func (d *Discovery) Close() {
	d.cancel()
	d.tasks.Wait()
	d.conns.close()
}

// deliver tells the replica what there is to be told.
func (d *Discovery) deliver() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-d.wake:
		case <-timer.C:
		case <-d.ctx.Done():
			return
		}
		for d.ctx.Err() == nil {
			d.mu.Lock()
			first, known := d.view.told == nil, d.view.known
			ev := d.view.next(time.Now())
			due := d.view.due()
			d.mu.Unlock()
			if ev == nil {
				timer.Stop()
				if !due.IsZero() {
					timer.Reset(time.Until(due))
				}
				break
			}
			d.log(ev, first, known)
			d.replica.Step(ev)
		}
	}
}

// log says what the replica is told, and why a list is partial.
func (d *Discovery) log(ev roster.Event, first, known bool) {
	log := d.cfg.Logger.With("service", d.cfg.Service, "namespace", d.cfg.Namespace)
	switch ev := ev.(type) {
	case roster.DiscoveryFailed:
		log.Warn("kube: gateways cannot be listed", "error", ev.Err)
	case roster.Discovered:
		log.Info("kube: gateways listed", "gateways", len(ev.Gateways), "partial", ev.Partial)
		const wanted = "its ID must be its pod's name, and the Service must select it"
		switch {
		case !known && first: // as often for a moment
			log.Info("kube: the list counts as partial until it has this gateway; "+wanted, "gateway", d.cfg.Gateway)
		case !known:
			log.Warn("kube: the list counts as partial, for it still lacks this gateway; "+wanted, "gateway", d.cfg.Gateway)
		case ev.Partial:
			log.Warn("kube: the list is partial, for some endpoints name neither a pod nor a host")
		case !slices.Contains(ev.Gateways, d.cfg.Gateway):
			log.Warn("kube: the list does not have this gateway any more", "gateway", d.cfg.Gateway)
		}
	}
}

// update changes the view.
func (d *Discovery) update(change func(now time.Time, v *view)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(time.Now(), d.view)
	d.peers = d.view.peers()
	close(d.changed)
	d.changed = make(chan struct{})
	select {
	case d.wake <- struct{}{}:
	default: // it is awake already
	}
}

// fail notes that a request has failed, if that is a failure.
func (d *Discovery) fail(err error) {
	if d.ctx.Err() != nil || !outage(err) {
		return
	}
	err = d.explain(err)
	d.mu.Lock()
	again := d.lastFault == err.Error()
	d.lastFault = err.Error()
	d.mu.Unlock()
	if !again {
		d.cfg.Logger.Info("kube: the API server fails", "error", err)
	}
	d.update(func(now time.Time, v *view) { v.failed(now, err) })
}
