// SPDX-License-Identifier: Apache-2.0

package fleetscript

import (
	"slices"
	"strings"

	"github.com/evenring/evenring/internal/sim"
	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/ring"
)

func (f *fleet) cutOff(a, b string) {
	f.cuts = append(f.cuts, [2]string{a, b})
	f.w.Cut(a, b)
}

// expand returns the names of both ends that words stand for; who has not started yet may be cut off, too.
func expand(words []string) ([]string, error) {
	all, err := members(words)
	names := make([]string, len(all))
	for i, m := range all {
		names[i] = string(m)
	}
	return names, err
}

func (f *fleet) cut(args []string) (string, error) {
	all, err := expand(args[1:])
	for _, other := range all {
		f.cutOff(args[0], other)
	}
	return "", err
}

func (f *fleet) partition(args []string) (string, error) {
	at := slices.Index(args, "|")
	if at < 1 || at == len(args)-1 {
		return "", misuse("no two sides")
	}
	for _, a := range args[:at] {
		for _, b := range args[at+1:] {
			f.cutOff(a, b)
		}
	}
	return "", nil
}

func (f *fleet) heal([]string) (string, error) {
	for _, c := range f.cuts {
		f.w.Mend(c[0], c[1])
	}
	f.cuts = nil
	return "", nil
}

func (f *fleet) notice(args []string) (string, error) {
	d, err := duration(args[0])
	f.w.Links.Notice = d
	return "", err
}

// changeAll changes what is wrong with several links.
func (f *fleet) changeAll(words []string, how func(*sim.Link)) (string, error) {
	for _, word := range words {
		if err := f.change(word, how); err != nil {
			return "", err
		}
	}
	return "", nil
}

func (f *fleet) lose(args []string) (string, error) {
	return f.changeAll(args, func(l *sim.Link) { l.Loss = 1 })
}

func (f *fleet) hold(args []string) (string, error) {
	return f.changeAll(args, func(l *sim.Link) { l.Hold = true })
}

func (f *fleet) delay(args []string) (string, error) {
	d, err := duration(args[1])
	if err != nil {
		return "", err
	}
	return "", f.change(args[0], func(l *sim.Link) { l.Delay = d })
}

func (f *fleet) release(args []string) (string, error) {
	for _, word := range args {
		if err := f.change(word, func(l *sim.Link) { *l = sim.Link{} }); err != nil {
			return "", err
		}
		from, to, _ := link(word)
		f.w.Release(from, to)
	}
	return "", nil
}

func (f *fleet) mute([]string) (string, error) {
	f.w.Mute = true
	return "", nil
}

func (f *fleet) garble(args []string) (string, error) {
	from, to, err := link(args[0])
	if err == nil {
		f.garbled[[2]string{from, to}] = true
	}
	return "", err
}

func (f *fleet) lie(args []string) (string, error) {
	if err := word(args, "about"); err != nil {
		return "", err
	}
	from, to, err := link(args[0])
	if err != nil {
		return "", err
	}
	listener, err := f.alive(to)
	if err != nil {
		return "", err
	}
	victim, err := f.alive(args[2])
	if err != nil {
		return "", err
	}
	origin := origin(victim)
	origin.Counts = placement.Counts{Incarnation: origin.Incarnation, Sequence: origin.Sequence + 9}
	listener.Step(roster.Received{From: ring.GatewayID(from), Message: roster.Snapshot{Origin: origin, Pages: 1}})
	return "", nil
}

// origin is what a gateway says of itself.
func origin(g *sim.Gateway) roster.Origin {
	self, _ := g.Admission.Roster().Gateway(g.ID)
	return roster.Origin{Gateway: g.ID, Endpoint: self.Endpoint, State: self.State, Counts: self.Counts}
}

func (f *fleet) echo(args []string) (string, error) {
	g, err := f.alive(args[0])
	if err == nil {
		g.Step(roster.LinkUp{Gateway: g.ID})
		g.Step(roster.Received{Message: roster.Heartbeat{Origin: origin(g)}})
	}
	return "", err
}

func (f *fleet) pause(args []string) (string, error) {
	all, err := f.hosts(args)
	for _, h := range all {
		h.Pause()
	}
	return "", err
}

func (f *fleet) resume(args []string) (string, error) {
	all, err := f.hosts(args)
	for _, h := range all {
		h.Resume()
	}
	return "", err
}

func (f *fleet) discovery(args []string) (string, error) {
	who, ok := strings.CutSuffix(args[0], ":")
	if !ok {
		return "", misuse("no colon after %q", args[0])
	}
	return f.each([]string{who}, func(g *sim.Gateway) { g.Step(list(args[1:])) })
}
