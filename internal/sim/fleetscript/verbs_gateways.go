// SPDX-License-Identifier: Apache-2.0

package fleetscript

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evenring/evenring/handoff"
	"github.com/evenring/evenring/handoff/settle"
	"github.com/evenring/evenring/internal/sim"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

func (f *fleet) startGateways(args []string) (string, error) {
	ids, values, err := settings(args, "at")
	if err != nil {
		return "", err
	}
	if at := values["at"]; at != "" {
		if len(ids) != 1 {
			return "", misuse("%d gateways at one address", len(ids))
		}
		f.at[ring.GatewayID(ids[0])] = at
	}
	for _, id := range ids {
		f.all = append(f.all, f.w.StartGateway(ring.GatewayID(id)))
	}
	f.w.Run(time.Second)
	return "", nil
}

// each does something to every gateway of several.
func (f *fleet) each(ids []string, do func(*sim.Gateway)) (string, error) {
	all, err := f.gateways(ids)
	if err != nil {
		return "", err
	}
	for _, g := range all {
		do(g)
	}
	return "", nil
}

func (f *fleet) killGateways(args []string) (string, error) { return f.each(args, (*sim.Gateway).Kill) }
func (f *fleet) crash(args []string) (string, error)        { return f.each(args, (*sim.Gateway).Crash) }
func (f *fleet) stop(args []string) (string, error)         { return f.each(args, (*sim.Gateway).Stop) }

func (f *fleet) out(args []string) (string, error) {
	return f.each(args, func(g *sim.Gateway) { g.InService = false })
}

func (f *fleet) refresh([]string) (string, error) {
	return f.each([]string{"all"}, func(g *sim.Gateway) { g.EndAll(redirect.ReasonExpired) })
}

func (f *fleet) drain(args []string) (string, error) {
	ids, values, err := settings(args, "propagation", "window", "confirm")
	if err != nil {
		return "", err
	}
	if len(ids) != 1 {
		return "", misuse("%d gateways", len(ids))
	}
	g, err := f.alive(ids[0])
	if err != nil {
		return "", err
	}
	var cfg handoff.Config
	for key, field := range map[string]*time.Duration{
		"propagation": &cfg.Propagation, "window": &cfg.Window, "confirm": &cfg.Confirm,
	} {
		if text, ok := values[key]; ok {
			if *field, err = duration(text); err != nil {
				return "", err
			}
		}
	}
	return answer(g.Drain(cfg)), nil
}

// answer is what whoever asked for something is told.
func answer(err error) string {
	if err == nil {
		return ""
	}
	return "no: " + err.Error()
}

// delisted drains a gateway that discovery has dropped, as its program should.
func (f *fleet) delisted(g *sim.Gateway) { f.mustDrain(g, handoff.Config{Keep: true}) }

// replaced drains a process whose ID another one has, as its program should.
func (f *fleet) replaced(g *sim.Gateway) { f.mustDrain(g, handoff.Config{}) }

func (f *fleet) mustDrain(g *sim.Gateway, cfg handoff.Config) {
	if err := g.Drain(cfg); err != nil {
		f.account.ignored = append(f.account.ignored, fmt.Sprintf("%s does not drain: %v", g.ID, err))
	}
}

func (f *fleet) abort(args []string) (string, error) { return f.each(args, (*sim.Gateway).Abort) }

func (f *fleet) gone(args []string) (string, error) {
	g, err := f.gateway(args[0])
	if err != nil {
		return "", err
	}
	d, held := f.until(actBound, func() bool { return !g.Alive })
	return took("gone", d, held), nil
}

func (f *fleet) settle(args []string) (string, error) {
	ids, values, err := settings(args, "budget")
	if err != nil {
		return "", err
	}
	var cfg settle.Config
	if text, ok := values["budget"]; ok {
		if cfg.Budget, err = count(text); err != nil {
			return "", err
		}
	}
	all, err := f.gateways(ids)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	begun := make(map[ring.GatewayID]*sim.Settlement)
	for _, g := range all {
		s, err := g.Settle(cfg)
		if err != nil {
			fmt.Fprintf(&out, "%s: no: %v\n", g.ID, err)
			continue
		}
		begun[g.ID] = s
	}
	_, held := f.until(actBound, func() bool {
		return !slices.ContainsFunc(all, func(g *sim.Gateway) bool { return begun[g.ID] != nil && begun[g.ID].Report == nil && g.Alive })
	})
	for _, g := range all {
		switch s := begun[g.ID]; {
		case s == nil:
		case s.Report == nil:
			fmt.Fprintf(&out, "%s: no report, over %v\n", g.ID, held)
		default:
			fmt.Fprintf(&out, "%s %s\n", g.ID, settled(s))
		}
	}
	f.w.Run(time.Second)
	return out.String(), nil
}

// settled is a report of a settle, and whom it told to move.
func settled(s *sim.Settlement) string {
	r, told, most := *s.Report, make(map[ring.MemberID]int), 0
	r.Took = r.Took.Round(time.Millisecond)
	for _, o := range s.Orders {
		told[o.Member]++
		most = max(most, told[o.Member])
	}
	orders := "nobody was asked"
	if len(told) > 0 {
		orders = fmt.Sprintf("orders: %d, supervisors: %d, at most %d each", len(s.Orders), len(told), most)
	}
	for i, m := range r.Failed {
		orders += map[bool]string{true: "; failed: ", false: ", "}[i == 0] + fmt.Sprintf("%s %s", m.Member, m.Cause)
	}
	if r.Unrest != "" {
		orders += "; unrest: " + r.Unrest
	}
	return fmt.Sprintf("%s; %s", r, orders)
}
