// SPDX-License-Identifier: Apache-2.0

package roster

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// Two variables say which random runs there are: EVENRING_SEEDS how many, and
// EVENRING_SEED that it is this one alone.

// eachSeed runs f for seeds from 0 on, n of them by default, in a few parallel
// subtests. Whoever fails says how to run that seed again.
func eachSeed(t *testing.T, n uint64, f func(t *testing.T, seed uint64)) {
	t.Helper()
	number := func(name string, otherwise uint64) uint64 {
		text := os.Getenv(name)
		if text == "" {
			return otherwise
		}
		v, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, name)
		return v
	}
	name := t.Name()
	one := func(t *testing.T, seed uint64) {
		over := false
		defer func() {
			if !over {
				t.Logf("again: EVENRING_SEED=%d go test ./placement/roster -run '^%s$'", seed, name)
			}
		}()
		f(t, seed)
		over = true
	}
	if os.Getenv("EVENRING_SEED") != "" {
		one(t, number("EVENRING_SEED", 0))
		return
	}
	n = number("EVENRING_SEEDS", n/fewer)
	lanes := uint64(runtime.GOMAXPROCS(0))
	t.Logf("%d seeds from 0 on", n)
	for lane := range lanes {
		t.Run(fmt.Sprintf("lane=%d", lane), func(t *testing.T) {
			t.Parallel()
			for seed := lane; seed < n; seed += lanes {
				one(t, seed)
			}
		})
	}
}

// truth is what a gateway's record ought to be.
type truth struct {
	incarnation placement.Incarnation
	state       placement.State
	reserved    int
	members     map[ring.MemberID]Entry
	digests     []uint64 // of the members after each number, from 0 on
	exact       bool     // deltas are not cut, so that every copy's members are those of its number
}

// chaos is a fleet with a model beside it.
type chaos struct {
	*fleet
	truth      map[ring.GatewayID]*truth
	generation placement.Generation
	names      []ring.MemberID
	slice      int  // how many members are put on pages in one step
	haste      int  // one in so many steps delivers what is under way
	talk       bool // links come and go, and hints are told
	seen       map[[2]ring.GatewayID]placement.Counts
}

// newChaos starts a fleet under the laws of a seed: how much is lost, doubled
// and overtaken, and how small a message and an outbox are.
func newChaos(t *testing.T, seed uint64, gateways int) *chaos {
	f := newFleet(t)
	f.rng = rand.New(rand.NewPCG(seed, 0))
	f.loss, f.twice = 0.6*f.rng.Float64(), 0.3*f.rng.Float64()
	f.change = func(c *Config) {
		if seed%2 == 0 {
			c.PageBytes, c.Outbox = minPageBytes, 16
		}
		if seed%3 == 0 && f.rng.IntN(3) == 0 {
			c.Ring.Slots = 11 // by mistake
		}
	}
	c := &chaos{
		fleet: f,
		truth: make(map[ring.GatewayID]*truth),
		slice: 1 + f.rng.IntN(20),
		haste: 1 + f.rng.IntN(4),
		talk:  f.rng.IntN(2) == 0,
		seen:  make(map[[2]ring.GatewayID]placement.Counts),
	}
	for i := range 40 {
		c.names = append(c.names, ring.MemberID(fmt.Sprintf("member-%d-%030d", i, 0)))
	}
	for i := range gateways {
		c.boot(ring.GatewayID(fmt.Sprintf("gw-%d", i)), 1)
	}
	return c
}

func (c *chaos) boot(id ring.GatewayID, inc placement.Incarnation) {
	c.start(id, inc)
	c.nodes[id].slice = c.slice
	c.truth[id] = &truth{
		incarnation: inc,
		members:     make(map[ring.MemberID]Entry),
		digests:     []uint64{0},
		exact:       c.nodes[id].cfg.PageBytes == defaultPageBytes,
	}
	for _, of := range c.ids() {
		delete(c.seen, [2]ring.GatewayID{id, of})
	}
}

// do is a step of a gateway's own, noted in its history.
func (c *chaos) do(id ring.GatewayID, ev Event) []Action {
	actions := c.step(id, ev)
	own, self := c.truth[id], c.nodes[id].self
	for uint64(len(own.digests)) <= self.have {
		own.digests = append(own.digests, self.digest)
	}
	return actions
}

