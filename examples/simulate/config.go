// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evenring/evenring/examples/simulate/internal/scale"
	"github.com/evenring/evenring/internal/herd"
)

// config is what the command line says.
type config struct {
	gateways    []int
	supervisors []int
	first       uint64
	json        bool

	herd          bool
	seeds         int
	ways          []string
	over          time.Duration
	latency       time.Duration
	interleavings int

	plan   scale.Plan
	grow   bool
	surge  bool
	settle bool
	plot   string
}

// Flags that go with one kind of run and not with the other.
var (
	herdFlags = []string{"seeds", "ways", "over", "latency", "interleavings"}
	planFlags = []string{"plan", "grow", "surge", "settle", "plot"}
)

// sizes are the fleets of each kind of run, if the command line does not say.
var sizes = map[string]struct{ gateways, supervisors string }{
	"-herd": {"3,16,128", "10000"},
	"-plan": {"10", "10000"},
	"-grow": {"2,10,100,1000", "100,1000,10000,100000,1000000,10000000"},
}

// parse reads the command line. Every fault names its flag.
func parse(args []string, usage io.Writer) (config, error) {
	var c config
	var plans []string
	for _, p := range scale.Plans() {
		plans = append(plans, string(p))
	}
	fs := flag.NewFlagSet("simulate", flag.ContinueOnError)
	fs.SetOutput(usage)
	fs.BoolVar(&c.herd, "herd", false, "let a whole fleet arrive at once on stale views")
	plan := fs.String("plan", "", "the `plan` to carry out: "+strings.Join(plans, ", "))
	fs.BoolVar(&c.grow, "grow", false, "carry the plan out on fleets of many sizes")
	gateways := fs.String("gateways", "", "`numbers` of gateways, with commas; one for -plan")
	supervisors := fs.String("supervisors", "", "`numbers` of supervisors, with commas; one for -plan and -herd")
	fs.Uint64Var(&c.first, "seed", 0, "the first seed")
	fs.BoolVar(&c.json, "json", false, "print one JSON object, or one a row, on standard output, and nothing else there")
	fs.BoolVar(&c.surge, "surge", true, "a gateway stops once its replacement is ready (of -plan rolling)")
	fs.BoolVar(&c.settle, "settle", false, "settle at the end of the plan")
	fs.StringVar(&c.plot, "plot", "", "draw what happened into this `file`, .png or .svg")
	fs.IntVar(&c.seeds, "seeds", 3, "seeds for each row of -herd")
	names := fs.String("ways", "all", "rows of -herd: all, or some of "+strings.Join(wayNames(), ","))
	fs.DurationVar(&c.over, "over", 0, "spread the arrivals of -herd over so much time; 0: all at once")
	fs.DurationVar(&c.latency, "latency", herd.DefaultLatency, "the longest way of a message of -herd; the shortest takes 1ms, or this if it is less")
	fs.IntVar(&c.interleavings, "interleavings", 10_000, "seeds for the small fleets of -herd; 0: leave them out")
	if err := fs.Parse(args); err != nil {
		return config{}, err
	}
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if fs.NArg() > 0 {
		fault("unexpected argument %q", fs.Arg(0))
	}
	kind := c.kind(*plan)
	if kind == "" {
		return config{}, errors.Join(append(errs, errors.New("nothing to simulate: give -herd, -plan or -grow"))...)
	}
	fs.Visit(func(f *flag.Flag) {
		switch {
		case c.herd && slices.Contains(planFlags, f.Name):
			fault("-%s does not go with -herd", f.Name)
		case !c.herd && slices.Contains(herdFlags, f.Name):
			fault("-%s goes with -herd alone", f.Name)
		}
	})
	c.gateways = numbers("-gateways", "gateways", cmp.Or(*gateways, sizes[kind].gateways), fault)
	c.supervisors = numbers("-supervisors", "supervisors", cmp.Or(*supervisors, sizes[kind].supervisors), fault)
	if len(c.supervisors) > 1 && !c.grow {
		fault("-supervisors: %q; %s takes one number", *supervisors, kind)
	}
	if len(c.gateways) > 1 && kind == "-plan" {
		fault("-gateways: %q; -plan takes one number", *gateways)
	}
	if c.herd {
		c.ways = wayNames()
		if *names != "all" {
			c.ways = strings.Split(*names, ",")
		}
		c.examineHerd(fault)
	} else {
		c.plan = scale.Plan(*plan)
		if *plan == "" {
			c.plan = scale.Burst
		}
		c.examinePlan(plans, fault)
	}
	return c, errors.Join(errs...)
}

// kind is the flag that says what kind of run it is; empty: none.
func (c config) kind(plan string) string {
	switch {
	case c.herd:
		return "-herd"
	case c.grow:
		return "-grow"
	case plan != "":
		return "-plan"
	default:
		return ""
	}
}

// numbers reads numbers from 1 up, with commas between them.
func numbers(name, what, list string, fault func(string, ...any)) []int {
	var all []int
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			fault("%s: %q is no number of %s", name, text, what)
		}
		all = append(all, n)
	}
	return all
}

func (c config) examineHerd(fault func(string, ...any)) {
	if c.seeds < 1 {
		fault("-seeds is %d; at least 1 is needed", c.seeds)
	}
	if c.over < 0 {
		fault("-over is %v; it cannot be below 0", c.over)
	}
	if c.latency <= 0 {
		fault("-latency is %v; it must be above 0", c.latency)
	}
	if c.interleavings < 0 {
		fault("-interleavings is %d; it cannot be below 0", c.interleavings)
	}
	for _, name := range c.ways {
		if !slices.Contains(wayNames(), name) {
			fault("-ways: no way is called %q; there are %s", name, strings.Join(wayNames(), ", "))
		}
	}
}

func (c config) examinePlan(plans []string, fault func(string, ...any)) {
	if !slices.Contains(plans, string(c.plan)) {
		fault("-plan: no plan is called %q; there are %s", c.plan, strings.Join(plans, ", "))
	}
	for _, n := range c.gateways {
		if n == 1 || n > scale.MaxGateways {
			fault("-gateways: a plan takes from 2 to %d, and not %d", scale.MaxGateways, n)
		}
	}
	for _, n := range c.supervisors {
		if n > scale.MaxSupervisors {
			fault("-supervisors: a plan takes at most %d, and not %d", scale.MaxSupervisors, n)
		}
	}
	if c.plot != "" && !slices.Contains(formats, filepath.Ext(c.plot)) {
		fault("-plot: %q ends neither in %s", c.plot, strings.Join(formats, " nor in "))
	}
}

// fleets returns the runs of -plan or -grow.
func (c config) fleets() []scale.Config {
	var all []scale.Config
	for _, g := range c.gateways {
		for _, s := range c.supervisors {
			all = append(all, scale.Config{Plan: c.plan, Gateways: g, Supervisors: s, Surge: c.surge, Settle: c.settle, Seed: c.first})
		}
	}
	return all
}
