// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/evenring/evenring/examples/internal/child"
	"github.com/evenring/evenring/examples/internal/report"
	"github.com/evenring/evenring/examples/internal/wire"
)

// hosts is how many processes the supervisors share at most.
const hosts = 16

// fleet is everything that runs: gateways and supervisors as processes, and
// the balancer between them.
type fleet struct {
	cfg     config
	dir     string // for logs
	rnd     *rand.Rand
	balance *balancer
	board   *board
	echoes  atomic.Pointer[echoes] // nil: nobody is asked

	lastGateway int
	lastMember  int
	gateways    map[string]*gateway // live ones
	hosts       []*host
	died        map[string]time.Time // gateways that have ended, and have not been started again
	overCap     map[string]int       // as last scraped, gateways that have ended included
}

// gateway is one gateway process.
type gateway struct {
	*child.Process
	id      string
	listen  atomic.Pointer[string] // nil: it does not yet
	gossip  string
	ops     string
	link    *relay        // in front of its endpoint; nil: none
	hears   *gossipRelay  // in front of its gossip; nil: none
	paused  bool          // by SIGSTOP
	resumed time.Time     // when that was last over
	started chan struct{} // closed once it is ready
	once    sync.Once
}

// host is one process with supervisors.
type host struct {
	*child.Process
	members []string
	ops     atomic.Pointer[string] // nil: it does not listen yet
}

func newFleet(cfg config) (*fleet, error) {
	dir, err := os.MkdirTemp("", "rollout-")
	if err != nil {
		return nil, err
	}
	b, err := newBalancer(cfg.seed)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &fleet{
		cfg: cfg, dir: dir, rnd: rand.New(rand.NewPCG(cfg.seed, 2)), balance: b, board: newBoard(),
		gateways: make(map[string]*gateway), overCap: make(map[string]int), died: make(map[string]time.Time),
	}, nil
}

// ids returns the live gateways, oldest first.
func (f *fleet) ids() []string { return slices.SortedFunc(maps.Keys(f.gateways), byNumber) }

