// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStepNames(t *testing.T) {
	require.Equal(t, []string{"start", "restart-supervisors", "token-refresh", "rolling", "crash", "scale-up", "chaos"}, stepNames())
	for _, name := range stepNames() {
		require.Equal(t, name, find(name).name)
	}
}

// paper is a run whose gateways exist on paper only.
func paper(cfg config, gateways ...string) *run {
	f := &fleet{cfg: cfg, board: newBoard(), gateways: make(map[string]*gateway), overCap: make(map[string]int)}
	for _, id := range gateways {
		f.gateways[id] = &gateway{id: id}
	}
	return &run{fleet: f}
}

// Each criterion of each step holds, and can fail.
func TestJudges(t *testing.T) {
	surge := config{surge: true}
	redirectTo := func(id string) func(*run) {
		return func(r *run) { tell(r.board, expects("a", 0), verdict("a", "redirect", id)) }
	}
	crashed := func(spread int) func(*run) {
		return func(r *run) { r.dead, r.spread = "gw-9", spread }
	}
	joined := func(r *run) {
		r.joined, r.newcomer, r.before = "gw-2", 2, map[string]int{"gw-1": 2}
	}
	both := func(a, b func(*run)) func(*run) { return func(r *run) { a(r); b(r) } }

	for _, row := range []struct {
		step string
		name string
		cfg  config
		had  func(*run) // what happened before
		res  result
		want []string
		note string // contained in it; empty: none
	}{
		{step: "start", name: "even", res: result{Spread: 1, Moved: 3, GapMSMax: 9}},
		{step: "start", name: "uneven", res: result{Spread: 2}, want: []string{"the spread is 2, above 1"}},

		{step: "restart-supervisors", name: "even", res: result{Spread: 1, Moved: 3, GapMSMax: 9}},
		{step: "restart-supervisors", name: "uneven", res: result{Spread: 2}, want: []string{"the spread is 2, above 1"}},

		{step: "token-refresh", name: "still", res: result{Spread: 4, GapMSMax: 9}},
		{step: "token-refresh", name: "moved", res: result{Moved: 1}, want: []string{"1 supervisors changed gateway"}},

		{step: "rolling", name: "holds", cfg: surge, res: result{Spread: 1, Moved: 12, MaxMoves: 1}},
		{step: "rolling", name: "gap", cfg: surge, res: result{GapMSMax: 0.2}, want: []string{"somebody had no stream for 0.2 ms"}},
		{step: "rolling", name: "twice", cfg: surge, res: result{MaxMoves: 2}, want: []string{"somebody moved 2 times"}},
		{step: "rolling", name: "uneven", cfg: surge, res: result{Spread: 2}, want: []string{"the spread is 2, above 1"}},
		{
			step: "rolling", name: "all at once", cfg: surge, res: result{Spread: 3, MaxMoves: 2, GapMSMax: 5},
			want: []string{"somebody had no stream for 5.0 ms", "somebody moved 2 times", "the spread is 3, above 1"},
		},
		{
			step: "rolling", name: "without surge the last one stays empty", res: result{Spread: 6, MaxMoves: 2},
			note: "the last one to join stays empty (spread 6), and some moved 2 times",
		},
		{
			step: "rolling", name: "without surge, with a gap", res: result{GapMSMax: 5},
			want: []string{"somebody had no stream for 5.0 ms"}, note: "without surge",
		},

		{step: "crash", name: "even again", had: crashed(1), res: result{Spread: 1, Moved: 4, MaxMoves: 1, GapMSMax: 900}},
		{step: "crash", name: "uneven", had: crashed(1), res: result{Spread: 2}, want: []string{"the spread is 2, above 1"}},
		{
			step: "crash", name: "sent to the dead one", had: both(crashed(0), redirectTo("gw-9")),
			want: []string{"1 were sent to gw-9, which is dead"},
		},
		{step: "crash", name: "sent to another one", had: both(crashed(0), redirectTo("gw-1"))},
		{step: "crash", name: "uneven before, and no more so", had: crashed(4), res: result{Spread: 4}, note: "the spread was 4 before"},
		{step: "crash", name: "more uneven than before", had: crashed(4), res: result{Spread: 5}, want: []string{"the spread was 4 and is 5"}},

		{step: "scale-up", name: "holds", had: joined, res: result{Served: map[string]int{"gw-1": 2, "gw-2": 2}}, note: "gw-2 joined; 2 newcomers came"},
		{
			step: "scale-up", name: "somebody moved", had: joined, res: result{Moved: 1, Served: map[string]int{"gw-1": 2, "gw-2": 2}},
			want: []string{"1 supervisors changed gateway"}, note: "gw-2 joined",
		},
		{
			step: "scale-up", name: "a newcomer went elsewhere", had: joined, res: result{Served: map[string]int{"gw-1": 3, "gw-2": 1}},
			want: []string{"gw-1 serves 3 and not 2", "gw-2 serves 1 and not 2"}, note: "gw-2 joined",
		},
		{
			step: "scale-up", name: "the new one stays empty", had: joined, res: result{Served: map[string]int{"gw-1": 4}},
			want: []string{"gw-1 serves 4 and not 2", "gw-2 serves 0 and not 2"}, note: "gw-2 joined",
		},
	} {
		t.Run(row.step+": "+row.name, func(t *testing.T) {
			r := paper(row.cfg, "gw-1", "gw-2")
			if row.had != nil {
				row.had(r)
			}
			require.Equal(t, row.want, find(row.step).judge(r, row.res))
			said := r.note + r.aside
			if row.note == "" {
				require.Empty(t, said)
			}
			require.Contains(t, said, row.note)
		})
	}
}

