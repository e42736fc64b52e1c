// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/evenring/evenring/examples/internal/gatewayd"
	"github.com/evenring/evenring/examples/internal/scrape"
)

// patience is for how long beyond -within rosters that do not agree are
// watched, so that it can be told how long it took.
const patience = 30 * time.Second

// rest is between the rounds: a supervisor whose stream has not lasted for a second
// takes its time to come back.
const rest = 2 * time.Second

// round makes everybody come, and measures until the rosters agree. Round 0 is
// the start, and every other one a burst. Its error means that nothing could be measured.
func (f *fleet) round(ctx context.Context, round int) (result, error) {
	hostsBefore := 0.0
	come := f.startHosts
	if round > 0 {
		come = f.cut
		rested := func() (bool, error) { _, last := f.board.served(); return time.Since(last) >= rest, nil }
		if err := f.poll(ctx, "no rest", rested); err != nil {
			return result{}, err
		}
		var err error
		if hostsBefore, err = f.hostsCPU(ctx); err != nil {
			return result{}, err
		}
	}
	before, err := f.usages(ctx)
	if err != nil {
		return result{}, err
	}
	own := ownCPU()
	f.board.begin()
	began := time.Now()
	if err := come(); err != nil {
		return result{}, err
	}
	everybody := func() (bool, error) { n, _ := f.board.served(); return n == f.cfg.supervisors, nil }
	if err := f.poll(ctx, "not everybody is attached", everybody); err != nil {
		n, _ := f.board.served()
		return result{}, fmt.Errorf("%d of %d: %w", n, f.cfg.supervisors, err)
	}
	pages, attached, wrong, err := f.settle(ctx)
	if err != nil {
		return result{}, err
	}
	after, err := f.usages(ctx)
	if err != nil {
		return result{}, err
	}
	hosts, err := f.hostsCPU(ctx)
	if err != nil {
		return result{}, err
	}
	agree, lag := times(pages, attached)
	res := result{
		Round: round, Gateways: f.cfg.gateways, Supervisors: f.cfg.supervisors, Hosts: f.cfg.hosts,
		BurstMS: millis(attached.Sub(began)), Agree: quantiles(agree), Lag: quantiles(lag), Spread: spread(pages[0]),
		CPU: cpu{Hosts: hosts - hostsBefore, Driver: ownCPU() - own},
	}
	for i, g := range f.gateways {
		res.Each = append(res.Each, share{
			Gateway: g.id, AgreeMS: millis(agree[i]), LagMS: millis(lag[i]), traffic: after[i].minus(before[i].traffic),
		})
		res.CPU.Gateways += after[i].cpu - before[i].cpu
	}
	res.CPU.Gateways, res.CPU.Hosts, res.CPU.Driver = round2(res.CPU.Gateways), round2(res.CPU.Hosts), round2(res.CPU.Driver)
	if wrong == nil {
		if worst := slices.Max(agree); worst > f.cfg.within {
			wrong = fmt.Errorf("all agreed only after %.3f ms, not within %v", millis(worst), f.cfg.within)
		}
	}
	res.OK = wrong == nil
	if wrong != nil {
		res.Why = wrong.Error()
	}
	return res, nil
}

// settle waits until all rosters agree with each other and with the supervisors, and
// returns them, and when the last supervisor was attached. If they do not
// in good time, wrong says in what.
func (f *fleet) settle(ctx context.Context) (pages []gatewayd.Roster, attached time.Time, wrong, err error) {
	enough := time.Now().Add(f.cfg.within + patience)
	err = f.poll(ctx, "the rosters do not agree", func() (bool, error) {
		var n int
		if n, attached = f.board.served(); n < f.cfg.supervisors {
			wrong = fmt.Errorf("%d supervisors have lost their stream again", f.cfg.supervisors-n)
			return time.Now().After(enough), nil
		}
		var err error
		if pages, err = f.rosters(ctx); err != nil {
			return false, err
		}
		if wrong = compare(pages); wrong == nil {
			wrong, err = f.confirm(ctx, pages, attached)
		}
		return wrong == nil || time.Now().After(enough), err
	})
	if err == nil && pages == nil {
		err = wrong
	}
	return pages, attached, wrong, err
}

var errMoved = errors.New("something has changed meanwhile")

// confirm holds rosters that agree against what the supervisors say.
func (f *fleet) confirm(ctx context.Context, pages []gatewayd.Roster, attached time.Time) (wrong, err error) {
	full, err := readRoster(ctx, f.gateways[0].ops, "?members=1")
	if err != nil {
		return nil, err
	}
	want := f.board.read()
	if _, last := f.board.served(); full.Digest != pages[0].Digest || !last.Equal(attached) {
		return errMoved, nil
	}
	return verify(full, want), nil
}

func (f *fleet) rosters(ctx context.Context) ([]gatewayd.Roster, error) {
	return each(ctx, f.gateways, func(ctx context.Context, g *gateway) (gatewayd.Roster, error) { return readRoster(ctx, g.ops, "") })
}

func (f *fleet) usages(ctx context.Context) ([]usage, error) {
	return each(ctx, f.gateways, func(ctx context.Context, g *gateway) (usage, error) { return readUsage(ctx, g.ops) })
}

// hostsCPU is what the processes with supervisors have used since they started.
func (f *fleet) hostsCPU(ctx context.Context) (float64, error) {
	total := 0.0
	for _, h := range f.hosts {
		ops := h.ops.Load()
		if ops == nil {
			return 0, fmt.Errorf("%s does not listen", h.Name)
		}
		page, err := scrape.Get(ctx, *ops)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", h.Name, err)
		}
		used, err := page.Sum(cpuSeconds)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", h.Name, err)
		}
		total += used
	}
	return total, nil
}
