// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// few are enough members to see what a cell does.
var few = members[:32]

func TestFleet(t *testing.T) {
	for _, row := range []struct{ gateways, percent, full int }{
		{3, 0, 0}, {3, 90, 2}, {3, 99, 2}, {3, 100, 3},
		{16, 90, 15}, {16, 99, 15}, {128, 90, 116}, {128, 99, 127}, {1024, 99, 1014}, {1024, 100, 1024},
	} {
		f := newFleet(row.gateways, row.percent)
		full := 0
		for i, id := range f.ids {
			require.Equal(t, f.counts[i], f.loads[id])
			if !f.room(id) {
				full++
			}
		}
		require.Equal(t, row.full, full, "%+v", row)
		require.Equal(t, limit, (f.live+1)/row.gateways, "the cap with the one who is placed")
	}
}

// What is measured is the work: everybody answers with a gateway, with one that has
// room as long as there is one, and with its fallback then.
func TestAnswers(t *testing.T) {
	for _, c := range cells() {
		t.Run(c.String(), func(t *testing.T) {
			a, f := find(c.impl), newFleet(c.gateways, c.full)
			p, err := c.prepare()
			require.NoError(t, err)
			first := func(string) string { return f.ids[0] } // of the blind: the first of equals
			if a.keyed {
				first, err = a.owner(f)
				require.NoError(t, err)
			}
			for range 2 { // the second time shows that counting in and out leaves nothing behind
				for _, m := range few {
					id := p(m)
					require.Contains(t, f.ids, id)
					if c.job != jobOwner && a.soft {
						continue
					}
					if c.job == jobOwner || c.full == 0 || c.full == 100 {
						require.Equal(t, first(m), id, m)
					} else {
						require.True(t, f.room(id), "%s -> %s", m, id)
					}
					require.Equal(t, id, p(m), "asked again")
				}
			}
		})
	}
}

// A place that is kept counts until it is given up, and once, however often the
// member asks.
func TestKeep(t *testing.T) {
	for _, a := range alternatives {
		if a.keep == nil || a.soft {
			continue
		}
		t.Run(a.name, func(t *testing.T) {
			f := newFleet(16, 90) // two have room, for one each
			f.counts[3], f.loads["gw-3"] = limit-1, limit-1
			f.live--
			reserve, end, err := a.keep(f)
			require.NoError(t, err)
			first := reserve("a")
			require.True(t, f.room(first), first)
			require.Equal(t, first, reserve("a"), "asked again")
			require.ElementsMatch(t, []string{"gw-3", "gw-15"}, []string{first, reserve("b")}, "the last with room")
			end("a")
			end("a")
			end("nobody")
			require.Equal(t, first, reserve("c"), "the only one with room")
		})
	}
}

// The list follows from the counts, whatever has happened to them.
func TestFreeList(t *testing.T) {
	f := newFleet(16, 0)
	l := newFreeList(f)
	for i := range f.ids {
		l.inc(i * 7 % 16)
	}
	require.Empty(t, l.free)
	require.Equal(t, 5, l.pick("gw-5", "m"), "nobody has room: the owner")
	l.inc(5)
	l.done(5)
	require.Empty(t, l.free, "still at the cap")
	for _, i := range []int{9, 2, 11} {
		l.done(i)
	}
	l.done(2)
	require.Equal(t, []int{2, 9, 11}, l.free, "each once")
	l.inc(2)
	require.Equal(t, 9, l.pick("gw-9", "m"))
	require.Contains(t, l.free, l.pick("gw-5", "m"))
	for _, i := range []int{0, 1, 3, 4, 5, 6, 7, 8, 10, 12, 13, 14, 15} {
		l.done(i)
	}
	require.Equal(t, newFreeList(f), l)
}

// Of two gateways both are drawn, and so the less loaded is taken.
func TestTwoChoices(t *testing.T) {
	f := newFleet(2, 50)
	p, err := twoChoices(f)
	require.NoError(t, err)
	for range 1000 {
		require.Equal(t, "gw-1", p("m"))
	}
}

// What the tables say of an alternative is so: who goes by the member spreads the
// members, who is soft chooses full gateways, and nobody else does either.
func TestKeyed(t *testing.T) {
	f := newFleet(128, 90)
	for _, a := range alternatives {
		p, err := a.capped(f)
		require.NoError(t, err)
		seen := map[string]bool{}
		full := 0
		for _, m := range members {
			id := p(m)
			seen[id] = true
			if !f.room(id) {
				full++
			}
		}
		require.Equal(t, a.soft, full > 0, "%s chose a full one %d times", a.name, full)
		if !a.soft {
			require.Equal(t, a.keyed, len(seen) > 1, "%s chose %d", a.name, len(seen))
		}
	}
}

// A library whose order ends before anybody with room has come is helped out.
func TestLast(t *testing.T) {
	f := newFleet(1024, 99)
	require.Equal(t, "gw-1014", f.last("gw-7"))
	require.Equal(t, "gw-1014", f.rehash(func(string) string { return "gw-7" })("m"))
	require.Equal(t, "gw-7", newFleet(16, 100).last("gw-7"))
}

func TestGrowing(t *testing.T) {
	require.Equal(t, []int{3}, slices.Collect(growing(3)))
	require.Equal(t, []int{4, 16}, slices.Collect(growing(16)))
	require.Equal(t, []int{4, 16, 64, 255}, slices.Collect(growing(255)))
}

// The stand-in counts right when many use it at once.
func TestCircleConcurrently(t *testing.T) {
	f := newFleet(16, 90)
	c := newCircle(f)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for _, m := range few {
				id := c.GetLeast(m)
				c.Inc(id)
				c.Done(id)
			}
		})
	}
	wg.Wait()
	require.Equal(t, f.live, c.total)
	for id, load := range c.loads {
		require.Equal(t, f.loads[id], *load, id)
	}
	c.Inc("nobody")
	require.Equal(t, f.live, c.total)
}

// The stand-in's bound follows the loads: what is taken is gone.
func TestCircleFills(t *testing.T) {
	c := newCircle(newFleet(16, 90))
	taken := c.GetLeast("m")
	require.Equal(t, "gw-15", taken, "the only one with room")
	c.Inc(taken)
	require.Equal(t, 16*limit, c.total)
	require.Equal(t, c.Get("m"), c.GetLeast("m"), "the cap has risen with it")
}
