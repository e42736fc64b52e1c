// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/evenring/evenring/examples/internal/child"
	"github.com/evenring/evenring/examples/internal/scrape"
)

// usage is what a process has open.
type usage struct {
	Goroutines float64 `json:"goroutines"`
	Files      float64 `json:"files"`
}

func (u usage) plus(o usage) usage { return usage{u.Goroutines + o.Goroutines, u.Files + o.Files} }

func (u usage) minus(o usage) usage { return usage{u.Goroutines - o.Goroutines, u.Files - o.Files} }

func (u usage) times(f float64) usage { return usage{u.Goroutines * f, u.Files * f} }

func (u usage) most(o usage) usage {
	return usage{max(u.Goroutines, o.Goroutines), max(u.Files, o.Files)}
}

func (u usage) least(o usage) usage {
	return usage{min(u.Goroutines, o.Goroutines), min(u.Files, o.Files)}
}

// above reports whether either is above that of o.
func (u usage) above(o usage) bool { return u.Goroutines > o.Goroutines || u.Files > o.Files }

func (u usage) String() string {
	return fmt.Sprintf("%.1f goroutines and %.1f files", u.Goroutines, u.Files)
}

// sample is what one process says of itself.
type sample struct {
	name   string
	pid    int
	served int // supervisors; 0 for a process that hosts them
	usage
}

// bill is what a process at rest may have open.
type bill struct {
	gateway usage            // one that serves nobody
	each    usage            // what a supervisor and its sessions add at their gateway
	hosts   map[string]usage // processes with supervisors, by name
}

// newBill reads it off two moments of rest, in which the gateways served different numbers.
func newBill(few, many, hosts []sample) (bill, error) {
	b := bill{hosts: make(map[string]usage)}
	var more usage
	supervisors := 0
	for i, m := range many {
		more = more.plus(m.usage.minus(few[i].usage))
		supervisors += m.served - few[i].served
	}
	if supervisors <= 0 {
		return b, fmt.Errorf("%d supervisors more are not enough to learn what each needs", supervisors)
	}
	b.each = more.times(1 / float64(supervisors))
	for _, s := range slices.Concat(few, many) {
		b.gateway = b.gateway.most(s.usage.minus(b.each.times(float64(s.served))))
	}
	for _, s := range hosts {
		b.hosts[s.name] = s.usage
	}
	return b, nil
}

func (b bill) String() string {
	return fmt.Sprintf("a gateway has %v open, and %v for each supervisor", b.gateway, b.each)
}

// over returns what a process has open beyond its bill.
func (b bill) over(s sample) usage {
	if host, ok := b.hosts[s.name]; ok {
		return s.usage.minus(host)
	}
	return s.usage.minus(b.gateway).minus(b.each.times(float64(s.served)))
}

// note adds what processes have open beyond their bill to their history, if the moment is worth it, and returns the most.
func (b bill) note(samples []sample, open history, worth bool) (most usage) {
	for _, s := range samples {
		over := b.over(s)
		open.note(s.key(), over, worth)
		most = most.most(over)
	}
	return most
}

// judge says which processes have more open than they may.
func (b bill) judge(samples []sample, slack usage) []string {
	var why []string
	for _, s := range samples {
		if over := b.over(s); over.above(slack) {
			why = append(why, fmt.Sprintf("%s has %v, %v more than what it holds explains", s.name, s.usage, over))
		}
	}
	return why
}

// history is how much each process had open beyond its bill, after each act that it has lived through.
type history map[string]*life

// life is that of one process.
type life struct {
	acts  int
	looks []moment
}

// moment is one that was worth noting.
type moment struct {
	acts int // that the process had lived through
	over usage
}

// note adds an act.
func (h history) note(process string, over usage, worth bool) {
	if h[process] == nil {
		h[process] = new(life)
	}
	l := h[process]
	l.acts++
	if worth {
		l.looks = append(l.looks, moment{l.acts, over})
	}
}

// growth is by how much that grows with each act at least, over all processes: the slope of the
// straight lines that fit best, all with the same and each from where its process began, less three times its
// standard error, for what comes and goes. With less than degrees more looks than lines it is 0.
func (h history) growth() usage {
	var slope, square, evidence = usage{}, usage{}, 0.0
	const degrees = 4
	left := -degrees - 1
	for _, process := range slices.Sorted(maps.Keys(h)) {
		looks := h[process].looks
		if len(looks) < 2 {
			continue
		}
		left += len(looks) - 1
		x, y := 0.0, usage{}
		for _, m := range looks {
			x += float64(m.acts) / float64(len(looks))
			y = y.plus(m.over.times(1 / float64(len(looks))))
		}
		for _, m := range looks {
			dx, dy := float64(m.acts)-x, m.over.minus(y)
			slope = slope.plus(dy.times(dx))
			square = square.plus(usage{dy.Goroutines * dy.Goroutines, dy.Files * dy.Files})
			evidence += dx * dx
		}
	}
	if left < 0 {
		return usage{}
	}
	least := func(slope, square float64) float64 {
		slope /= evidence
		unexplained := max(0, square-slope*slope*evidence) / float64(left+degrees)
		return max(0, slope-3*math.Sqrt(unexplained/evidence))
	}
	return usage{least(slope.Goroutines, square.Goroutines), least(slope.Files, square.Files)}
}

// key tells apart processes that follow each other under one name.
func (s sample) key() string { return fmt.Sprintf("%s/%d", s.name, s.pid) }

// lower lowers what was read before to what is read now. It reports whether both are of the same
// processes, which serve the same.
func lower(before, now []sample) bool {
	for i, s := range now {
		if i >= len(before) || before[i].key() != s.key() || before[i].served != s.served {
			return false
		}
		before[i].usage = before[i].least(s.usage)
	}
	return len(before) == len(now)
}

// samples reads what every process has open.
func (f *fleet) samples(ctx context.Context) (gateways, hosts []sample, err error) {
	for _, id := range f.ids() {
		s, err := readSample(ctx, f.gateways[id].Process, f.gateways[id].ops, "evenring_supervisors_served")
		if err != nil {
			return nil, nil, err
		}
		gateways = append(gateways, s)
	}
	for _, h := range f.hosts {
		ops := h.ops.Load()
		if ops == nil {
			continue // it does not run
		}
		s, err := readSample(ctx, h.Process, *ops, "")
		if err != nil {
			return nil, nil, err
		}
		hosts = append(hosts, s)
	}
	return gateways, hosts, nil
}

func readSample(ctx context.Context, p *child.Process, ops, served string) (sample, error) {
	s := sample{name: p.Name, pid: p.Cmd.Process.Pid}
	page, err := scrape.Get(ctx, ops)
	if err != nil {
		return s, fmt.Errorf("%s: %w", s.name, err)
	}
	read := func(metric string) float64 {
		v, lacks := page.Sum(metric)
		if lacks != nil {
			err = fmt.Errorf("%s: %w", s.name, lacks)
		}
		return v
	}
	s.Goroutines, s.Files = read("go_goroutines"), read("process_open_fds")
	if served != "" {
		s.served = int(read(served))
	}
	return s, err
}