// startGateway starts one more gateway and waits until it is ready and in the Service.
func (f *fleet) startGateway(ctx context.Context) (*gateway, error) {
	all, err := f.startGateways(ctx, 1)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// startGateways starts new gateways at the same time.
func (f *fleet) startGateways(ctx context.Context, n int) ([]*gateway, error) {
	ids := make([]string, n)
	for i := range ids {
		f.lastGateway++
		ids[i] = fmt.Sprint("gw-", f.lastGateway)
	}
	return f.startNamed(ctx, ids)
}

// startNamed starts gateways at the same time; they find each other, and
// those that run already, from one seed.
func (f *fleet) startNamed(ctx context.Context, ids []string) ([]*gateway, error) {
	all := make([]*gateway, 0, len(ids))
	for _, id := range ids {
		g, err := f.launch(ctx, id)
		if err != nil {
			return nil, err
		}
		all = append(all, g)
	}
	for _, g := range all {
		select {
		case <-g.started:
		case <-g.Done:
			return nil, fmt.Errorf("%s ended before it was ready: %w", g.id, g.Err)
		case <-ctx.Done():
			return nil, fmt.Errorf("%s does not become ready: %w", g.id, context.Cause(ctx))
		}
	}
	return all, f.poll(ctx, "the Service does not take the new gateways", func() bool {
		return !slices.ContainsFunc(ids, func(id string) bool { return !f.balance.takes(id) })
	})
}

// launch starts a gateway and waits until it listens.
func (f *fleet) launch(ctx context.Context, id string) (*gateway, error) {
	g := &gateway{id: id, started: make(chan struct{})}
	args := []string{
		"-id", g.id, "-listen", "127.0.0.1:0", "-ops", "127.0.0.1:0", "-report",
		"-transport", f.cfg.transport.String(),
		"-propagation", f.cfg.propagation.String(), "-window", f.cfg.window.String(), "-kill-after", f.cfg.killAfter().String(),
	}
	if seed := f.seed(); seed != "" {
		args = append(args, "-join", seed)
	}
	if f.cfg.chaos() {
		if err := g.relayed(); err != nil {
			g.unlink()
			return nil, err
		}
		args = append(args, "-endpoint", g.link.address(), "-gossip", g.hears.behind.String(), "-gossip-advertise", g.hears.address())
	} else {
		args = append(args, "-gossip", "127.0.0.1:0")
	}
	listening := make(chan report.Event, 1)
	var err error
	g.Process, err = child.Start(f.dir, "gateway", g.id, args, func(e report.Event) {
		switch e.Kind {
		case report.Listening:
			g.listen.Store(&e.Listen)
			listening <- e
		case report.Ready:
			g.once.Do(func() { close(g.started) })
		}
	})
	if err != nil {
		g.unlink()
		return nil, err
	}
	f.gateways[g.id] = g
	delete(f.died, g.id)
	select {
	case e := <-listening:
		g.gossip, g.ops = e.Gossip, e.Ops
		f.balance.add(g.id, e.Listen, e.Ops)
	case <-g.Done:
		return nil, fmt.Errorf("%s ended at once: %w", g.id, g.Err)
	case <-ctx.Done():
		return nil, fmt.Errorf("%s does not listen: %w", g.id, context.Cause(ctx))
	}
	return g, nil
}

// relayed puts relays in front of a gateway that is to be started.
func (g *gateway) relayed() (err error) {
	if g.hears, err = newGossipRelay(); err != nil {
		return err
	}
	g.link, err = newRelay(func() string {
		if at := g.listen.Load(); at != nil {
			return *at
		}
		return ""
	})
	return err
}

// unlink ends what is in front of it.
func (g *gateway) unlink() {
	if g.link != nil {
		g.link.close()
	}
	if g.hears != nil {
		g.hears.close()
	}
}

// seed is the gossip address of a gateway that runs.
func (f *fleet) seed() string {
	for _, id := range f.ids() {
		if g := f.gateways[id]; g.gossip != "" && !g.paused {
			return g.gossip
		}
	}
	return ""
}

// stopGateway lets a gateway drain and end.
func (f *fleet) stopGateway(ctx context.Context, id string) error {
	g := f.gateways[id]
	f.scrapeOverCap(ctx, g)
	delete(f.gateways, id)
	err := g.Stop(f.cfg.killAfter())
	f.forget(g)
	return err
}

// killGateway ends a gateway without a word. Only its probe tells the Service.
func (f *fleet) killGateway(ctx context.Context, id string) {
	g := f.gateways[id]
	f.scrapeOverCap(ctx, g)
	delete(f.gateways, id)
	g.Kill()
}

// forget takes a gateway that has ended out of the Service.
func (f *fleet) forget(g *gateway) {
	f.died[g.id] = time.Now()
	f.balance.remove(g.id)
	g.unlink()
}

func (f *fleet) scrapeOverCap(ctx context.Context, g *gateway) {
	if m, err := scrapeGauges(ctx, g.ops); err == nil {
		f.overCap[g.id] = m.overCap
	}
}

// totalOverCap is how many admissions went above the cap so far, as the gateways counted.
func (f *fleet) totalOverCap(ctx context.Context) int {
	for _, g := range f.gateways {
		f.scrapeOverCap(ctx, g)
	}
	total := 0
	for _, n := range f.overCap {
		total += n
	}
	return total
}

// startSupervisors starts so many new supervisors, all at once.
func (f *fleet) startSupervisors(n int) error {
	count := min(hosts, n)
	for i := range count {
		h := &host{}
		for range n*(i+1)/count - n*i/count {
			f.lastMember++
			name := "edge-" + strconv.Itoa(f.lastMember)
			h.members = append(h.members, name)
			f.board.expect(name, f.cfg.sessions)
		}
		f.hosts = append(f.hosts, h)
	}
	return f.startHosts(f.hosts[len(f.hosts)-count:])
}

func (f *fleet) startHost(h *host) (err error) {
	h.ops.Store(nil)
	h.Process, err = child.Start(f.dir, "supervisor", "host-"+h.members[0], []string{
		"-service", f.balance.address(), "-member", strings.Join(h.members, ","), "-sessions", strconv.Itoa(f.cfg.sessions),
		"-ops", "127.0.0.1:0", "-report", "-transport", f.cfg.transport.String(),
	}, func(e report.Event) {
		if e.Kind == report.Listening {
			h.ops.Store(&e.Ops)
		}
		f.event(e)
	})
	return err
}

// event takes one line of a supervisors' process.
func (f *fleet) event(e report.Event) {
	if e.Kind != report.Executed {
		f.board.event(e)
	} else if echoes := f.echoes.Load(); echoes != nil {
		echoes.heard(e.Request)
	}
}

// startEchoes begins to ask as many supervisors as the config says, of all processes alike.
func (f *fleet) startEchoes() {
	if f.cfg.echo == 0 {
		return
	}
	members := make([]string, f.cfg.echo)
	for i := range members {
		members[i] = "edge-" + strconv.Itoa(1+i*f.cfg.supervisors/f.cfg.echo)
	}
	connect := func() wire.Caller {
		return wire.NewCaller(wire.CallerConfig{Kind: f.cfg.transport, Addr: f.balance.address(), Patient: true, Dial: f.balance.dial})
	}
	f.echoes.Store(newEchoes(f.cfg, connect, members))
}

// restartSupervisors kills every process with supervisors and starts them again at once.
func (f *fleet) restartSupervisors() error {
	f.killHosts(f.hosts)
	return f.startHosts(f.hosts)
}

// killHosts ends processes with supervisors without a word.
func (f *fleet) killHosts(all []*host) {
	for _, h := range all {
		_ = h.Cmd.Process.Kill()
	}
	for _, h := range all {
		<-h.Done
		f.board.died(h.members)
	}
}

func (f *fleet) startHosts(all []*host) error {
	for _, h := range all {
		if err := f.startHost(h); err != nil {
			return err
		}
	}
	return nil
}

// poll waits until the condition holds.
func (f *fleet) poll(ctx context.Context, otherwise string, holds func() bool) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", otherwise, context.Cause(ctx))
		}
	}
	return nil
}

