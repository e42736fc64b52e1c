// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	chaosStep     = "chaos"
	chaosGateways = 3 // two may be struck at once, and one is to be left
)

// havoc is a chaos step under way.
type havoc struct {
	*run
	plan    *plan
	bill    bill
	sum     Chaos
	tidyFor time.Duration // tidyWithin, but in tests
	excused blame         // by the act
	told    []string

	gatewaysOpen, hostsOpen history
}

// chaos strikes at the fleet at random until its time is over, or it does not come to rest any more.
func (r *run) chaos(ctx context.Context) error {
	h := newHavoc(r, kinds)
	if err := h.learn(ctx); err != nil {
		return err
	}
	for end := time.Now().Add(r.cfg.chaosFor); time.Now().Before(end); {
		if err := h.strike(ctx, h.plan.next()); err != nil {
			return err
		}
	}
	return h.forgetGhosts(ctx)
}

func newHavoc(r *run, kinds []kind) *havoc {
	h := &havoc{run: r, plan: newPlan(r.cfg.seed, kinds, len(r.gateways), len(r.hosts)), tidyFor: tidyWithin, gatewaysOpen: make(history), hostsOpen: make(history)}
	h.sum.Seed = r.cfg.seed
	r.havoc = h
	return h
}

// strike makes an act happen, waits until the fleet is at rest, and judges it. It returns an error if
// there can be no next one.
func (h *havoc) strike(ctx context.Context, a act) error {
	began := time.Now()
	h.screen.begin(fmt.Sprintf("act %d, %s", a.number, a.name))
	h.board.begin()
	h.excused, h.told = blame{}, nil
	var why []string
	if err := a.do(h, ctx, a); err != nil {
		why = append(why, err.Error())
	}
	rest, err := h.rest(ctx)
	if err != nil {
		why = append(why, err.Error())
	}
	res := h.outcome(a, rest)
	why = append(append(why, rest.why...), h.judge(a, res)...)
	if res.OK = len(why) == 0; !res.OK {
		why = append(why, fmt.Sprintf("seed %d", h.cfg.seed))
	}
	res.Why = strings.Join(why, "; ")
	res.AttachedSeconds = seconds(max(0, rest.attached.Sub(began)))
	res.AgreedSeconds = seconds(max(0, rest.agreed.Sub(began)))
	res.Seconds = seconds(time.Since(began))
	h.sum.add(res)
	h.screen.say(res.line())
	if h.cfg.json {
		err = errors.Join(err, json.NewEncoder(h.stdout).Encode(res))
	}
	if err != nil {
		return fmt.Errorf("no act can follow act %d: %w", a.number, err)
	}
	return nil
}

// outcome is an act as the figures have it.
func (h *havoc) outcome(a act, at rest) actResult {
	f := h.board.read()
	res := actResult{
		Act: a.number, Kind: a.name, What: strings.Join(h.told, ", "), Moved: f.moved, MaxMoves: f.maxMoves,
		Spread: f.spread(h.ids()), GapMSMax: micros(f.gapMax), Over: at.over,
	}
	if echoes := h.echoes.Load(); echoes != nil {
		e := echoes.take()
		res.Echo = &e
	}
	return res
}

// judge says what did not hold of an act, beside its coming to rest.
func (h *havoc) judge(a act, res actResult) []string {
	why := h.excused.judge(h.board.movers())
	if a.smooth && res.GapMSMax > 0 {
		why = append(why, fmt.Sprintf("somebody had no stream for %.1f ms", res.GapMSMax))
	}
	if a.smooth && res.MaxMoves > 1 {
		why = append(why, fmt.Sprintf("somebody moved %d times", res.MaxMoves))
	}
	if res.Echo != nil {
		why = append(why, res.Echo.judge(a.loses)...)
	}
	return why
}

// note adds to what is told of an act.
func (h *havoc) note(format string, args ...any) {
	h.told = append(h.told, fmt.Sprintf(format, args...))
}

// learn finds out what a supervisor costs its gateway: half of the hosts leave for a moment.
func (h *havoc) learn(ctx context.Context) error {
	defer h.hush()()
	if err := h.everybodyServed(ctx); err != nil {
		return err
	}
	away := h.hosts[:(len(h.hosts)+1)/2]
	if err := h.askEverybody(ctx); err != nil {
		return err
	}
	many, hosts, err := h.steady(ctx)
	if err != nil {
		return err
	}
	if err := h.stopHosts(away); err != nil {
		return err
	}
	few, _, err := h.steady(ctx)
	if err != nil {
		return err
	}
	if h.bill, err = newBill(few, many, hosts); err != nil {
		return err
	}
	h.screen.say("       at rest, " + h.bill.String())
	return errors.Join(h.startHosts(away), h.everybodyServed(ctx))
}

// hush stops the echoes until the returned function is called.
func (h *havoc) hush() (resume func()) {
	if echoes := h.echoes.Load(); echoes != nil {
		return echoes.rest()
	}
	return func() {}
}

// judgeChaos says what did not hold of all acts together.
func (r *run) judgeChaos(result) []string {
	if r.havoc == nil {
		return nil
	}
	return r.havoc.judgeAll()
}

func (h *havoc) judgeAll() []string {
	var why []string
	if h.sum.Acts == 0 {
		why = append(why, "there was no act")
	}
	if n := len(h.sum.ActsFailed); n > 0 {
		why = append(why, fmt.Sprintf("%d of %d acts did not hold: %s", n, h.sum.Acts, strings.Trim(fmt.Sprint(h.sum.ActsFailed), "[]")))
	}
	for _, of := range []struct {
		what string
		open history
	}{{"gateways", h.gatewaysOpen}, {"hosts", h.hostsOpen}} {
		growth := of.open.growth()
		h.sum.Growth = h.sum.Growth.most(growth)
		if growth.above(growthAllowed) {
			why = append(why, fmt.Sprintf("with each act %s have at least %v more open", of.what, growth))
		}
	}
	h.aside = h.sum.line()
	return why
}
