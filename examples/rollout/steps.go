// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"syscall"
	"time"
)

// quietFor is how long nothing must happen for a step to be over.
const quietFor = 500 * time.Millisecond

// step is one thing that happens to the fleet. do makes it happen and waits
// until it has; judge says what did not hold, given the figures.
type step struct {
	name  string
	do    func(*run, context.Context) error
	judge func(*run, result) []string
	kills bool // processes end without a word
}

// steps, in their order.
var steps = []step{
	{name: "start", do: (*run).start, judge: judgeEven},
	{name: "restart-supervisors", do: (*run).restartSupervisors, judge: judgeEven, kills: true},
	{name: "token-refresh", do: (*run).refreshTokens, judge: judgeStill},
	{name: "rolling", do: (*run).roll, judge: (*run).judgeRolling},
	{name: "crash", do: (*run).crash, judge: (*run).judgeCrash, kills: true},
	{name: "scale-up", do: (*run).scaleUp, judge: (*run).judgeScaleUp},
	{name: chaosStep, do: (*run).chaos, judge: (*run).judgeChaos, kills: true},
}

func stepNames() []string {
	names := make([]string, len(steps))
	for i, s := range steps {
		names[i] = s.name
	}
	return names
}

// run is one run of the steps, and what they tell each other.
type run struct {
	*fleet
	screen   *screen
	stdout   io.Writer // for -json
	spread   int       // when the step began
	dead     string    // crash: who died
	joined   string    // scale-up: who joined
	newcomer int       // scale-up: how many came for it
	before   map[string]int
	note     string // why the step is judged as it is
	aside    string // for a person who watches
	settled  evened // by -settle
	havoc    *havoc // nil: another step than chaos
}

// play runs one step.
func (r *run) play(ctx context.Context, s step) result {
	began := time.Now()
	r.note, r.aside, r.settled, r.havoc = "", "", evened{}, nil
	f := r.board.read()
	r.spread = f.spread(r.ids())
	overCap := r.totalOverCap(ctx)
	r.board.begin()
	var why []string
	err := s.do(r, ctx)
	if err != nil {
		why = append(why, err.Error())
	}
	if err == nil || ctx.Err() == nil { // or else the same would be said twice
		if err := r.settle(ctx); err != nil {
			why = append(why, err.Error())
		}
	}
	echo, whyEcho := r.echoed(ctx, s)
	f = r.board.read()
	res := result{
		Step: s.name, Gateways: len(r.gateways), Supervisors: f.supervisor, Sessions: f.sessions,
		Served: f.served, Spread: f.spread(r.ids()), Lost: f.lost, Moved: f.moved, MaxMoves: f.maxMoves,
		GapMSMax: micros(f.gapMax), GapMSP99: micros(f.gapP99), Misplaced: f.misplaced + f.missing, Refused: f.refused,
		OverCap: r.totalOverCap(ctx) - overCap, SettleMoves: r.settled.moves,
		Echo: echo,
	}
	for _, id := range r.ids() {
		res.Served[id] += 0 // a gateway that serves nobody is told too
	}
	if res.Lost > 0 {
		why = append(why, fmt.Sprintf("%d supervisors have no stream", res.Lost))
	}
	if res.Misplaced > 0 {
		why = append(why, fmt.Sprintf("%d sessions are not where their supervisor is", res.Misplaced))
	}
	why = append(append(why, s.judge(r, res)...), whyEcho...)
	if r.havoc != nil {
		r.havoc.sum.amend(&res)
	}
	if ctx.Err() == nil { // nobody can be asked any more otherwise, and settle has asked
		why = append(why, r.compareGauges(ctx, f)...)
	}
	res.OK = len(why) == 0
	if r.note != "" {
		why = append(why, r.note)
	}
	res.Why = strings.Join(why, "; ")
	res.aside = r.aside
	res.Seconds = float64(time.Since(began).Round(time.Millisecond)) / float64(time.Second)
	return res
}

// echoed returns what became of the requests of a step, and what did not hold of
// them. They begin when the first step has ended, and end with the last one.
func (r *run) echoed(ctx context.Context, s step) (*Echo, []string) {
	echoes := r.echoes.Load()
	if echoes == nil {
		return nil, nil
	}
	var why []string
	if s.name == r.cfg.steps[len(r.cfg.steps)-1] {
		if err := echoes.stop(ctx); err != nil {
			why = append(why, err.Error())
		}
	}
	e := echoes.take()
	return &e, append(why, e.judge(s.kills)...)
}

// micros rounds milliseconds to whole microseconds.
func micros(ms float64) float64 { return math.Round(ms*1000) / 1000 }

// settle waits until everybody has a stream, every session is where its
// supervisor is, the gateways' own gauges say the same, and nothing has happened for a while.
func (r *run) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 45*time.Second, errors.New("not after 45 s"))
	defer cancel()
	return r.poll(ctx, "the fleet does not come to rest", func() bool {
		f := r.board.read()
		if f.lost > 0 || f.missing > 0 || f.misplaced > 0 || f.quiet < quietFor {
			return false
		}
		return len(r.compareGauges(ctx, f)) == 0
	})
}