// look checks what may never happen, whatever is under way: a record goes back,
// or shows what its gateway never was.
func (c *chaos) look(at ring.GatewayID) {
	r := c.nodes[at]
	for _, rec := range r.sorted {
		of := c.truth[rec.id]
		pair := [2]ring.GatewayID{at, rec.id}
		now := placement.Counts{Incarnation: rec.incarnation, Sequence: rec.have}
		if before := c.seen[pair]; before != now {
			if before.Newer(now) {
				require.Fail(c.t, "went back", "%s's copy of %s from %v to %v", at, rec.id, before, now)
			}
			c.seen[pair] = now
		}
		if of.exact && rec.incarnation == of.incarnation && rec.digest != of.digests[rec.have] {
			require.Fail(c.t, "never so", "%s's copy of %s at %d", at, rec.id, rec.have)
		}
	}
}

// act does one random thing.
func (c *chaos) act() {
	ids := c.ids()
	id := ids[c.rng.IntN(len(ids))]
	own := c.truth[id]
	m := c.names[c.rng.IntN(len(c.names))]
	switch what := c.rng.IntN(20); what {
	case 0, 1, 2, 3, 4:
		c.generation++
		own.members[m] = Entry{Member: m, Generation: c.generation}
		c.do(id, Attached{Member: m, Generation: c.generation})
	case 5, 6:
		if e, ok := own.members[m]; ok {
			e.Held = true
			own.members[m] = e
			c.do(id, Held{Member: m, Generation: e.Generation})
		}
	case 7, 8:
		if e, ok := own.members[m]; ok {
			delete(own.members, m)
			c.do(id, Left{Member: m, Generation: e.Generation})
		}
	case 9:
		if e, ok := own.members[m]; ok {
			c.do(id, Left{Member: m, Generation: e.Generation - 1})
			c.do(id, Attached{Member: m, Generation: e.Generation - 1})
		}
	case 10:
		own.reserved = c.rng.IntN(5)
		c.do(id, Reserved{Count: own.reserved})
	case 11:
		own.state = placement.State(c.rng.IntN(3))
		c.do(id, StateChanged{State: own.state})
	case 12:
		if c.rng.IntN(8) == 0 {
			c.boot(id, own.incarnation+1)
		}
	case 13, 14, 15:
		other := ids[c.rng.IntN(len(ids))]
		switch {
		case !c.talk:
		case what == 13:
			c.step(id, LinkLost{Gateway: other})
		case what == 14:
			c.step(id, LinkUp{Gateway: other})
		default:
			c.step(id, Hinted{Reports: c.nodes[other].Reports()})
		}
	default:
		c.now = c.now.Add(time.Duration(c.rng.Int64N(int64(500 * time.Millisecond))))
		for _, id := range ids {
			if due, ok := c.nodes[id].Deadline(); ok && !c.now.Before(due) {
				c.step(id, Tick{})
			}
		}
	}
	for len(c.queue) > 0 && c.rng.IntN(c.haste+1) > 0 {
		i := c.rng.IntN(len(c.queue))
		to := c.queue[i].to
		c.deliver(i)
		c.look(to)
	}
}

// agree checks every record in every roster against the truth.
func (c *chaos) agree(when string) {
	ids := c.ids()
	for _, id := range ids {
		r := c.nodes[id]
		for _, of := range ids {
			want, g := c.truth[of], gateway(c.t, r, of)
			if got := members(r, of); !maps.Equal(want.members, got) {
				require.Equal(c.t, want.members, got, "%s: members of %s as %s sees them", when, of, id)
			}
			endpoint := fmt.Sprintf("%s.%d:443", of, want.incarnation)
			if g.State != want.state || g.Endpoint != endpoint || g.Reserved != want.reserved || g.Suspect ||
				r.counts(r.byID[of]) != c.nodes[of].counts(c.nodes[of].self) {
				require.Fail(c.t, "disagree", "%s: %s as %s sees it: %+v", when, of, id, g)
			}
		}
		var others []ring.GatewayID
		for _, of := range ids {
			if c.nodes[of].cfg.Ring != r.cfg.Ring {
				others = append(others, of)
			}
		}
		require.Equal(c.t, others, slices.Collect(r.Disagreeing()), "%s: whose rings %s finds to be others", when, id)
		require.Equal(c.t, c.nodes[ids[0]].Live(), r.Live(), when)
	}
}

// flow lets what is under way arrive in any order and loses nothing any more,
// for as long as a heartbeat and a snapshot take.
func (c *chaos) flow() {
	for len(c.queue) > 0 {
		c.deliver(c.rng.IntN(len(c.queue)))
	}
	c.loss, c.twice = 0, 0
	r := c.nodes["gw-0"]
	c.run(r.cfg.Heartbeat + r.patience() + 3*r.cfg.Batch)
}

