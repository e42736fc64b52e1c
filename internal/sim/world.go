// SPDX-License-Identifier: Apache-2.0

// Package sim runs a fleet on one virtual clock: the real machines of
// gateways, supervisors, sessions and callers, of drains and settles, and a
// network of its own. There are no goroutines and no real time; one seed
// decides everything.
//
// A [World] may lose, repeat and delay what is said ([Links], [World.Cut]), let
// a process stand still, and give every machine a [Clock] of its own. A [Watch]
// holds what happens against the [Invariant]s, and a [Spoil] plants faults for it to find.
package sim

import (
	"cmp"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/supervisor"
	"github.com/evenring/evenring/ring"
)

// Service is the address of the load balancer.
const Service = "service"

// Config shapes a world. The zero value of a field is its default.
type Config struct {
	Seed       uint64
	MinLatency time.Duration // one way; 0: 1 ms
	MaxLatency time.Duration // one way; 0: 20 ms
	NoAsks     bool          // there is no peer link to ask over

	Gateway    func(*redirect.Config)   // changes a gateway's config before it starts
	Supervisor func(*supervisor.Config) // changes a supervisor's
}

// World is a fleet and its network. Not safe for concurrent use.
type World struct {
	cfg   Config
	start time.Time
	now   time.Time
	queue queue
	seq   uint64
	steps uint64 // so far
	rnd   *rand.Rand

	Gateways    map[ring.GatewayID]*Gateway
	Supervisors map[ring.MemberID]*Supervisor
	Mute        bool                                     // no roster message arrives from now on
	Hold        bool                                     // roster messages wait for Refresh from now on
	Trace       func(at time.Duration, who, what string) // may be nil
	Adopted     func(*Supervisor)                        // a gateway has accepted it; may be nil
	Reached     func(*Gateway)                           // a hello has come to a gateway that lives; may be nil
	Conflict    func(*Gateway)                           // it has heard that another process has its ID; may be nil
	Delisted    func(*Gateway)                           // it has heard that discovery has it no more; may be nil
	Rejected    func(*Gateway, roster.Rejected)          // it has ignored a word; may be nil
	Said        func(m roster.Message, bytes int)        // a gateway has said something to another; may be nil
	Links       Links
	Clocks      map[string]Clock // of gateways and supervisors, by ID; read when one starts
	Discovery   bool             // gateways are told who there is whenever one comes
	Obituaries  bool             // and whenever one goes
	Glance      time.Duration    // how often a gateway that settles looks at the fleet; 0: 20 ms
	Spoil       Spoil
	Watch       *Watch // holds what happens against the invariants; may be nil

	ids       []ring.GatewayID // of Gateways, ascending
	elders    []*Gateway       // that another process has replaced while they lived
	held      []letter         // messages that wait
	cuts      map[pair]int
	lastStart placement.Incarnation
}

// New makes an empty world at its time zero.
func New(cfg Config) *World {
	if cfg.MinLatency == 0 {
		cfg.MinLatency = time.Millisecond
	}
	if cfg.MaxLatency == 0 {
		cfg.MaxLatency = max(cfg.MinLatency, 20*time.Millisecond)
	}
	start := time.Unix(1_000_000_000, 0).UTC()
	return &World{
		cfg: cfg, start: start, now: start, rnd: rand.New(rand.NewPCG(cfg.Seed, 0)),
		Gateways: make(map[ring.GatewayID]*Gateway), Supervisors: make(map[ring.MemberID]*Supervisor),
		Clocks: make(map[string]Clock), cuts: make(map[pair]int),
	}
}

// Elapsed returns the virtual time since the start.
func (w *World) Elapsed() time.Duration { return w.now.Sub(w.start) }

// Now returns the virtual time.
func (w *World) Now() time.Time { return w.now }

// Run lets so much virtual time pass.
func (w *World) Run(d time.Duration) {
	end := w.now.Add(d)
	for len(w.queue) > 0 && !w.queue[0].at.After(end) {
		w.next()
	}
	w.now = end
}

