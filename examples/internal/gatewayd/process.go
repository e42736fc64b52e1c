// SPDX-License-Identifier: Apache-2.0

package gatewayd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"github.com/evenring/evenring/examples/internal/report"
	"github.com/evenring/evenring/handoff"
	"github.com/evenring/evenring/metrics"
	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster/gossip"
	"github.com/evenring/evenring/placement/roster/kube"
	"github.com/evenring/evenring/redirect"
)

// hurry bounds each part of the farewell when the process is to stop at once.
const hurry = farewell / 2

// phase is how far a process has come.
type phase int32

const (
	starting phase = iota
	serving
	aside // it serves, and hands over, for discovery has dropped it
	draining
)

// process is what runs between the start and the end of [Server.Run].
type process struct {
	*Server
	log      *slog.Logger
	gateway  *redirect.Gateway
	peers    peers
	front    server
	mesh     *gossip.Mesh
	kube     *kube.Discovery // nil: gossip alone finds the others
	ops      *http.Server
	registry *prometheus.Registry // of what ops shows as metrics

	counted metrics.Calls

	phase  atomic.Int32
	life   context.Context // of everything that runs
	end    context.CancelFunc
	tasks  sync.WaitGroup
	failed chan error // the first one counts

	dropped chan struct{}  // discovery has dropped this gateway
	heeding sync.WaitGroup // heedDiscovery, until unheed
	unheed  context.CancelFunc
}

// start brings everything up, in the order in which the parts need each other:
// the gateway wants to know where it listens, peers must be answered before
// the mesh tells them of it, and it is placeable only once it serves.
func (s *Server) start(ctx context.Context) (_ *process, err error) {
	p := &process{Server: s, log: s.cfg.Log, failed: make(chan error, 1), dropped: make(chan struct{}, 1)}
	p.life, p.end = context.WithCancel(context.WithoutCancel(ctx))
	heed, unheed := context.WithCancel(p.life)
	p.unheed = unheed
	defer func() {
		if err != nil {
			p.stop()
		}
	}()

	listener, err := net.Listen("tcp", s.cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("-listen: %w", err)
	}
	opsListener, err := net.Listen("tcp", s.cfg.Ops)
	if err != nil {
		_ = listener.Close()
		return nil, fmt.Errorf("-ops: %w", err)
	}
	endpoint := s.cfg.Endpoint
	if endpoint == "" {
		endpoint = listener.Addr().String()
	}
	p.peers = s.newPeers()
	p.gateway, err = redirect.NewGateway(redirect.Config{
		Gateway:     s.cfg.ID,
		Incarnation: placement.Incarnation(time.Now().UnixNano()),
		Endpoint:    endpoint,
		Peers:       p.peers,
		Proofs:      s.cfg.proofs(),
	}, p.hooks())
	if err == nil {
		p.front, err = p.newServer()
	}
	if err != nil {
		return nil, errors.Join(err, listener.Close(), opsListener.Close())
	}
	p.ops = &http.Server{Handler: p.pages(), ReadHeaderTimeout: 5 * time.Second, ErrorLog: slog.NewLogLogger(p.log.Handler(), slog.LevelDebug)}
	p.tasks.Go(func() { p.fail(p.front.serve(listener)) })
	p.tasks.Go(func() { p.fail(p.ops.Serve(opsListener)) })

	replica, err := p.discover()
	if err != nil {
		return nil, err
	}
	p.mesh, err = gossip.Join(ctx, gossip.Config{
		Gateway: s.cfg.ID, Incarnation: p.gateway.Incarnation(), Logger: p.log,
		Bind: s.cfg.Gossip, Advertise: s.cfg.Advertise, Seeds: s.cfg.Join, Discover: p.seeds(),
		Key: s.cfg.GossipKey, AcceptKeys: s.cfg.GossipAccept,
	}, replica)
	if err != nil {
		return nil, fmt.Errorf("-gossip: %w", err)
	}
	p.registry.MustRegister(traffic(p.mesh.Stats)...)
	p.tasks.Go(func() { p.gateway.Run(p.life, p.mesh) })
	p.tasks.Go(p.expiries)

	e := report.Event{Kind: report.Listening, Gateway: string(s.cfg.ID), Listen: listener.Addr().String(), Endpoint: endpoint, Gossip: p.mesh.Addr(), Ops: opsListener.Addr().String()}
	p.log.Info("listening", "gateway", e.Gateway, "incarnation", p.gateway.Incarnation(), "endpoint", e.Endpoint, "gossip", e.Gossip, "ops", e.Ops, "transport", s.cfg.Transport, "tls", s.server != nil)
	s.cfg.Report.Write(e)
	p.tasks.Go(p.becomeReady)
	p.heeding.Go(func() { p.heedDiscovery(heed) })
	return p, nil
}