// close ends everything: the supervisors say goodbye, then the gateways stop.
// It returns what did not end well, and removes the logs if all did and keep is false.
func (f *fleet) close(keep bool) error {
	var mu sync.Mutex
	var errs []error
	stop := func(processes []*child.Process) {
		var all sync.WaitGroup
		for _, p := range processes {
			all.Go(func() {
				err := p.Stop(20 * time.Second)
				if keep && child.DiedOf(err, syscall.SIGTERM, os.Interrupt) { // cut short: it had hardly begun, or control-C reached it too
					return
				}
				if err != nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
				}
			})
		}
		all.Wait()
	}
	if echoes := f.echoes.Load(); echoes != nil {
		errs = append(errs, echoes.close())
	}
	supervisors, gateways := f.processes()
	for _, p := range slices.Concat(supervisors, gateways) {
		errs = append(errs, p.Signal(syscall.SIGCONT)) // one that is stopped heeds nothing else
	}
	stop(supervisors)
	stop(gateways)
	for _, g := range f.gateways {
		g.unlink()
	}
	f.balance.close()
	if err := errors.Join(errs...); keep || err != nil {
		return err
	}
	return os.RemoveAll(f.dir)
}

// processes returns those that are to run.
func (f *fleet) processes() (supervisors, gateways []*child.Process) {
	for _, h := range f.hosts {
		if h.Process != nil {
			supervisors = append(supervisors, h.Process)
		}
	}
	for _, id := range f.ids() {
		if g := f.gateways[id]; g.Process != nil {
			gateways = append(gateways, g.Process)
		}
	}
	return supervisors, gateways
}