// gaugesPage is what a gateway's /metrics shows.
func gaugesPage(served, sessions, overCap int) string {
	return fmt.Sprintf(`# TYPE evenring_supervisors_served gauge
evenring_supervisors_served %d
# TYPE evenring_sessions_per_supervisor_max gauge
evenring_sessions_per_supervisor_max %d
# TYPE evenring_over_cap_admissions_total counter
evenring_over_cap_admissions_total %d
`, served, sessions, overCap)
}

// scraped is a run with one gateway that exists as a page of metrics.
func scraped(t *testing.T, status int, pages ...string) *run {
	t.Helper()
	r := paper(config{sessions: 2}, "gw-1")
	r.gateways["gw-1"].ops = opsPage(t, status, pages...)
	return r
}

func TestCompareGauges(t *testing.T) {
	serves := func(n int) figures { return figures{served: map[string]int{"gw-1": n}} }
	for _, row := range []struct {
		name   string
		f      figures
		status int
		page   string
		want   string // empty: they agree
	}{
		{"agree", serves(3), http.StatusOK, gaugesPage(3, 2, 0), ""},
		{"nobody there", serves(0), http.StatusOK, gaugesPage(0, 0, 0), ""},
		{"one supervisor fewer", serves(3), http.StatusOK, gaugesPage(2, 2, 0), "gw-1: its gauges say 2 served and 2 sessions at most, its supervisors say 3 and 2"},
		{"one session more", serves(3), http.StatusOK, gaugesPage(3, 3, 0), "gw-1: its gauges say 3 served and 3 sessions at most"},
		{"a session without a supervisor", serves(0), http.StatusOK, gaugesPage(0, 1, 0), "its supervisors say 0 and 0"},
		{"a metric is missing", serves(3), http.StatusOK, "evenring_supervisors_served 3\n", "gw-1: /metrics lacks evenring_sessions_per_supervisor_max"},
		{"out of order", serves(3), http.StatusInternalServerError, "", "gw-1: "},
	} {
		t.Run(row.name, func(t *testing.T) {
			why := scraped(t, row.status, row.page).compareGauges(t.Context(), row.f)
			if row.want == "" {
				require.Empty(t, why)
				return
			}
			require.Len(t, why, 1)
			require.Contains(t, why[0], row.want)
		})
	}
}

// The gauges of a gateway that has ended go on counting; what was counted before a step does not.
func TestPlayCountsOverCapOfTheStep(t *testing.T) {
	r := scraped(t, http.StatusOK, gaugesPage(0, 0, 5))
	require.Equal(t, 5, r.totalOverCap(t.Context()))
	r.overCap["gw-0"] = 2
	require.Equal(t, 7, r.totalOverCap(t.Context()))
	res := r.play(t.Context(), step{
		name:  "planted",
		do:    func(r *run, _ context.Context) error { r.overCap["gw-0"] += 3; return nil },
		judge: judgeEven,
	})
	require.Equal(t, 3, res.OverCap)
}