// Until runs until the condition holds, and reports whether it did within d.
func (w *World) Until(d time.Duration, holds func() bool) bool {
	end := w.now.Add(d)
	for !holds() {
		if len(w.queue) == 0 || w.queue[0].at.After(end) {
			w.now = end
			return holds()
		}
		w.next()
	}
	return true
}

func (w *World) next() {
	e := heap.Pop(&w.queue).(event)
	w.now = e.at
	w.steps++
	e.do()
}

// After schedules f: a part of the story that begins later.
func (w *World) After(d time.Duration, f func()) { w.after(d, f) }

// after schedules f.
func (w *World) after(d time.Duration, f func()) { w.at(w.now.Add(d), f) }

// at schedules f; what is overdue comes next.
func (w *World) at(t time.Time, f func()) {
	if t.Before(w.now) {
		t = w.now
	}
	w.seq++
	heap.Push(&w.queue, event{at: t, seq: w.seq, do: f})
}

// trace formats only if somebody listens.
func (w *World) trace(who, format string, args ...any) {
	if w.Trace != nil {
		w.Trace(w.Elapsed(), who, fmt.Sprintf(format, args...))
	}
}

// Refresh brings every view up to date at this moment: all gateways tell what
// has gathered for a batch, and what was held arrives, in the order in which it was sent.
func (w *World) Refresh() {
	for _, id := range w.ids {
		g := w.Gateways[id]
		g.feed(roster.Tick{})
	}
	held := w.held
	w.held = nil
	for _, l := range held {
		l.arrive()
	}
}

// pick is the load balancer: a gateway that is in the Service, at random.
func (w *World) pick() *Gateway {
	var in []*Gateway
	for _, id := range w.ids {
		if g := w.Gateways[id]; g.InService {
			in = append(in, g)
		}
	}
	if len(in) == 0 {
		return nil
	}
	return in[w.rnd.IntN(len(in))]
}

// GatewayIDs returns every gateway that was started, in ID order.
func (w *World) GatewayIDs() []ring.GatewayID { return slices.Clone(w.ids) }

// MemberIDs returns every supervisor that was started, in ID order.
func (w *World) MemberIDs() []ring.MemberID { return sorted(w.Supervisors) }

// Served returns how many supervisors each live gateway serves, as the gateway counts.
func (w *World) Served() map[ring.GatewayID]int {
	served := make(map[ring.GatewayID]int)
	for id, g := range w.Gateways {
		if g.Alive {
			served[id] = len(g.Admission.Supervisors())
		}
	}
	return served
}

// Spread returns most minus fewest served, over the live gateways that do not drain.
func (w *World) Spread() int {
	lo, hi := -1, 0
	for id, n := range w.Served() {
		if w.Gateways[id].drain != nil {
			continue
		}
		if lo < 0 || n < lo {
			lo = n
		}
		hi = max(hi, n)
	}
	return hi - max(lo, 0)
}

// Settled reports whether every running supervisor has exactly one stream,
// with nothing under way, and its gateway agrees.
func (w *World) Settled() bool {
	total := 0
	for _, s := range w.Supervisors {
		if !s.running {
			continue
		}
		total++
		g := w.Gateways[s.Machine.Home().Gateway]
		if s.Machine.State() != supervisor.Attached || len(s.streams) != 1 || g == nil || !g.Alive {
			return false
		}
	}
	for _, n := range w.Served() {
		total -= n
	}
	return total == 0
}

func sorted[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

type event struct {
	at  time.Time
	seq uint64
	do  func()
}

// queue is a min-heap by time, then by order of scheduling.
type queue []event

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	if !q[i].at.Equal(q[j].at) {
		return q[i].at.Before(q[j].at)
	}
	return q[i].seq < q[j].seq
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(event)) }
func (q *queue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}