// Whatever is lost, doubled, overtaken or restarted: once messages flow, a
// heartbeat and a snapshot later all agree; and nothing that was ever said
// before changes that.
func TestConverges(t *testing.T) {
	t.Parallel()
	eachSeed(t, 10_000, func(t *testing.T, seed uint64) {
		c := newChaos(t, seed, 5)
		acts := 60
		if seed%50 == 0 {
			acts = 600
		}
		for range acts {
			c.act()
		}
		c.flow()
		c.agree("after a heartbeat and a snapshot")

		old := c.sent
		c.rng.Shuffle(len(old), func(i, j int) { old[i], old[j] = old[j], old[i] })
		for _, e := range old[:min(len(old), 200)] {
			c.hand(e)
			c.look(e.to)
		}
		c.queue = nil // what it made them say
		c.agree("after everything old was said again")
		if seed%50 == 0 {
			for _, id := range c.ids() {
				audit(t, c.nodes[id])
			}
		}
	})
}

// {gw-0, gw-1} and gw-2 are cut off from each other for a while, on both sides
// supervisors come, go and turn up that the other side has, and the two come
// together again. Nobody is made to move by that; of two claims on one
// member, the one of the higher generation is right.
func TestPartition(t *testing.T) {
	t.Parallel()
	eachSeed(t, 500, func(t *testing.T, seed uint64) {
		c := newChaos(t, seed, 3)
		c.loss, c.twice, c.talk = 0, 0, false
		ids := c.ids()
		for _, id := range ids {
			c.truth[id].state = placement.Ready
			c.do(id, StateChanged{placement.Ready})
			c.step(id, Discovered{Gateways: ids})
		}
		attach := func(n int) {
			for range n {
				id, m := ids[c.rng.IntN(len(ids))], c.names[c.rng.IntN(len(c.names))]
				c.generation++
				c.truth[id].members[m] = Entry{Member: m, Generation: c.generation}
				c.do(id, Attached{m, c.generation})
				c.run(time.Duration(c.rng.Int64N(int64(time.Second))))
			}
		}
		attach(20)
		c.run(time.Second)

		c.cut = func(from, to ring.GatewayID) bool { return (from == "gw-2") != (to == "gw-2") }
		switch told := c.rng.IntN(3); told {
		case 1: // of the links, by the transport
			for _, id := range ids[:2] {
				c.step(id, LinkLost{"gw-2"})
				c.step("gw-2", LinkLost{id})
			}
		case 2: // by discovery, as far as it is at hand
			c.step("gw-2", DiscoveryFailed{})
		}
		attach(c.rng.IntN(20))
		c.run(time.Duration(c.rng.Int64N(int64(2 * time.Minute))))
		require.Equal(t, ids, known(c.nodes["gw-2"]), "gw-2 hears nobody, and so it purges nobody")
		attach(c.rng.IntN(20))
		homes := func() map[ring.MemberID]string {
			want := make(map[ring.MemberID]string)
			highest := make(map[ring.MemberID]placement.Generation)
			for _, id := range ids {
				for m, e := range c.truth[id].members {
					if e.Generation > highest[m] {
						highest[m], want[m] = e.Generation, fmt.Sprintf("%s gen %d", id, e.Generation)
					}
				}
			}
			return want
		}
		check := func(when string) {
			t.Helper()
			c.agree(when)
			for m, want := range homes() {
				for _, id := range ids {
					if got := home(c.nodes[id], m); got != want {
						require.Equal(t, want, got, "%s: %s as %s sees it", when, m, id)
					}
				}
			}
			for _, id := range ids {
				for _, p := range took[Placed](c.fleet, id) {
					for _, e := range p.Entries {
						mine, served := c.truth[id].members[e.Member]
						require.False(t, served && mine.Generation > e.Generation, "%s: %s is told that %s is at %s", when, id, e.Member, p.Gateway)
					}
				}
			}
		}
		for _, id := range ids {
			c.actions[id] = nil
		}
		c.cut = nil
		c.step("gw-2", Discovered{Gateways: ids})
		c.flow()
		check("together again")

		// Whoever lost a claim lets go of it, late.
		want := homes()
		for _, id := range ids {
			for m, e := range c.truth[id].members {
				if want[m] != fmt.Sprintf("%s gen %d", id, e.Generation) {
					delete(c.truth[id].members, m)
					c.do(id, Left{m, e.Generation})
				}
			}
		}
		c.run(time.Second)
		check("tidied up")
		require.Equal(t, want, homes())
		require.Equal(t, len(want), c.nodes["gw-0"].Live())
	})
}
