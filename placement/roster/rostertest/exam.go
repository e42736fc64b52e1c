// SPDX-License-Identifier: Apache-2.0

package rostertest

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/ring"
)

// exam is one trial of one network: the nodes, and what they ought to agree on.
type exam struct {
	t        testing.TB
	join     Join
	patience time.Duration
	weather  atomic.Pointer[weather]
	nodes    map[ring.GatewayID]*node // those that live; the examiner's alone
	rng      *rand.Rand               // likewise
	starts   placement.Incarnation    // likewise
	claims   placement.Generation     // likewise

	mu     sync.Mutex
	faults []string // of the transport's, found on its own goroutines
}

func newExam(t testing.TB, join Join, patience time.Duration) *exam {
	e := &exam{t: t, join: join, patience: patience, nodes: make(map[ring.GatewayID]*node), rng: rand.New(rand.NewPCG(1, 1))}
	e.weather.Store(&weather{})
	t.Cleanup(func() {
		for _, id := range e.ids() {
			e.kill(id)
		}
		e.report()
	})
	return e
}

// fault notes what the transport did wrong. It may be called by anybody.
func (e *exam) fault(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	const enough = 10
	if text := fmt.Sprintf(format, args...); len(e.faults) < enough && !slices.Contains(e.faults, text) {
		e.faults = append(e.faults, text)
	}
}

// report tells the faults so far, and whether there were any.
func (e *exam) report() bool {
	e.t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, text := range e.faults {
		e.t.Errorf("rostertest: %s", text)
	}
	found := len(e.faults) > 0
	e.faults = nil
	return found
}

func (e *exam) ids() []ring.GatewayID { return slices.Sorted(maps.Keys(e.nodes)) }

func gatewayID(i int) ring.GatewayID { return ring.GatewayID(fmt.Sprintf("gw-%d", i)) }

// start starts a gateway that serves nobody yet.
func (e *exam) start(id ring.GatewayID) *node {
	e.t.Helper()
	e.starts++
	n := &node{
		exam:        e,
		id:          id,
		incarnation: e.starts,
		truth:       make(map[ring.MemberID]roster.Entry),
		wake:        make(chan struct{}, 1),
		rng:         rand.New(rand.NewPCG(2, uint64(e.starts))),
	}
	var err error
	n.roster, err = roster.New(time.Now(), roster.Config{
		Gateway:     id,
		Incarnation: n.incarnation,
		Endpoint:    endpoint(id, n.incarnation),
		Heartbeat:   heartbeat,
		TimeToLive:  forget,
		Batch:       batch,
	})
	if err != nil {
		e.t.Fatalf("rostertest: %v", err)
	}
	n.transport, n.stop = e.join(e.t, Node{Gateway: id, Incarnation: n.incarnation, Replica: n})
	e.nodes[id] = n
	ctx, cancel := context.WithCancel(context.Background())
	n.cancel = cancel
	n.running.Go(func() { n.run(ctx) })
	n.state = placement.Ready
	n.do(roster.StateChanged{State: n.state})
	return n
}

func endpoint(id ring.GatewayID, inc placement.Incarnation) string {
	return fmt.Sprintf("%s.%d:443", id, inc)
}

func (e *exam) startAll() {
	e.t.Helper()
	for i := range gateways {
		e.start(gatewayID(i))
	}
}

func (e *exam) kill(id ring.GatewayID) {
	n := e.nodes[id]
	delete(e.nodes, id)
	n.kill()
}

// attach attaches a member with a generation above all others.
func (e *exam) attach(n *node, m ring.MemberID) {
	e.claims++
	n.truth[m] = roster.Entry{Member: m, Generation: e.claims}
	n.do(roster.Attached{Member: m, Generation: e.claims})
}

