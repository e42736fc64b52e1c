// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/evenring/evenring/ring"
)

// Result is what a run came to.
type Result struct {
	Config    Config
	Spread    int // most minus fewest served at the end
	Peak      int // the most that any gateway served at any moment
	Moves     int
	MaxMoves  int // of any supervisor
	Settled   int // moves of the settle at the end
	Decisions int
	Asks      int           // questions put to gateways
	Placing   time.Duration // processor time of the decisions, together with what surrounds them: names, answers, counts, lists
	Took      time.Duration // the whole run, with its rings
	Bytes     uint64        // of memory that the fleet takes
	Phases    []Phase
	Samples   []Sample // from the start to the end
	Broken    []string // promises that did not hold, in words; empty: all held
}

// OverFair returns the peak as a multiple of the even share of all supervisors on all gateways.
func (r Result) OverFair() float64 {
	return float64(r.Peak) * float64(r.Config.Gateways) / float64(r.Config.Supervisors)
}

// NanosecondsPerDecision returns the mean.
func (r Result) NanosecondsPerDecision() float64 {
	return float64(r.Placing.Nanoseconds()) / float64(max(1, r.Decisions))
}

// BytesPerSupervisor returns the memory that the fleet takes, gateways included, for each supervisor.
func (r Result) BytesPerSupervisor() float64 {
	return float64(r.Bytes) / float64(r.Config.Supervisors)
}

// Phase is one part of a plan, as it has ended.
type Phase struct {
	Name      string
	Gateways  int
	Served    int
	Fewest    int
	Most      int
	Decisions int // in this phase
	Moves     int
}

// Run carries a plan out. progress, which may be nil, is told the number of decisions so
// far every now and then. The error is that of a bad configuration, or the cause of
// ctx if that ends first; a broken promise is none.
func Run(ctx context.Context, cfg Config, progress func(decisions int)) (Result, error) {
	if err := cfg.Validate(); err != nil {
		return Result{}, err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began, before := time.Now(), heap()
	r := newRun(ctx, cfg, progress)
	defer r.forge.close()
	for a := range cfg.acts() {
		if err := r.act(a); err != nil {
			return Result{}, err
		}
	}
	r.end()
	r.forge.close() // nothing of it counts as memory of the fleet
	r.out.Bytes = max(heap(), before) - before
	runtime.KeepAlive(r.fleet)
	r.out.Took = time.Since(began)
	return r.out, nil
}

// heap returns the bytes that are in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // what is kept for use again goes with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// run is a plan under way.
type run struct {
	cfg    Config
	fleet  *fleet
	forge  *forge
	every  int  // a sample is taken once in so many decisions
	during bool // the act under way may be sampled before it is over
	begun  Phase
	out    Result
}

// newRun returns a run that has not begun. Its forge is to be closed.
func newRun(ctx context.Context, cfg Config, progress func(decisions int)) *run {
	r := &run{cfg: cfg, every: max(1, cfg.Decisions()/samples), out: Result{Config: cfg}, forge: newForge(ctx, cfg.circles())}
	r.fleet = newFleet(cfg.Supervisors, cfg.Seed, func() error {
		if progress != nil {
			progress(r.fleet.decisions)
		}
		if r.during {
			r.sample(false)
		}
		return context.Cause(ctx)
	})
	return r
}

// act carries one act out.
func (r *run) act(a act) error {
	circles := make([]*ring.Ring, a.kind.circles())
	for i := range circles {
		var err error
		if circles[i], err = r.forge.next(); err != nil {
			return err
		}
	}
	r.phase(a.phase)
	r.during = a.kind == arrive || a.kind == comeBack || a.kind == crash
	f := r.fleet
	var err error
	began, decisions := spent(), f.decisions
	switch a.kind {
	case start:
		f.start(a.ids, circles[0])
	case stop:
		err = f.stop(a.ids[0], circles[0])
	case crash:
		err = f.crash(a.ids, circles[0])
	case arrive:
		err = f.arrive(a.count)
	case comeBack:
		err = f.comeBack()
	case split:
		f.split(circles[0], circles[1])
	case heal:
		f.heal(circles[0])
	case settle:
		r.keep()
		before := f.moved
		err = f.settle()
		r.out.Settled = f.moved - before
	}
	if f.decisions > decisions {
		r.out.Placing += spent() - began
	}
	if err != nil {
		return err
	}
	r.after(a)
	return nil
}

// phase begins a phase, unless it is under way.
func (r *run) phase(name string) {
	if r.begun.Name == name {
		return
	}
	if r.begun.Name != "" {
		r.sample(true)
	}
	r.begun = Phase{Name: name, Decisions: r.fleet.decisions, Moves: r.fleet.moved}
	r.out.Phases = append(r.out.Phases, Phase{Name: name})
}

// after looks at the fleet after an act.
func (r *run) after(a act) {
	f := r.fleet
	p := &r.out.Phases[len(r.out.Phases)-1]
	p.Gateways, p.Served, p.Fewest, p.Most = f.extent(nil)
	p.Decisions, p.Moves = f.decisions-r.begun.Decisions, f.moved-r.begun.Moves
	if a.even {
		for _, s := range f.sides {
			if _, _, fewest, most := f.extent(s); most-fewest > 1 {
				f.faults.add("%s: a gateway serves %d and another %d", a.phase, fewest, most)
			}
		}
	}
	switch {
	case len(f.numbers) <= Lines, len(r.out.Samples) == 0:
		r.sample(true)
	case a.rest:
		r.sample(false)
	}
}

// keep looks whether the plan has kept its promise.
func (r *run) keep() {
	f, p := r.fleet, r.cfg.promise()
	f.audit()
	if most := int(slices.Max(f.moves)); most > p.each {
		f.faults.add("a supervisor moved %d times: %d is the most", most, p.each)
	}
	if p.all >= 0 && f.moved != p.all {
		f.faults.add("%d moves: it takes %d", f.moved, p.all)
	}
	if id := gatewayID(r.cfg.Gateways - 1); p.emptied && f.gateways[f.numbers[id]].Load() > 0 {
		f.faults.add("%s has started last, and serves %d: somebody moved because it started", id, f.gateways[f.numbers[id]].Load())
	}
}

// end takes the figures.
func (r *run) end() {
	f := r.fleet
	if r.cfg.Settle {
		f.audit()
	} else {
		r.keep()
	}
	r.sample(true)
	_, _, fewest, most := f.extent(nil)
	r.out.Spread, r.out.Peak = most-fewest, f.peak
	r.out.Moves, r.out.MaxMoves = f.moved, int(slices.Max(f.moves))
	r.out.Decisions, r.out.Asks = f.decisions, f.asks
	r.out.Broken = f.faults.all()
}
