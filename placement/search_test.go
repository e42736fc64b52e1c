// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

func TestSearch(t *testing.T) {
	all := gateways(5, 0, 0, 0) // seen by A
	m := ownedBy(t, "B", all)
	no := func(g ring.GatewayID) placement.Answer {
		return placement.Answer{Gateway: g, State: placement.Ready}
	}
	begin := func() (placement.Search, *placement.Ask) {
		s := placement.NewSearch("A", 0, placement.Request{Member: m})
		ask, d := s.Begin(view(t, all))
		require.NotNil(t, ask)
		require.Zero(t, d)
		require.Equal(t, placement.Question{From: "A", Member: m, Limit: 1}, ask.Question)
		require.Equal(t, ring.GatewayID("B"), ask.To.ID)
		return s, ask
	}

	t.Run("yes", func(t *testing.T) {
		s, _ := begin()
		ask, d := s.Answered(view(t, all), placement.Answer{Gateway: "B", Yes: true, State: placement.Ready})
		require.Nil(t, ask)
		require.Equal(t, ring.GatewayID("B"), d.Gateway)
		require.Equal(t, placement.Owner, d.Reason)
	})
	t.Run("what becomes of the member meanwhile counts", func(t *testing.T) {
		// It is attached at A when the question goes out.
		asks := func(p *placement.Picture) { p.Asking = true }
		s := placement.NewSearch("A", 0, placement.Request{Member: m, Home: "A", Prefer: "B"})
		ask, _ := s.Begin(view(t, gateways(2, 0, 9, 9), asks))
		require.NotNil(t, ask)
		require.Equal(t, ring.GatewayID("B"), ask.To.ID)
		// Its stream breaks, somebody else has come to A, and B does not answer.
		now := gateways(2, 0, 9, 9)
		now[0].Counts.Held = 1
		attached := s
		_, d := attached.Failed(view(t, now, asks))
		require.Equal(t, ring.GatewayID("A"), d.Gateway)
		require.Equal(t, 1, d.Load, "as if it were one of the two that are attached")
		s.Update(placement.Request{Member: m, Home: "A", Held: true, Prefer: "B"})
		_, d = s.Failed(view(t, now, asks))
		require.NotEqual(t, ring.GatewayID("B"), d.Gateway, "whom to avoid stays")
		require.Equal(t, 2, d.Load)
	})
	t.Run("a no tells below which limit there would be room", func(t *testing.T) {
		s, _ := begin()
		hint := no("B")
		hint.Limit = 3
		ask, _ := s.Answered(view(t, all), hint)
		require.NotNil(t, ask)
		require.Equal(t, ring.GatewayID("B"), ask.To.ID)
		require.Equal(t, placement.Question{From: "A", Member: m, Limit: 3}, ask.Question)
		again := s
		_, d := s.Answered(view(t, all), placement.Answer{Gateway: "B", Yes: true, State: placement.Ready})
		require.Equal(t, ring.GatewayID("B"), d.Gateway)
		require.Equal(t, 3, d.Limit, "under the limit that was asked for")

		hint.Limit = 3 // it has filled up to that meanwhile
		ask, _ = again.Answered(view(t, gateways(5, 3, 0, 0)), hint)
		require.NotEqual(t, ring.GatewayID("B"), ask.To.ID)
		hint.Gateway, hint.Limit, hint.State = ask.To.ID, 9, placement.Draining
		before := ask.To.ID
		ask, _ = again.Answered(view(t, gateways(5, 3, 0, 0)), hint)
		require.NotEqual(t, before, ask.To.ID, "one that drains is not asked again")

		few := placement.NewSearch("A", 1, placement.Request{Member: m})
		ask, _ = few.Begin(view(t, all))
		hint = no(ask.To.ID)
		hint.Limit = ask.Question.Limit + 1
		ask, _ = few.Answered(view(t, all), hint)
		require.Nil(t, ask, "one question was allowed")
	})
	t.Run("a no brings counts, and the walk starts again", func(t *testing.T) {
		s, _ := begin()
		fresh := gateways(5, 4, 0, 0)
		ask, _ := s.Answered(view(t, fresh), no("B"))
		require.NotNil(t, ask)
		require.NotEqual(t, ring.GatewayID("B"), ask.To.ID)
		require.Equal(t, 2, ask.Question.Limit)
	})
	t.Run("the last question is whether that one is emptier at all, and after a no the member stays", func(t *testing.T) {
		s, ask := begin()
		for i := 2; i <= placement.DefaultAsks; i++ {
			require.False(t, ask.Question.Insist)
			ask, _ = s.Answered(view(t, all), no(ask.To.ID)) // its counts never improve
			require.NotNil(t, ask, "ask %d", i)
		}
		require.False(t, ask.Question.Insist)
		require.Equal(t, 5, ask.Question.Limit, "what the asker serves itself")
		yes := s
		_, d := yes.Answered(view(t, all), placement.Answer{Gateway: ask.To.ID, Yes: true, State: placement.Ready})
		require.Equal(t, placement.Insisted, d.Reason)
		require.Equal(t, ask.To.ID, d.Gateway)
		ask, d = s.Answered(view(t, all), no(ask.To.ID))
		require.Nil(t, ask)
		require.Equal(t, ring.GatewayID("A"), d.Gateway)
		require.Equal(t, placement.Insisted, d.Reason)
		require.Equal(t, 5, d.Load)
	})
	t.Run("S14: who does not answer is left out, and nobody is sent to it", func(t *testing.T) {
		s, ask := begin()
		asked := map[ring.GatewayID]bool{}
		var d placement.Decision
		for ask != nil {
			require.False(t, asked[ask.To.ID])
			asked[ask.To.ID] = true
			ask, d = s.Failed(view(t, all))
		}
		require.Len(t, asked, 3)
		require.Equal(t, ring.GatewayID("A"), d.Gateway, "served where it came")
	})
	t.Run("after enough failures among many it is served where it came", func(t *testing.T) {
		many := gateways(append([]int{9}, make([]int, placement.DefaultAsks+2)...)...)
		s := placement.NewSearch("A", 0, placement.Request{Member: m})
		ask, d := s.Begin(view(t, many))
		n := 0
		for ; ask != nil; n++ {
			ask, d = s.Failed(view(t, many))
		}
		require.Equal(t, placement.DefaultAsks, n)
		require.Equal(t, ring.GatewayID("A"), d.Gateway)
		require.Equal(t, placement.Unreachable, d.Reason)
	})
	t.Run("a gateway that drains has no fallback to itself", func(t *testing.T) {
		s := placement.NewSearch("A", 1, placement.Request{Member: m, Home: "A", Avoid: []ring.GatewayID{"A"}})
		ask, _ := s.Begin(view(t, all))
		require.True(t, ask.Question.Insist)
		ask, d := s.Failed(view(t, all))
		require.Nil(t, ask)
		require.Equal(t, placement.Nowhere, d.Reason)
		require.Empty(t, d.Gateway)
	})
	t.Run("late is asked again, but not for ever", func(t *testing.T) {
		s, ask := begin()
		n := 0
		var d placement.Decision
		for ; ask != nil; n++ {
			ask, d = s.Late(view(t, all))
		}
		require.LessOrEqual(t, n, placement.DefaultAsks)
		require.Equal(t, ring.GatewayID("A"), d.Gateway)
	})
	t.Run("S25: somebody else answers there", func(t *testing.T) {
		s, _ := begin()
		ask, _ := s.Answered(view(t, all), placement.Answer{Gateway: "A", Yes: true, State: placement.Ready})
		require.NotNil(t, ask)
		require.NotEqual(t, ring.GatewayID("B"), ask.To.ID)
	})
	t.Run("S45: draining says no and is not asked again", func(t *testing.T) {
		s, _ := begin()
		ask, _ := s.Answered(view(t, all), placement.Answer{Gateway: "B", State: placement.Draining})
		for ask != nil {
			require.NotEqual(t, ring.GatewayID("B"), ask.To.ID)
			ask, _ = s.Answered(view(t, all), no(ask.To.ID))
		}
	})
	t.Run("without asking the first choice stands", func(t *testing.T) {
		s := placement.NewSearch("A", -1, placement.Request{Member: m})
		ask, d := s.Begin(view(t, all))
		require.Nil(t, ask)
		require.Equal(t, ring.GatewayID("B"), d.Gateway)
	})
}
