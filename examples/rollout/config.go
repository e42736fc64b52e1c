// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/evenring/evenring/examples/internal/wire"
)

// config is what the command line says.
type config struct {
	gateways    int
	supervisors int
	sessions    int
	steps       []string
	surge       bool
	settle      bool
	echo        int
	echoEvery   time.Duration
	transport   wire.Kind
	json        bool
	seed        uint64
	timeout     time.Duration
	chaosFor    time.Duration
	propagation time.Duration
	window      time.Duration
}

// chaos reports whether that step is among those to run.
func (c config) chaos() bool { return slices.Contains(c.steps, chaosStep) }

// killAfter is when a gateway that drains would be killed.
func (c config) killAfter() time.Duration { return c.propagation + c.window + 20*time.Second }

// parseFlags reads the command line. Every fault names its flag.
func parseFlags(args []string, usage io.Writer) (config, error) {
	var c config
	fs := flag.NewFlagSet("rollout", flag.ContinueOnError)
	fs.SetOutput(usage)
	fs.IntVar(&c.gateways, "gateways", 3, "gateway processes")
	fs.IntVar(&c.supervisors, "supervisors", 12, "supervisors")
	fs.IntVar(&c.sessions, "sessions", 2, "child sessions of each supervisor")
	names := fs.String("steps", "all", "steps to run, in their order: all, which is all but "+chaosStep+", or some of "+strings.Join(stepNames(), ","))
	fs.DurationVar(&c.chaosFor, "for", time.Minute, "how long -steps chaos begins new acts")
	fs.BoolVar(&c.surge, "surge", true, "in a rolling restart, start each replacement before its gateway stops")
	fs.BoolVar(&c.settle, "settle", false, "after a rolling restart, even out who serves how many")
	fs.IntVar(&c.echo, "echo", 0, "`supervisors` that are asked all the while, through gateways picked at random, from the end of the first step to that of the last")
	fs.DurationVar(&c.echoEvery, "echo-every", 0, "time between two requests to one of -echo; 0: 10 ms for each of these, so that a request is sent every 10 ms")
	transport := wire.Register(fs)
	fs.BoolVar(&c.json, "json", false, "print one JSON object a step on standard output, and nothing else there")
	fs.Uint64Var(&c.seed, "seed", 0, "for whatever is left to chance here; 0: from the clock")
	fs.DurationVar(&c.timeout, "timeout", 2*time.Minute, "for the whole run; -for comes on top")
	fs.DurationVar(&c.propagation, "propagation", 300*time.Millisecond, "a gateway that drains hands nobody over for so long")
	fs.DurationVar(&c.window, "window", 2*time.Second, "a gateway that drains spreads its supervisors' moves over so long")
	if err := fs.Parse(args); err != nil {
		return config{}, err
	}
	c.transport = *transport
	var errs []error
	if fs.NArg() > 0 {
		errs = append(errs, fmt.Errorf("unexpected argument %q", fs.Arg(0)))
	}
	if c.gateways < 1 {
		errs = append(errs, fmt.Errorf("-gateways is %d; at least 1 is needed", c.gateways))
	}
	if c.supervisors < 1 {
		errs = append(errs, fmt.Errorf("-supervisors is %d; at least 1 is needed", c.supervisors))
	}
	if c.sessions < 0 {
		errs = append(errs, fmt.Errorf("-sessions is %d; it cannot be below 0", c.sessions))
	}
	if c.echo < 0 || c.echo > c.supervisors {
		errs = append(errs, fmt.Errorf("-echo is %d; it can be from 0 to as many as -supervisors, %d", c.echo, c.supervisors))
	}
	if c.echoEvery < 0 {
		errs = append(errs, fmt.Errorf("-echo-every is %v; it cannot be below 0", c.echoEvery))
	}
	if c.timeout <= 0 {
		errs = append(errs, fmt.Errorf("-timeout is %v; it must be above 0", c.timeout))
	}
	given := false
	fs.Visit(func(f *flag.Flag) { given = given || f.Name == "for" })
	asked := strings.Split(*names, ",")
	switch chaos := slices.Contains(asked, chaosStep); {
	case c.chaosFor <= 0:
		errs = append(errs, fmt.Errorf("-for is %v; it must be above 0", c.chaosFor))
	case given && !chaos:
		errs = append(errs, fmt.Errorf("-for is of use with -steps %s only", chaosStep))
	case !chaos:
		c.chaosFor = 0
	case c.gateways < chaosGateways:
		errs = append(errs, fmt.Errorf("-steps: chaos needs at least %d -gateways", chaosGateways))
	}
	if c.propagation <= 0 {
		errs = append(errs, fmt.Errorf("-propagation is %v; it must be above 0", c.propagation))
	}
	if c.window <= 0 {
		errs = append(errs, fmt.Errorf("-window is %v; it must be above 0", c.window))
	}
	for _, name := range asked {
		if name != "all" && !slices.Contains(stepNames(), name) {
			errs = append(errs, fmt.Errorf("-steps: no step is called %q; there are %s", name, strings.Join(stepNames(), ", ")))
		}
	}
	for _, name := range stepNames() { // in their order; the fleet has to start in any case
		if name == "start" || slices.Contains(asked, "all") && name != chaosStep || slices.Contains(asked, name) {
			c.steps = append(c.steps, name)
		}
	}
	if slices.Contains(c.steps, "crash") && c.gateways < 2 {
		if slices.Contains(asked, "crash") {
			errs = append(errs, errors.New("-steps: crash needs at least 2 -gateways"))
		}
		c.steps = slices.DeleteFunc(c.steps, func(s string) bool { return s == "crash" })
	}
	return c, errors.Join(errs...)
}