// churn lets members come, break off, go and move, and now and then a gateway
// drain or come back, for a few heartbeats.
func (e *exam) churn() {
	e.t.Helper()
	const rounds, changes = 40, 10
	for range rounds {
		for range changes {
			e.change()
		}
		e.pause(2 * batch)
	}
}

func (e *exam) change() {
	const members = 60
	ids := e.ids()
	n := e.nodes[ids[e.rng.IntN(len(ids))]]
	m := ring.MemberID(fmt.Sprintf("member-%d", e.rng.IntN(members)))
	entry, served := n.truth[m]
	switch what := e.rng.IntN(20); {
	case what == 0:
		n.state = placement.Ready
		if e.rng.IntN(2) == 0 {
			n.state = placement.Draining
		}
		n.do(roster.StateChanged{State: n.state})
	case what < 10 || !served:
		e.attach(n, m)
	case what < 14:
		entry.Held = true
		n.truth[m] = entry
		n.do(roster.Held{Member: m, Generation: entry.Generation})
	default:
		delete(n.truth, m)
		n.do(roster.Left{Member: m, Generation: entry.Generation})
	}
}

// pause lets the nodes work for a while.
func (e *exam) pause(d time.Duration) {
	e.t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-e.t.Context().Done():
		e.t.Fatalf("rostertest: %v", e.t.Context().Err())
	}
}

// eventually waits until wrong returns nothing, and fails with what it returned last.
func (e *exam) eventually(wrong func() string) {
	e.t.Helper()
	by, next := time.Now().Add(e.patience), batch
	for ; ; e.pause(next) {
		next = min(2*next, heartbeat)
		text := wrong()
		if text == "" {
			return
		}
		if e.report() {
			e.t.FailNow()
		}
		if time.Now().After(by) {
			e.t.Fatalf("rostertest: after %v %s", e.patience, text)
		}
	}
}

// agree waits until every roster shows the truth.
func (e *exam) agree() {
	e.t.Helper()
	e.weather.Store(&weather{})
	for _, n := range e.nodes {
		n.stir()
	}
	e.eventually(e.disagreement)
	if e.report() {
		e.t.FailNow()
	}
}

// disagreement says where a roster differs from the truth, if one does.
func (e *exam) disagreement() string {
	for _, id := range e.ids() {
		if text := e.nodes[id].disagreement(e); text != "" {
			return text
		}
	}
	return ""
}

func (n *node) disagreement(e *exam) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, id := range e.ids() {
		if text := n.differs(e.nodes[id]); text != "" {
			if n.refused != nil {
				text += fmt.Sprintf("; the transport of %s last refused a message: %v", n.id, n.refused)
			}
			return text
		}
	}
	if all := slices.Collect(n.roster.Gateways()); len(all) != len(e.nodes) {
		return fmt.Sprintf("%s knows %d gateways, and there are %d", n.id, len(all), len(e.nodes))
	}
	return ""
}

// differs says how n sees another gateway wrongly. It is called under n's lock.
func (n *node) differs(other *node) string {
	g, known := n.roster.Gateway(other.id)
	if !known {
		return fmt.Sprintf("%s does not know %s", n.id, other.id)
	}
	at := endpoint(other.id, other.incarnation)
	if g.Incarnation != other.incarnation || g.State != other.state || g.Endpoint != at || g.Suspect {
		return fmt.Sprintf("%s has %s as %d, %v, at %q, suspect %t; it is %d, %v, at %q",
			n.id, other.id, g.Incarnation, g.State, g.Endpoint, g.Suspect, other.incarnation, other.state, at)
	}
	matching, extra := 0, 0
	for entry := range n.roster.Members(other.id) {
		if want, ok := other.truth[entry.Member]; ok && want == entry {
			matching++
		} else {
			extra++
		}
	}
	if missing := len(other.truth) - matching; missing > 0 || extra > 0 {
		return fmt.Sprintf("%s has %d of %d members of %s, and %d that are not so", n.id, matching, len(other.truth), other.id, extra)
	}
	return ""
}