// compareGauges holds what the gateways' /metrics say against what the supervisors reported.
func (r *run) compareGauges(ctx context.Context, f figures) []string {
	var why []string
	for _, id := range r.ids() {
		m, err := scrapeGauges(ctx, r.gateways[id].ops)
		if err != nil {
			why = append(why, fmt.Sprintf("%s: %v", id, err))
			continue
		}
		sessions := 0
		if f.served[id] > 0 {
			sessions = r.cfg.sessions
		}
		if m.served != f.served[id] || m.maxSessions != sessions {
			why = append(why, fmt.Sprintf("%s: its gauges say %d served and %d sessions at most, its supervisors say %d and %d",
				id, m.served, m.maxSessions, f.served[id], sessions))
		}
	}
	return why
}

func judgeEven(_ *run, res result) []string {
	if res.Spread > 1 {
		return []string{fmt.Sprintf("the spread is %d, above 1", res.Spread)}
	}
	return nil
}

func judgeStill(_ *run, res result) []string {
	if res.Moved > 0 {
		return []string{fmt.Sprintf("%d supervisors changed gateway", res.Moved)}
	}
	return nil
}

// start: everything starts, supervisors at once.
func (r *run) start(ctx context.Context) error {
	if _, err := r.startGateways(ctx, r.cfg.gateways); err != nil {
		return err
	}
	return r.startSupervisors(r.cfg.supervisors)
}

func (r *run) restartSupervisors(context.Context) error { return r.fleet.restartSupervisors() }

// refreshTokens: each gateway ends every stream, as an expired token does.
func (r *run) refreshTokens(ctx context.Context) error {
	for _, id := range r.ids() {
		if err := r.gateways[id].Signal(syscall.SIGHUP); err != nil {
			return err
		}
	}
	return r.poll(ctx, "not everybody came back", func() bool {
		f := r.board.read()
		return f.least >= 1
	})
}

// roll: each gateway in turn is replaced.
func (r *run) roll(ctx context.Context) error {
	for _, id := range r.ids() {
		if r.cfg.surge {
			if _, err := r.startGateway(ctx); err != nil {
				return err
			}
		}
		if err := r.stopGateway(ctx, id); err != nil {
			return err
		}
		if !r.cfg.surge {
			if _, err := r.startGateway(ctx); err != nil {
				return err
			}
		}
		if err := r.settle(ctx); err != nil {
			return fmt.Errorf("after %s: %w", id, err)
		}
	}
	if r.cfg.settle {
		return r.evenOut(ctx)
	}
	return nil
}

func (r *run) judgeRolling(res result) []string {
	var why []string
	if res.GapMSMax > 0 {
		why = append(why, fmt.Sprintf("somebody had no stream for %.1f ms", res.GapMSMax))
	}
	if r.cfg.settle {
		return append(append(why, judgeEven(r, res)...), r.judgeSettled()...)
	}
	if !r.cfg.surge {
		r.note = fmt.Sprintf("without surge each gateway stopped before its replacement started, and nobody moves because a gateway joins: the last one to join stays empty (spread %d), and some moved %d times",
			res.Spread, res.MaxMoves)
		return why
	}
	if res.MaxMoves > 1 {
		why = append(why, fmt.Sprintf("somebody moved %d times", res.MaxMoves))
	}
	return append(why, judgeEven(r, res)...)
}

// crash: one gateway gets SIGKILL.
func (r *run) crash(ctx context.Context) error {
	ids := r.ids()
	r.dead = ids[r.rnd.IntN(len(ids))]
	f := r.board.read()
	served := f.served[r.dead]
	dead := r.gateways[r.dead]
	r.killGateway(ctx, r.dead)
	defer r.forget(dead)
	return r.poll(ctx, "not everybody found another gateway", func() bool {
		f := r.board.read()
		return f.served[r.dead] == 0 && f.lost == 0 && f.moved >= served
	})
}

func (r *run) judgeCrash(res result) []string {
	var why []string
	if f := r.board.read(); f.redirects[r.dead] > 0 {
		why = append(why, fmt.Sprintf("%d were sent to %s, which is dead", f.redirects[r.dead], r.dead))
	}
	switch {
	case r.spread <= 1:
		why = append(why, judgeEven(r, res)...)
	case res.Spread > r.spread:
		why = append(why, fmt.Sprintf("the spread was %d and is %d", r.spread, res.Spread))
	default:
		r.note = fmt.Sprintf("the spread was %d before: nobody moves but those who lost their gateway", r.spread)
	}
	return why
}

// scaleUp: one gateway more; then so many newcomers as the others have no room for.
func (r *run) scaleUp(ctx context.Context) error {
	g, err := r.startGateway(ctx)
	if err != nil {
		return err
	}
	r.joined = g.id
	if err := r.settle(ctx); err != nil {
		return err
	}
	f := r.board.read()
	r.before = f.served
	fewest := -1
	for _, id := range r.ids() {
		if n := f.served[id]; id != g.id && (fewest < 0 || n < fewest) {
			fewest = n
		}
	}
	r.newcomer = max(0, fewest*len(r.gateways)-f.supervisor)
	return r.startSupervisors(r.newcomer)
}

func (r *run) judgeScaleUp(res result) []string {
	why := judgeStill(r, res)
	for _, id := range r.ids() {
		want := r.before[id]
		if id == r.joined {
			want += r.newcomer
		}
		if res.Served[id] != want {
			why = append(why, fmt.Sprintf("%s serves %d and not %d", id, res.Served[id], want))
		}
	}
	r.aside = fmt.Sprintf("%s joined; %d newcomers came, as many as the others had no room for", r.joined, r.newcomer)
	return why
}

// find returns the step of that name.
func find(name string) step {
	return steps[slices.IndexFunc(steps, func(s step) bool { return s.name == name })]
}
