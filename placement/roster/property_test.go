// SPDX-License-Identifier: Apache-2.0

package roster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// truth is what a gateway's record ought to be.
type truth struct {
	incarnation placement.Incarnation
	state       placement.State
	reserved    int
	members     map[ring.MemberID]Entry
}

// chaos is a fleet with a model beside it.
type chaos struct {
	*fleet
	truth      map[ring.GatewayID]*truth
	generation placement.Generation
}

func newChaos(t *testing.T, seed uint64, gateways int) *chaos {
	f := newFleet(t)
	f.rng = rand.New(rand.NewPCG(seed, 0))
	f.loss, f.twice = 0.3, 0.2
	f.change = func(c *Config) {
		if seed%2 == 0 {
			c.PageBytes, c.Outbox = minPageBytes, 16
		}
		if seed%3 == 0 && f.rng.IntN(3) == 0 {
			c.Ring.Slots = 11 // by mistake
		}
	}
	c := &chaos{fleet: f, truth: make(map[ring.GatewayID]*truth)}
	for i := range gateways {
		c.boot(ring.GatewayID(fmt.Sprintf("gw-%d", i)), 1)
	}
	return c
}

func (c *chaos) boot(id ring.GatewayID, inc placement.Incarnation) {
	c.start(id, inc)
	c.truth[id] = &truth{incarnation: inc, members: make(map[ring.MemberID]Entry)}
}

func (c *chaos) member() ring.MemberID {
	return ring.MemberID(fmt.Sprintf("member-%d-%030d", c.rng.IntN(40), 0))
}

// act does one random thing.
func (c *chaos) act() {
	ids := c.ids()
	id := ids[c.rng.IntN(len(ids))]
	own := c.truth[id]
	m := c.member()
	switch c.rng.IntN(20) {
	case 0, 1, 2, 3, 4:
		c.generation++
		own.members[m] = Entry{Member: m, Generation: c.generation}
		c.step(id, Attached{Member: m, Generation: c.generation})
	case 5, 6:
		if e, ok := own.members[m]; ok {
			e.Held = true
			own.members[m] = e
			c.step(id, Held{Member: m, Generation: e.Generation})
		}
	case 7, 8:
		if e, ok := own.members[m]; ok {
			delete(own.members, m)
			c.step(id, Left{Member: m, Generation: e.Generation})
		}
	case 9:
		if e, ok := own.members[m]; ok {
			c.step(id, Left{Member: m, Generation: e.Generation - 1})
			c.step(id, Attached{Member: m, Generation: e.Generation - 1})
		}
	case 10:
		own.reserved = c.rng.IntN(5)
		c.step(id, Reserved{Count: own.reserved})
	case 11:
		own.state = placement.State(c.rng.IntN(3))
		c.step(id, StateChanged{State: own.state})
	case 12:
		if c.rng.IntN(8) == 0 {
			c.boot(id, own.incarnation+1)
		}
	case 13:
		c.step(id, LinkLost{Gateway: ids[c.rng.IntN(len(ids))]})
	case 14:
		c.step(id, LinkUp{Gateway: ids[c.rng.IntN(len(ids))]})
	case 15:
		c.step(id, Hinted{Reports: c.nodes[ids[c.rng.IntN(len(ids))]].Reports()})
	default:
		c.now = c.now.Add(time.Duration(c.rng.Int64N(int64(500 * time.Millisecond))))
		for _, id := range ids {
			if due, ok := c.nodes[id].Deadline(); ok && !c.now.Before(due) {
				c.step(id, Tick{})
			}
		}
	}
	for len(c.queue) > 0 && c.rng.IntN(3) > 0 {
		c.deliver(c.rng.IntN(len(c.queue)))
	}
}

// agree checks every record in every roster against the truth.
func (c *chaos) agree(t *testing.T, when string) {
	t.Helper()
	for _, id := range c.ids() {
		r := c.nodes[id]
		for _, of := range c.ids() {
			want := c.truth[of]
			require.Equal(t, want.members, members(r, of), "%s: members of %s as %s sees them", when, of, id)
			g := gateway(t, r, of)
			require.Equal(t, want.state, g.State)
			require.Equal(t, fmt.Sprintf("%s.%d:443", of, want.incarnation), g.Endpoint)
			require.Equal(t, c.nodes[of].counts(c.nodes[of].self), r.counts(r.byID[of]))
			require.Equal(t, want.reserved, g.Reserved)
			require.False(t, g.Suspect)
		}
		var others []ring.GatewayID
		for _, of := range c.ids() {
			if c.nodes[of].cfg.Ring != r.cfg.Ring {
				others = append(others, of)
			}
		}
		require.Equal(t, others, slices.Collect(r.Disagreeing()), "%s: whose rings %s finds to be others", when, id)
		require.Equal(t, c.nodes[c.ids()[0]].Live(), r.Live())
		audit(t, r)
	}
}

// Whatever is lost, doubled, overtaken or restarted: once messages flow, a
// heartbeat and a snapshot later all agree; and nothing that was ever said
// before changes that.
func TestConverges(t *testing.T) {
	for seed := range uint64(200) {
		c := newChaos(t, seed, 3+int(seed%3))
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			c.t = t
			for i := range 300 {
				c.act()
				if i%50 == 0 {
					for _, id := range c.ids() {
						audit(t, c.nodes[id])
					}
				}
			}
			for len(c.queue) > 0 {
				c.deliver(c.rng.IntN(len(c.queue)))
			}
			c.loss, c.twice = 0, 0
			cfg := c.nodes["gw-0"].cfg
			c.run(cfg.Heartbeat + cfg.Heartbeat/4 + 3*cfg.Batch)
			c.agree(t, "after a heartbeat and a snapshot")

			old := c.sent
			c.rng.Shuffle(len(old), func(i, j int) { old[i], old[j] = old[j], old[i] })
			for _, e := range old {
				c.hand(e)
			}
			c.queue = nil // what it made them say
			c.agree(t, "after everything old was said again")
		})
		if t.Failed() {
			return
		}
	}
}
