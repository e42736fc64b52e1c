// SPDX-License-Identifier: Apache-2.0

package gatewayd

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/evenring/evenring/examples/internal/report"
	"github.com/evenring/evenring/handoff"
)

// errWanted is why a gateway that stands aside serves again.
var errWanted = errors.New("it is listed again, or nobody else can take whom it serves")

// outlook is how often a gateway that discovery has dropped looks whether it is wanted.
const outlook = 50 * time.Millisecond

// heedDiscovery makes the gateway stand aside whenever it has been unwanted for
// Config.DelistGrace without a break, until ctx ends.
func (p *process) heedDiscovery(ctx context.Context) {
	for {
		select {
		case <-p.dropped:
			p.heedDrop(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// heedDrop does so until discovery lists the gateway again.
func (p *process) heedDrop(ctx context.Context) {
	var since time.Time // when it became unwanted; zero: it is wanted
	for p.gateway.Delisted() && look(ctx) {
		switch {
		case !p.unwanted():
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) >= p.cfg.DelistGrace:
			p.standAside(ctx)
			since = time.Time{}
		}
	}
}

// unwanted reports whether discovery has dropped this gateway and others can
// take whom it serves. A view that is not to be relied on is no ground for anything.
func (p *process) unwanted() bool {
	if !p.gateway.Delisted() {
		return false
	}
	stats := p.gateway.Stats()
	return !stats.Stale && stats.Placeable > 0 // itself it is not
}

// standAside hands over whom the gateway serves, and has it serve again once it
// is wanted. Discovery may be mistaken: no stream is closed, whoever finds no other
// gateway stays, and the Service is not told to pass this one over, or a
// discovery that lists only who is ready would never list it again. It returns
// once the gateway serves again, or ctx has ended.
func (p *process) standAside(ctx context.Context) {
	if !p.phase.CompareAndSwap(int32(serving), int32(aside)) {
		return // it does not serve yet, or it is to stop
	}
	defer p.phase.CompareAndSwap(int32(aside), int32(serving))
	var watching sync.WaitGroup
	defer watching.Wait()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watching.Go(func() {
		for p.unwanted() {
			if !look(ctx) {
				return
			}
		}
		cancel(errWanted)
	})

	cfg := p.drainConfig()
	cfg.Keep = true
	p.log.Warn("standing aside: discovery does not list this gateway")
	p.cfg.Report.Write(report.Event{Kind: report.Draining, Gateway: string(p.cfg.ID)})
	r, err := handoff.Drain(ctx, p.gateway, cfg, handoff.Hooks{Observe: p.observeDrain})
	if err == nil {
		p.drained(r)
		<-ctx.Done()
		p.gateway.StopDrain()
	}
	if cause := context.Cause(ctx); errors.Is(cause, errWanted) {
		p.log.Info("serving again", "cause", cause, "supervisors", p.gateway.Stats().Served)
		p.cfg.Report.Write(report.Event{Kind: report.Ready, Gateway: string(p.cfg.ID)})
	}
}

// look waits until it is time for another look; false: ctx has ended.
func look(ctx context.Context) bool {
	timer := time.NewTimer(outlook)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