func TestPlay(t *testing.T) {
	errPlanted, errOver := errors.New("a planted fault"), errors.New("time is over")
	served := []any{
		expects("a", 2), attached("a", "gw-1", 0), session("a", "s1", "gw-1", true), session("a", "s2", "gw-1", true),
	}
	for _, row := range []struct {
		name    string
		page    string
		before  []any
		during  []any
		err     error // of the step
		holds   bool  // as the step's judge has it
		never   bool  // the fleet does not come to rest
		want    string
		ok      bool
		checked func(*testing.T, result)
	}{
		{
			name: "holds", page: gaugesPage(1, 2, 0), during: served, holds: true, ok: true,
			checked: func(t *testing.T, res result) {
				seconds := res.Seconds
				require.GreaterOrEqual(t, seconds, quietFor.Seconds())
				res.Seconds = 0
				require.Equal(t, result{
					Step: "planted", Gateways: 1, Supervisors: 1, Sessions: 2, Served: map[string]int{"gw-1": 1}, OK: true,
				}, res)
			},
		},
		{
			name: "a gateway that serves nobody is told too", page: gaugesPage(0, 0, 0), holds: true, ok: true,
			checked: func(t *testing.T, res result) { require.Equal(t, map[string]int{"gw-1": 0}, res.Served) },
		},
		{name: "the step fails", page: gaugesPage(1, 2, 0), before: served, err: errPlanted, holds: true, want: "a planted fault"},
		{name: "its judge says no", page: gaugesPage(1, 2, 0), before: served, want: "the judge says no"},
		{
			name: "somebody is lost", page: gaugesPage(0, 0, 0), before: served, during: []any{dies("a"), expects("a", 0)}, holds: true, never: true,
			want: "the fleet does not come to rest: time is over; 1 supervisors have no stream",
		},
		{
			name: "a session is misplaced", page: gaugesPage(1, 2, 0), before: served, during: []any{session("a", "s1", "gw-2", false)}, holds: true, never: true,
			want: "the fleet does not come to rest: time is over; 1 sessions are not where their supervisor is",
		},
		{
			name: "a session is missing", page: gaugesPage(1, 2, 0), before: served, during: []any{session("a", "s2", "", false)}, holds: true, never: true,
			want: "the fleet does not come to rest: time is over; 1 sessions are not where their supervisor is",
		},
		{
			name: "the gauges say something else", page: gaugesPage(2, 2, 0), before: served, holds: true, never: true,
			want: "the fleet does not come to rest: time is over",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := scraped(t, http.StatusOK, row.page)
			tell(r.board, row.before...)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			if row.never {
				ctx, cancel = context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errOver)
			}
			defer cancel()
			res := r.play(ctx, step{
				name: "planted",
				do: func(r *run, _ context.Context) error {
					tell(r.board, row.during...)
					if row.never {
						r.board.lastMove = time.Time{} // so that quiet is not what is lacking
					}
					return row.err
				},
				judge: func(*run, result) []string {
					if row.holds {
						return nil
					}
					return []string{"the judge says no"}
				},
			})
			require.Equal(t, row.ok, res.OK)
			require.Equal(t, row.want, res.Why)
			if row.checked != nil {
				row.checked(t, res)
			}
		})
	}
}

// The fleet has come to rest and agrees with its gauges; a moment later it does not.
func TestPlayComparesGaugesOnceMore(t *testing.T) {
	still := gaugesPage(0, 0, 0)
	r := scraped(t, http.StatusOK, still, still, still, gaugesPage(1, 1, 0))
	res := r.play(t.Context(), step{
		name: "planted", do: func(*run, context.Context) error { return nil }, judge: judgeEven,
	})
	require.False(t, res.OK)
	require.Equal(t, "gw-1: its gauges say 1 served and 1 sessions at most, its supervisors say 0 and 0", res.Why)
}

// A step that time ran out in has not held, however well all looks; and that is told once.
func TestPlayOutOfTime(t *testing.T) {
	errOver := errors.New("time is over")
	for want, faults := range map[string]bool{
		"the fleet does not come to rest: time is over": false,
		"it fails: time is over":                        true,
	} {
		r := scraped(t, http.StatusOK, gaugesPage(0, 0, 0))
		ctx, cancel := context.WithCancelCause(t.Context())
		res := r.play(ctx, step{
			name: "planted",
			do: func(_ *run, ctx context.Context) error {
				cancel(errOver)
				if faults {
					return fmt.Errorf("it fails: %w", context.Cause(ctx))
				}
				return nil
			},
			judge: judgeEven,
		})
		require.False(t, res.OK)
		require.Equal(t, want, res.Why)
	}
}

// What is to be known of a step that held is said, and is no fault.
func TestPlayNotes(t *testing.T) {
	r := scraped(t, http.StatusOK, gaugesPage(0, 0, 0))
	noted := step{
		name:  "planted",
		do:    func(*run, context.Context) error { return nil },
		judge: func(r *run, _ result) []string { r.note = "by the way"; return nil },
	}
	res := r.play(t.Context(), noted)
	require.True(t, res.OK)
	require.Equal(t, "by the way", res.Why)

	noted.judge = judgeEven
	require.Empty(t, r.play(t.Context(), noted).Why, "the note was of the step before")
}

// A step has what was before it at hand: crash judges by the spread that there was.
func TestPlayRemembersTheSpread(t *testing.T) {
	r := scraped(t, http.StatusOK, gaugesPage(1, 0, 0))
	r.cfg.sessions = 0
	r.gateways["gw-2"] = &gateway{id: "gw-2", ops: opsPage(t, http.StatusOK, gaugesPage(0, 0, 0))}
	tell(r.board, expects("a", 0), attached("a", "gw-1", 0))
	r.spread = 7
	res := r.play(t.Context(), step{
		name:  "planted",
		do:    func(r *run, _ context.Context) error { delete(r.gateways, "gw-2"); return nil },
		judge: func(r *run, res result) []string { return []string{fmt.Sprint(r.spread, res.Spread)} },
	})
	require.Equal(t, "1 0", res.Why)
}

func TestPollSaysWhatDidNotHappenAndWhy(t *testing.T) {
	f := new(fleet)
	calls := 0
	require.NoError(t, f.poll(t.Context(), "unused", func() bool { calls++; return calls == 3 }))

	errOver := errors.New("time is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errOver)
	require.NoError(t, f.poll(ctx, "unused", func() bool { return true }))
	err := f.poll(ctx, "it does not happen", func() bool { return false })
	require.ErrorIs(t, err, errOver)
	require.True(t, strings.HasPrefix(err.Error(), "it does not happen: "))
}
