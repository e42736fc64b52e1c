// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evenring/evenring/examples/internal/child"
)

// look is how often the fleet is asked whether it is at rest.
const look = 100 * time.Millisecond

// steadyFor is how long the processes are watched for the least that they have open.
const steadyFor = time.Second

// rest is how the fleet came to rest, or did not.
type rest struct {
	attached time.Time // when the last supervisor or session was accepted; zero: not all are
	agreed   time.Time // when all rosters were found to be the same; zero: they are not
	over     usage     // what a process had open beyond its bill, at most
	why      []string  // what did not hold, though the fleet is at rest
}

// rest waits until everybody is served, all gateways agree, and no process has more open than
// what it holds explains. An error says that it does not come to that.
func (h *havoc) rest(ctx context.Context) (rest, error) {
	var r rest
	if err := h.everybodyServed(ctx); err != nil {
		return r, err
	}
	r.attached = h.board.lastEvent()
	late, err := h.agree(ctx)
	if err != nil {
		return r, err
	}
	r.agreed, r.why = time.Now(), late
	why, err := h.tidy(ctx, &r)
	r.why = append(r.why, why...)
	return r, err
}

// everybodyServed waits until everybody is, which must be within attachedWithin, and which
// will not be if a process has ended that was not told to.
func (h *havoc) everybodyServed(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, attachedWithin, fmt.Errorf("not after %v", attachedWithin))
	defer cancel()
	var gone []string
	err := h.until(ctx, func() []string {
		if gone = h.ended(); len(gone) > 0 {
			return nil
		}
		f := h.board.read()
		if why := f.astray(); len(why) > 0 {
			return why
		}
		if f.quiet < quietFor {
			return []string{"supervisors and sessions still move"}
		}
		return h.compareGauges(ctx, f)
	})
	return errors.Join(sayAll(gone), err)
}

// astray says who is not served, or not where it should be.
func (f figures) astray() []string {
	var why []string
	if f.lost > 0 {
		why = append(why, fmt.Sprintf("%d supervisors have no stream", f.lost))
	}
	if n := f.missing + f.misplaced; n > 0 {
		why = append(why, fmt.Sprintf("%d sessions are not where their supervisor is", n))
	}
	return why
}

// agree waits until all gateways are ready and their rosters the same. It returns who lists gateways that have
// ended too long ago.
func (h *havoc) agree(ctx context.Context) (late []string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, agreedWithin, fmt.Errorf("not after %v", agreedWithin))
	defer cancel()
	err = h.until(ctx, func() []string {
		pages, err := h.rosters(ctx)
		if err != nil {
			return []string{err.Error()}
		}
		late, _ = ghosts(pages, h.couldForget, time.Now())
		return slices.Concat(disagreements(pages, h.board.places()), h.unready(ctx), h.unseen(ctx))
	})
	return late, err
}

// forgetGhosts waits until nobody lists a gateway that has ended.
func (h *havoc) forgetGhosts(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, agreedWithin, fmt.Errorf("not after %v", agreedWithin))
	defer cancel()
	return h.until(ctx, func() []string {
		pages, err := h.rosters(ctx)
		if err != nil {
			return []string{err.Error()}
		}
		late, listed := ghosts(pages, h.couldForget, time.Now())
		if listed && len(late) == 0 {
			return []string{"gateways that have ended are listed"}
		}
		return late
	})
}

// tidy asks everybody, and then waits until no process has more open than what it holds explains.
func (h *havoc) tidy(ctx context.Context, r *rest) (why []string, err error) {
	defer h.hush()()
	if err := h.askEverybody(ctx); err != nil {
		why = append(why, err.Error())
	}
	ctx, cancel := context.WithTimeoutCause(ctx, h.tidyFor, fmt.Errorf("not after %v", h.tidyFor))
	defer cancel()
	var gateways, hosts []sample
	var open []string
	_ = h.until(ctx, func() []string { // what speaks against it in the end is in open
		g, s, failed := h.samples(ctx)
		if failed != nil {
			return []string{failed.Error()}
		}
		gateways, hosts = g, s
		open = h.bill.judge(slices.Concat(g, s), slack)
		return open
	})
	if len(gateways) == 0 {
		return nil, fmt.Errorf("nobody says what is open: %w", context.Cause(ctx))
	}
	// A link leads to whoever serves somebody: only if all do have all been made.
	linked := !slices.ContainsFunc(gateways, func(s sample) bool { return s.served == 0 })
	r.over = h.bill.note(gateways, h.gatewaysOpen, linked).most(h.bill.note(hosts, h.hostsOpen, true))
	return append(why, open...), nil
}

// steady reads the least that every process has open while steadyFor passes: what comes and goes is not counted.
func (h *havoc) steady(ctx context.Context) (gateways, hosts []sample, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, tidyWithin, fmt.Errorf("not after %v", tidyWithin))
	defer cancel()
	var since time.Time
	err = h.until(ctx, func() []string {
		g, s, err := h.samples(ctx)
		if err != nil {
			return []string{err.Error()}
		}
		if !lower(gateways, g) || !lower(hosts, s) {
			gateways, hosts, since = g, s, time.Now()
		}
		if time.Since(since) < steadyFor {
			return []string{"what the processes have open still changes"}
		}
		return nil
	})
	return gateways, hosts, err
}

// until looks until nothing speaks against it. The error has what did last.
func (f *fleet) until(ctx context.Context, against func() []string) error {
	tick := time.NewTicker(look)
	defer tick.Stop()
	var last []string
	for {
		why := against()
		if len(why) == 0 {
			return nil
		}
		if ctx.Err() == nil {
			last = why
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", strings.Join(last[:min(len(last), shown)], "; "), context.Cause(ctx))
		}
	}
}

// ended says which processes have ended that were not told to.
func (f *fleet) ended() []string {
	supervisors, gateways := f.processes()
	var why []string
	for _, p := range slices.Concat(supervisors, gateways) {
		if over, err := hasEnded(p); over {
			why = append(why, fmt.Sprintf("%s has ended, and nobody told it to: %v", p.Name, err))
		}
	}
	return why
}

func hasEnded(p *child.Process) (bool, error) {
	select {
	case <-p.Done:
		return true, errors.Join(p.Err)
	default:
		return false, nil
	}
}
