// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Every plan keeps its promises on every fleet, and so do figures that nobody promised.
func TestPlans(t *testing.T) {
	for _, plan := range Plans() {
		for i := range 4 {
			surge, settle := i&1 > 0, i&2 > 0
			t.Run(fmt.Sprintf("%s/surge=%t/settle=%t", plan, surge, settle), func(t *testing.T) {
				for _, g := range []int{2, 3, 10} {
					for _, s := range []int{1, 7, 1000} {
						cfg := Config{Plan: plan, Gateways: g, Supervisors: s, Surge: surge, Settle: settle, Seed: uint64(g)}
						out, err := Run(t.Context(), cfg, nil)
						require.NoError(t, err)
						require.Empty(t, out.Broken, "%+v", cfg)
						examine(t, out)
					}
				}
			})
		}
	}
}

func examine(t *testing.T, out Result) {
	t.Helper()
	c := out.Config
	end := out.Phases[len(out.Phases)-1]
	require.Equal(t, c.Supervisors, end.Served, "%+v", c)
	require.Equal(t, out.Spread, end.Most-end.Fewest)
	require.Positive(t, out.Placing)
	require.GreaterOrEqual(t, out.Took, out.Placing)
	require.GreaterOrEqual(t, out.Peak, end.Most)
	decisions, moves := 0, 0
	for _, p := range out.Phases {
		decisions += p.Decisions
		moves += p.Moves
	}
	require.Equal(t, out.Decisions, decisions)
	require.Equal(t, out.Moves, moves)
	first, final := out.Samples[0], out.Samples[len(out.Samples)-1]
	require.Zero(t, first.Decisions)
	require.Equal(t, Sample{Decisions: out.Decisions, Moves: out.Moves, Fewest: end.Fewest, Mean: final.Mean, Most: end.Most, Served: final.Served}, final)
	if c.Settle {
		require.LessOrEqual(t, out.Spread, 1)
	} else {
		require.Zero(t, out.Settled)
	}
	switch {
	case c.Plan == Rolling && c.Surge:
		require.Equal(t, c.Supervisors, out.Moves)
		require.Equal(t, 1, out.MaxMoves)
		require.LessOrEqual(t, out.Spread, 1)
		require.Zero(t, out.Settled, "there is nothing to settle")
		require.Equal(t, 2*c.Supervisors, out.Decisions)
	case c.Plan == Rolling && !c.Settle:
		require.Zero(t, end.Fewest, "W3: the last is empty")
		if len(final.Served) > 0 && c.Supervisors >= 1000 {
			empty := slices.DeleteFunc(final.Served, func(s Served) bool { return s.Count > 0 })
			require.Equal(t, []Served{{Gateway: fmt.Sprint("gw-", c.Gateways-1)}}, empty, "and it alone")
		}
	case c.Plan == Crash:
		require.Equal(t, c.Gateways-max(1, c.Gateways/10), end.Gateways)
		require.Equal(t, c.Supervisors+out.Moves, out.Decisions)
	case c.Plan == Burst, c.Plan == ScaleUp:
		require.Zero(t, out.Moves)
		require.LessOrEqual(t, out.Spread, 1)
	case c.Plan == Partition:
		require.Equal(t, out.Settled, out.Moves)
	}
}

// The fleet ends as placement.Predict says, gateway by gateway, who has nothing in common with it but the rules.
func TestPrediction(t *testing.T) {
	for _, surge := range []bool{true, false} {
		for _, even := range []bool{true, false} {
			cfg := Config{Plan: Rolling, Gateways: 5, Supervisors: 333, Surge: surge, Settle: even}
			r := newRun(t.Context(), cfg, nil)
			defer r.forge.close()
			var before *placement.View
			who := map[ring.GatewayID][]ring.MemberID{}
			var plan []placement.Step
			for a := range cfg.acts() {
				switch {
				case a.kind == settle:
					plan = append(plan, placement.Settle{})
				case a.phase != "restart":
				case a.kind == start && surge:
					plan = append(plan, placement.Join(a.ids))
				case a.kind == start:
					plan = append(plan, placement.Start(a.ids))
				case a.kind == stop:
					plan = append(plan, placement.Stop(a.ids))
				}
				require.NoError(t, r.act(a))
				if a.kind == arrive {
					before = r.fleet.sides[0].view.Clone()
					for m, id := range named(sequence(0, cfg.Supervisors)) {
						g := r.fleet.gateways[r.fleet.where[m]].ID
						who[g] = append(who[g], id)
					}
				}
			}
			r.end()
			require.Empty(t, r.out.Broken)
			want, err := placement.Predict(before, who, plan...)
			require.NoError(t, err)
			got := map[ring.GatewayID]int{}
			moves := make([]int, r.out.MaxMoves+1)
			for m := range r.fleet.where {
				moves[r.fleet.moves[m]]++
			}
			for id, n := range r.fleet.numbers {
				got[id] = r.fleet.gateways[n].Load()
			}
			require.Equal(t, want.After().Served, got)
			require.Equal(t, want.Moves, moves)
		}
	}
}

func TestSameSeedSameRun(t *testing.T) {
	run := func(seed uint64) Result {
		out, err := Run(t.Context(), Config{Plan: Crash, Gateways: 20, Supervisors: 5000, Seed: seed}, nil)
		require.NoError(t, err)
		out.Placing, out.Took, out.Bytes = 0, 0, 0
		return out
	}
	require.Equal(t, run(1), run(1))
	require.NotEqual(t, run(1).Asks, run(2).Asks)
}

