// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"
)

// config is what the command line says.
type config struct {
	gateways    int
	supervisors int
	hosts       int
	rounds      int
	within      time.Duration
	timeout     time.Duration
	json        bool
}

// parseFlags reads the command line. Every fault names its flag.
func parseFlags(args []string, usage io.Writer) (config, error) {
	var c config
	fs := flag.NewFlagSet("convergence", flag.ContinueOnError)
	fs.SetOutput(usage)
	fs.IntVar(&c.gateways, "gateways", 16, "gateway processes")
	fs.IntVar(&c.supervisors, "supervisors", 20_000, "supervisors, each with a stream and a connection of its own")
	fs.IntVar(&c.hosts, "hosts", 4, "processes that share the supervisors")
	fs.IntVar(&c.rounds, "rounds", 5, "bursts in which everybody comes back at once, after the start")
	fs.DurationVar(&c.within, "within", 5*time.Second, "once the last supervisor is attached, all rosters must agree within so long")
	fs.BoolVar(&c.json, "json", false, "print one JSON object a round and one for all on standard output, and nothing else there")
	fs.DurationVar(&c.timeout, "timeout", 20*time.Minute, "for the whole run")
	if err := fs.Parse(args); err != nil {
		return config{}, err
	}
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if fs.NArg() > 0 {
		fault("unexpected argument %q", fs.Arg(0))
	}
	for _, n := range []struct {
		flag  string
		value int
	}{{"-gateways", c.gateways}, {"-supervisors", c.supervisors}, {"-hosts", c.hosts}, {"-rounds", c.rounds}} {
		if n.value < 1 {
			fault("%s is %d; at least 1 is needed", n.flag, n.value)
		}
	}
	if c.hosts > c.supervisors && c.supervisors > 0 {
		fault("-hosts is %d; there are only %d -supervisors to share", c.hosts, c.supervisors)
	}
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{{"-within", c.within}, {"-timeout", c.timeout}} {
		if d.value <= 0 {
			fault("%s is %v; it must be above 0", d.flag, d.value)
		}
	}
	return c, errors.Join(errs...)
}

// spare is how many files a process has open beside its supervisors' streams.
const spare = 200

// fits checks that no process needs more open files than it may have: one for
// each supervisor in its host, and for each at its gateway up to twice that in a burst.
func (c config) fits(limit uint64) error {
	share := func(parts int) uint64 { return uint64((c.supervisors+parts-1)/parts) + spare }
	if need := share(c.hosts); need > limit {
		return fmt.Errorf("-hosts is %d; each would open %d files, and may open %d (ulimit -n)", c.hosts, need, limit)
	}
	if need := 2 * share(c.gateways); need > limit {
		return fmt.Errorf("-gateways is %d; each would open up to %d files, and may open %d (ulimit -n)", c.gateways, need, limit)
	}
	return nil
}
