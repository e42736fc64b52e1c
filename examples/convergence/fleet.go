// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/evenring/evenring/examples/internal/child"
	"github.com/evenring/evenring/examples/internal/report"
)

// fleet is everything that runs, gateways and supervisors as processes.
type fleet struct {
	cfg      config
	dir      string // for logs
	gateways []*gateway
	hosts    []*host
	board    *board
}

// gateway is one gateway process.
type gateway struct {
	*child.Process
	id       string
	endpoint string
	gossip   string
	ops      string
}

// host is one process with supervisors.
type host struct {
	*child.Process
	ops atomic.Pointer[string] // nil: it does not listen yet
}

func newFleet(cfg config) (*fleet, error) {
	dir, err := os.MkdirTemp("", "convergence-")
	if err != nil {
		return nil, err
	}
	return &fleet{cfg: cfg, dir: dir, board: newBoard()}, nil
}

// startGateways starts all gateways at the same time, the first one as the others' seed, and
// waits until each has heard the others.
func (f *fleet) startGateways(ctx context.Context) error {
	ready := make(chan struct{}, f.cfg.gateways)
	for i := range f.cfg.gateways {
		g := &gateway{id: fmt.Sprint("gw-", i+1)}
		args := []string{
			"-id", g.id, "-listen", "127.0.0.1:0", "-gossip", "127.0.0.1:0", "-ops", "127.0.0.1:0", "-report", "-log-level", "warn",
		}
		if i > 0 {
			args = append(args, "-join", f.gateways[0].gossip)
		}
		listening := make(chan report.Event, 1)
		var err error
		g.Process, err = child.Start(f.dir, "gateway", g.id, args, func(e report.Event) {
			switch e.Kind {
			case report.Listening:
				listening <- e
			case report.Ready:
				ready <- struct{}{}
			}
		})
		if err != nil {
			return err
		}
		f.gateways = append(f.gateways, g)
		select {
		case e := <-listening:
			g.endpoint, g.gossip, g.ops = e.Endpoint, e.Gossip, e.Ops
		case <-g.Done:
			return fmt.Errorf("%s ended at once: %w", g.id, g.Err)
		case <-ctx.Done():
			return fmt.Errorf("%s does not listen: %w", g.id, context.Cause(ctx))
		}
	}
	for range f.gateways {
		select {
		case <-ready:
		case <-ctx.Done():
			return fmt.Errorf("not every gateway becomes ready: %w", context.Cause(ctx))
		}
	}
	return f.poll(ctx, "not every gateway knows all others", func() (bool, error) {
		pages, err := f.rosters(ctx)
		if err != nil {
			return false, err
		}
		for _, page := range pages {
			if len(page.Records) < f.cfg.gateways {
				return false, nil
			}
		}
		return true, nil
	})
}

// startHosts starts the processes with supervisors.
func (f *fleet) startHosts() error {
	var endpoints []string
	for _, g := range f.gateways {
		endpoints = append(endpoints, g.endpoint)
	}
	for i := range f.cfg.hosts {
		first := f.cfg.supervisors * i / f.cfg.hosts
		end := f.cfg.supervisors * (i + 1) / f.cfg.hosts
		h := &host{}
		var err error
		h.Process, err = child.Start(f.dir, "supervisor", fmt.Sprint("host-", i+1), []string{
			strings.Join(endpoints, ","), strconv.Itoa(first), strconv.Itoa(end),
		}, func(e report.Event) {
			if e.Kind == report.Listening {
				h.ops.Store(&e.Ops)
			}
			f.board.event(e)
		})
		if err != nil {
			return err
		}
		f.hosts = append(f.hosts, h)
	}
	return nil
}

func (f *fleet) killHosts() {
	for _, h := range f.hosts {
		_ = h.Cmd.Process.Kill()
	}
	for _, h := range f.hosts {
		<-h.Done
	}
}

// cut breaks every connection of every supervisor.
func (f *fleet) cut() error {
	for _, h := range f.hosts {
		if err := h.Signal(syscall.SIGHUP); err != nil {
			return err
		}
	}
	return nil
}

// ended reports a process that has ended although nobody told it to.
func (f *fleet) ended() error {
	all := make([]*child.Process, 0, len(f.gateways)+len(f.hosts))
	for _, g := range f.gateways {
		all = append(all, g.Process)
	}
	for _, h := range f.hosts {
		all = append(all, h.Process)
	}
	for _, p := range all {
		select {
		case <-p.Done:
			return fmt.Errorf("%s has ended: %w", p.Name, errors.Join(errEnded, p.Err))
		default:
		}
	}
	return nil
}

var errEnded = errors.New("nobody told it to")

// pollEvery is how often the fleet is looked at. It costs what it measures nothing:
// the gateways themselves note when their rosters change.
const pollEvery = 200 * time.Millisecond

// poll waits until the condition holds, or fails.
func (f *fleet) poll(ctx context.Context, otherwise string, holds func() (bool, error)) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if ok, err := holds(); ok || err != nil {
			return err
		}
		if err := f.ended(); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", otherwise, context.Cause(ctx))
		}
	}
}

// close ends everything, and removes the logs if all ended well and keep is false.
func (f *fleet) close(keep bool) error {
	f.killHosts()
	errs := make([]error, len(f.gateways))
	var all sync.WaitGroup
	for i, g := range f.gateways {
		all.Go(func() {
			if err := g.Stop(time.Minute); !keep {
				errs[i] = err
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); keep || err != nil {
		return err
	}
	return os.RemoveAll(f.dir)
}