// A supervisor takes few bytes, a hundred gateways and the rings included.
func TestMemory(t *testing.T) {
	out, err := Run(t.Context(), Config{Plan: Rolling, Gateways: 20, Supervisors: 200_000, Surge: true}, nil)
	require.NoError(t, err)
	require.InDelta(t, 7.5, out.BytesPerSupervisor(), 3)
	require.Less(t, len(out.Samples), 2*samples)
}

func TestInterrupted(t *testing.T) {
	for _, plan := range Plans() {
		ctx, cancel := context.WithCancel(t.Context())
		cfg := Config{Plan: plan, Gateways: 5, Supervisors: 20_000}
		_, err := Run(ctx, cfg, func(decisions int) {
			if decisions > cfg.Decisions()*9/10 {
				cancel()
			}
		})
		require.ErrorIs(t, err, context.Canceled, plan)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Run(ctx, Config{Plan: Rolling, Gateways: 5, Supervisors: 5}, nil)
	require.ErrorIs(t, err, context.Canceled)
}

// ready returns a fleet of three gateways and 30 supervisors that has done nothing wrong so far.
func ready(t *testing.T) *run {
	t.Helper()
	cfg := Config{Plan: Burst, Gateways: 3, Supervisors: 30}
	r := newRun(t.Context(), cfg, nil)
	t.Cleanup(r.forge.close)
	for a := range cfg.acts() {
		if a.kind != comeBack {
			require.NoError(t, r.act(a))
		}
	}
	r.keep()
	require.Empty(t, r.fleet.faults.all())
	return r
}

// Whatever goes wrong is found.
func TestBrokenPromises(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*run)
		want  string
	}{
		"lost":           {func(r *run) { r.fleet.where[4] = nowhere }, "1 of 30 supervisors have no gateway"},
		"miscounted":     {func(r *run) { r.fleet.count(1, +1, 0) }, "gw-1 says that it serves 11, and serves 10"},
		"elsewhere":      {func(r *run) { r.fleet.where[4] = (r.fleet.where[4] + 1) % 3 }, "and serves 11"},
		"unlisted":       {func(r *run) { r.fleet.gateways[2].head = last; r.fleet.take(2) }, "gw-2 lists 0 and serves 10"},
		"stale view":     {func(r *run) { r.fleet.gateways[0].Sequence++ }, "gw-0 is {"},
		"live":           {func(r *run) { r.fleet.sides[0].view.SetLive(7) }, "side 0 counts 7 live, and serves 30"},
		"moved":          {func(r *run) { r.fleet.moves[9] = 1 }, "a supervisor moved 1 times: 0 is the most"},
		"moves":          {func(r *run) { r.fleet.moved = 2 }, "2 moves: it takes 0"},
		"uneven":         {func(r *run) { r.fleet.count(0, +2, 0); r.after(act{phase: "x", even: true}) }, "x: a gateway serves 10 and another 12"},
		"left with some": {func(r *run) { r.fleet.remove([]ring.GatewayID{"gw-2"}, r.fleet.sides[0].view.Ring().Without("gw-2")) }, "gw-2 leaves the fleet with 10 supervisors"},
		"not the last":   {func(r *run) { r.cfg.Plan = Rolling }, "gw-2 has started last, and serves 10"},
		"draining target": {func(r *run) {
			r.fleet.gateways[1].State = placement.Draining
			r.fleet.examine(0, &r.fleet.gateways[1], "m", placement.Decision{})
		}, "m is placed on gw-1, which is draining"},
		"suspect target": {func(r *run) {
			r.fleet.gateways[1].Suspect = true
			r.fleet.examine(0, &r.fleet.gateways[1], "m", placement.Decision{})
		}, "suspect: true"},
		"other side": {func(r *run) {
			r.fleet.gateways[1].side = &side{}
			r.fleet.examine(0, &r.fleet.gateways[1], "m", placement.Decision{})
		}, "m is placed on gw-1, which gw-0 does not hear"},
		"above the cap": {func(r *run) {
			r.fleet.examine(0, &r.fleet.gateways[1], "m", placement.Decision{Reason: placement.Owner, Load: 10, Cap: 10})
		}, "m is placed on gw-1 (owner) beside 10: the cap is 10"},
		"nobody left": {func(r *run) {
			for n := range r.fleet.gateways {
				r.fleet.gateways[n].State = placement.Draining
				r.fleet.set(&r.fleet.gateways[n])
			}
			_, _ = r.fleet.place(0, placement.Request{Member: "m"})
		}, "m finds no gateway (nowhere)"},
	} {
		t.Run(name, func(t *testing.T) {
			r := ready(t)
			c.spoil(r)
			if len(r.fleet.faults.all()) == 0 {
				r.keep()
			}
			require.Contains(t, strings.Join(r.fleet.faults.all(), "\n"), c.want)
		})
	}
}

func TestManyFaults(t *testing.T) {
	var f faults
	for i := range many + 5 {
		f.add("fault %d", i)
	}
	require.Len(t, f.all(), many+1)
	require.Equal(t, "and 5 more", f.all()[many])
}
