// SPDX-License-Identifier: Apache-2.0

package redirect_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/ring"
)

// A limit is meant to the letter: who knows of more who are live than the one who asks says no, and
// what to ask for instead.
func TestALimitIsMeantToTheLetter(t *testing.T) {
	serving := func(n int) *pair {
		p := newPair(t, true, 5)
		for i := range n {
			p.hello(member(i), stay)
		}
		return p
	}
	for _, q := range []placement.Question{
		{From: "B", Member: "B-0", Generation: 1}, // as a settle asks: B serves it
		{From: "B", Member: "new"},
	} {
		p := serving(3)
		q.Limit = 3
		a := p.Asked(p.now, q)
		require.False(t, a.Yes, "it serves three")
		require.Equal(t, 4, a.Limit, "half of those who are live, %s included", q.Member)
		require.Zero(t, p.stats().Reserved)
		q.Limit = a.Limit
		a = p.Asked(p.now, q)
		require.True(t, a.Yes)
		require.Zero(t, a.Limit)
		require.Equal(t, 1, p.stats().Reserved)
	}
	p := serving(5)
	a := p.Asked(p.now, placement.Question{From: "B", Member: "another", Limit: 4})
	require.False(t, a.Yes)
	require.Equal(t, 6, a.Limit, "the eleventh may come to either")
	p = serving(6)
	a = p.Asked(p.now, placement.Question{From: "B", Member: "another", Limit: 4})
	require.False(t, a.Yes)
	require.Zero(t, a.Limit, "B serves fewer")
}

// A gateway whose figures come to less than nothing is empty in others' eyes, and nothing worse: one that
// says that it serves nobody, and is known to have served five who are elsewhere by now.
func TestFewerThanNobody(t *testing.T) {
	p := newPair(t, true, 0, 0)
	changes := func(g placement.Generation) (all []roster.Change) {
		for i := range 5 {
			all = append(all, roster.Change{Op: roster.OpAttached, Member: member(i), Generation: g})
		}
		return all
	}
	for i, from := range []ring.GatewayID{"B", "C"} {
		origin := roster.Origin{Gateway: from, Endpoint: "peer-" + string(from), State: placement.Ready,
			Counts: placement.Counts{Incarnation: 20, Sequence: 5, Attached: 5 * i}}
		p.Step(p.now, roster.Received{From: from, Message: roster.Delta{Origin: origin, From: 0, Changes: changes(placement.Generation(i + 1))}})
	}
	b, ok := p.Roster().Gateway("B")
	require.True(t, ok)
	require.EqualValues(t, 5, b.Sequence, "it was heard")
	require.Zero(t, b.Attached)
	require.Equal(t, 5, p.stats().Live)
	require.Equal(t, ring.GatewayID("B"), p.Asked(p.now, placement.Question{From: "B", Member: "new", Limit: 1}).Reports[1].Gateway)
}