// fail makes Run hand over for err, unless there is none, or the process ends already.
func (p *process) fail(err error) {
	if err == nil || errors.Is(err, http.ErrServerClosed) || errors.Is(err, grpc.ErrServerStopped) {
		return
	}
	select {
	case p.failed <- err:
	default:
	}
}

// becomeReady waits for the others, so that the first supervisors are placed
// with their loads in view.
func (p *process) becomeReady() {
	ctx, cancel := context.WithTimeout(p.life, p.cfg.PeerWait)
	defer cancel()
	if err := p.mesh.WaitPeers(ctx); err != nil {
		if p.life.Err() != nil {
			return
		}
		p.log.Warn("serving without having heard every peer", "error", err)
	}
	if p.serves() && p.phase.CompareAndSwap(int32(starting), int32(serving)) {
		p.log.Info("ready", "gateways", p.gateway.Stats().Gateways)
		p.cfg.Report.Write(report.Event{Kind: report.Ready, Gateway: string(p.cfg.ID)})
	}
}

// serves waits until the gateway may be given supervisors; false: never.
func (p *process) serves() bool {
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for !p.gateway.Ready().Supervisors.OK {
		select {
		case <-look.C:
		case <-p.life.Done():
			return false
		}
	}
	return true
}

// expiries ends every stream whenever credentials have expired.
func (p *process) expiries() {
	for {
		select {
		case <-p.expire:
			_, serverErr := p.cfg.TLS.Server()
			_, clientErr := p.cfg.TLS.Client()
			if err := errors.Join(serverErr, clientErr); err != nil {
				p.log.Error("credentials were to be renewed, and are not in order; no stream is ended", "error", err)
				continue
			}
			p.log.Info("credentials expired; everybody is to come back with new ones", "supervisors", p.gateway.Stats().Served)
			p.gateway.EndAll(redirect.ReasonExpired)
		case <-p.life.Done():
			return
		}
	}
}

// handOver drains and stops. If ctx ends it stops at once. A drain that
// discovery has led to ends first, and this one goes on with whom it has left.
func (p *process) handOver(ctx context.Context) error {
	p.phase.Store(int32(draining))
	p.unheed()
	p.heeding.Wait()
	stats := p.gateway.Stats()
	p.log.Info("draining", "supervisors", stats.Served, "sessions", stats.Sessions)
	p.cfg.Report.Write(report.Event{Kind: report.Draining, Gateway: string(p.cfg.ID)})
	r, err := handoff.Drain(ctx, p.gateway, p.drainConfig(), handoff.Hooks{Observe: p.observeDrain})
	if err != nil {
		p.log.Warn("the drain was cut short", "cause", err, "moved", len(r.Moved), "closed", len(r.Closed), "left", len(r.Left))
		p.leave(hurry)
		return err
	}
	p.drained(r)
	p.leave(farewell)
	return nil
}

// drainConfig is the configuration of a drain that begins now.
func (p *process) drainConfig() handoff.Config {
	cfg := p.cfg.drain()
	if stats := p.gateway.Stats(); stats.Served == 0 && stats.Reserved == 0 {
		cfg.Propagation = time.Nanosecond // nobody is to be handed over, nobody is on the way
	}
	return cfg
}

// drained says how a drain has ended.
func (p *process) drained(r handoff.Report) {
	for _, left := range r.Left {
		p.log.Warn("left behind", "member", left.Member, "cause", left.Cause.String())
	}
	p.log.Info("drained", "moved", len(r.Moved), "closed", len(r.Closed), "left", len(r.Left), "orders", r.Orders, "took", r.Took)
	p.cfg.Report.Write(report.Event{
		Kind: report.Drained, Gateway: string(p.cfg.ID), Moved: len(r.Moved), Closed: len(r.Closed), Left: len(r.Left),
	})
}

// leave says goodbye to the peers and then to the streams, and gives each patience.
func (p *process) leave(patience time.Duration) {
	if err := p.mesh.Leave(patience); err != nil {
		p.log.Warn("peers will find out by themselves that this gateway has left", "error", err)
	}
	p.gateway.EndAll(redirect.ReasonStopped)
	p.front.shutdown(patience)
	p.stop()
}

// stop ends whatever runs, and waits for it.
func (p *process) stop() {
	p.end()
	if p.kube != nil {
		p.kube.Close()
	}
	if p.mesh != nil {
		_ = p.mesh.Close()
	}
	if p.front != nil {
		p.front.stop()
	}
	if p.ops != nil {
		_ = p.ops.Close()
	}
	if p.peers != nil {
		_ = p.peers.Close()
	}
	p.tasks.Wait()
	p.heeding.Wait()
}
