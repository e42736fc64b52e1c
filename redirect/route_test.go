// SPDX-License-Identifier: Apache-2.0

package redirect_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// routed is a route on one line: where, and the holders; "?" marks who only expects it.
func routed(route roster.Route) string {
	text := route.Where.String()
	for _, h := range route.Holders {
		text += " " + string(h.ID)
		if h.Expected {
			text += "?"
		}
	}
	return text
}

func (p *pair) routed(m ring.MemberID, s redirect.SessionID) string {
	return routed(p.Route(p.now, m, s))
}

func TestS44(t *testing.T) {
	p := newPair(t, false, 0)
	p.Step(p.now, roster.Discovered{Gateways: []ring.GatewayID{"A", "B"}})
	require.Equal(t, "nobody", p.routed("s", ""))
	a := p.hello("s", stay)
	require.Equal(t, redirect.Accept, a.Verdict.Outcome)
	require.Equal(t, "here A", p.routed("s", ""))

	// s is told to leave A: A has it until B does.
	_, err := p.StartDrain(p.now)
	require.NoError(t, err)
	told, err := p.MoveAway(p.now, "s")
	require.NoError(t, err)
	require.Equal(t, ring.GatewayID("B"), told.Notice.Gateway)
	require.Equal(t, "here A", p.routed("s", ""))

	// B has it: A is the last resort, until the stream here closes.
	p.hear("B", placement.Ready, 2, roster.Entry{Member: "s", Generation: p.gen + 1})
	require.Equal(t, "elsewhere B A", p.routed("s", ""))
	p.Leave(p.now, a.Key, true)
	require.Equal(t, "elsewhere B", p.routed("s", ""))

	// Without B it is here alone.
	p.StopDrain(p.now)
	p.gen += 2
	a = p.hello("t", stay)
	p.hear("B", placement.Ready, 3, roster.Entry{Member: "s", Generation: 999}, roster.Entry{Member: "t", Generation: p.gen + 1})
	require.Equal(t, "elsewhere B A", p.routed("t", ""))
	p.Step(p.now, roster.Departed{Gateway: "B"})
	require.Equal(t, "here A", p.routed("t", ""))
	p.Leave(p.now, a.Key, true)
	require.Equal(t, "nobody", p.routed("t", ""))
}

// A drains, and is asked for what it serves all the same.
func TestS45(t *testing.T) {
	p := newPair(t, false, 0)
	p.hear("B", placement.Draining, 2, roster.Entry{Member: "s", Generation: 7})
	require.Equal(t, "elsewhere B", p.routed("s", ""))
	require.Equal(t, 1, p.stats().Placeable)
}

func TestRouteOfABrokenStream(t *testing.T) {
	p := newPair(t, false, 0)
	a := p.hello("s", stay)
	p.Leave(p.now, a.Key, false)
	require.Equal(t, "here A?", p.routed("s", ""))
	b := p.hello("s", stay)
	require.Equal(t, "here A", p.routed("s", ""))
	p.Leave(p.now, b.Key, false)
	p.now = p.now.Add(redirect.DefaultHold)
	require.Equal(t, "unknown", p.routed("s", ""), "it is given up; and by now nobody has been heard for too long")
}

func TestRouteOfASession(t *testing.T) {
	child := func(s redirect.SessionID) func(*redirect.Hello) {
		return func(h *redirect.Hello) { h.Session, h.Stay = s, true }
	}
	p := newPair(t, false, 0)
	p.Step(p.now, roster.Discovered{Gateways: []ring.GatewayID{"A", "B"}})
	require.Equal(t, "nobody", p.routed("s", "x"))
	p.hear("B", placement.Ready, 2, roster.Entry{Member: "s", Generation: 7})
	require.Equal(t, "elsewhere B", p.routed("s", "x"))
	x := p.hello("s", child("x"))
	require.Equal(t, redirect.Accept, x.Verdict.Outcome)
	require.Equal(t, "here A B", p.routed("s", "x"), "left behind by its supervisor, or ahead of it")
	require.Equal(t, "elsewhere B", p.routed("s", "y"))
	require.Equal(t, "elsewhere B", p.routed("s", ""))

	p.gen = 100
	p.hello("s", stay)
	require.Equal(t, "here A B", p.routed("s", "x"))
	require.Equal(t, "here A? B", p.routed("s", "y"), "it is to follow")
	p.Leave(p.now, x.Key, true)
	require.Equal(t, "here A? B", p.routed("s", "x"))
}

// The route to a supervisor is its seat's, whatever came before it.
func TestRouteAgreesWithSupervisors(t *testing.T) {
	for seed := range uint64(100) {
		p := newPair(t, false, 1, 1)
		rng := rand.New(rand.NewPCG(seed, 5))
		keys := []redirect.Key{}
		for range 80 {
			m := ring.MemberID(fmt.Sprint("s", rng.IntN(3)))
			switch rng.IntN(5) {
			case 0, 1:
				if a := p.hello(m, stay); a.Key != 0 {
					keys = append(keys, a.Key)
				}
			case 2:
				if len(keys) > 0 {
					p.Leave(p.now, keys[rng.IntN(len(keys))], rng.IntN(2) == 0)
				}
			case 3:
				p.gen++
				p.hear("B", placement.Ready, uint64(p.gen), roster.Entry{Member: m, Generation: p.gen})
			case 4:
				p.now = p.now.Add(time.Duration(rng.IntN(20)) * time.Second)
			}
			here := map[ring.MemberID]bool{}
			for _, s := range p.Supervisors() {
				here[s.Member] = true
			}
			for i := range 3 {
				m := ring.MemberID(fmt.Sprint("s", i))
				route := p.Route(p.now, m, "")
				first := len(route.Holders) > 0 && route.Holders[0].ID == "A" && !route.Holders[0].Expected
				if here[m] {
					require.True(t, first, "seed %d: %s", seed, routed(route))
				}
				seen := map[ring.GatewayID]int{}
				for _, h := range route.Holders {
					seen[h.ID]++
				}
				for id, n := range seen {
					require.Equal(t, 1, n, "seed %d: %s twice", seed, id)
				}
			}
		}
	}
}
