// SPDX-License-Identifier: Apache-2.0

// Simulate answers what a fleet would do that is larger than this machine, on a
// virtual clock and without a socket. With -herd a whole fleet of newcomers arrives at once, through a
// Service that picks a gateway at random, while the gateways' views are stale:
//
//	go run ./examples/simulate -herd
//
// Each row is one way to place them, this library's own machines among them:
// how far the fullest gateway ends above the cap, most minus fewest served, and what that
// costs in dials and in questions between gateways. Views are refreshed whenever 1 % or 10 % more are
// served, or never (100 %: throughout, every view is that of the start, when nobody was served). Figures are the
// worst over several seeds, and means. Small fleets follow, which must end even however their messages
// overtake each other.
//
// The simple ways share one array of loads, count a supervisor as soon as it is placed, and are told the
// cap that the wave will end with: more than a gateway could know.
//
// The exit status is 1 if one of this library's targets is missed, each named; 2 for a bad command line.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// config is what the command line says.
type config struct {
	gateways      []int
	supervisors   int
	seeds         int
	first         uint64
	ways          []string
	over          time.Duration
	interleavings int
	json          bool
}

// parse reads the command line. Every fault names its flag.
func parse(args []string, usage io.Writer) (config, error) {
	var c config
	fs := flag.NewFlagSet("simulate", flag.ContinueOnError)
	fs.SetOutput(usage)
	herd := fs.Bool("herd", false, "let a whole fleet arrive at once on stale views")
	gateways := fs.String("gateways", "3,16,128", "numbers of gateways, with commas")
	fs.IntVar(&c.supervisors, "supervisors", 10_000, "supervisors")
	fs.IntVar(&c.seeds, "seeds", 3, "seeds for each row")
	fs.Uint64Var(&c.first, "seed", 0, "the first seed")
	names := fs.String("ways", "all", "rows: all, or some of "+strings.Join(wayNames(), ","))
	fs.DurationVar(&c.over, "over", 0, "spread the arrivals over so much time; 0: all at once")
	fs.IntVar(&c.interleavings, "interleavings", 10_000, "seeds for the small fleets; 0: leave them out")
	fs.BoolVar(&c.json, "json", false, "print one JSON object a row on standard output, and nothing else there")
	if err := fs.Parse(args); err != nil {
		return config{}, err
	}
	var errs []error
	if fs.NArg() > 0 {
		errs = append(errs, fmt.Errorf("unexpected argument %q", fs.Arg(0)))
	}
	if !*herd {
		errs = append(errs, errors.New("nothing to simulate: give -herd"))
	}
	for text := range strings.SplitSeq(*gateways, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			errs = append(errs, fmt.Errorf("-gateways: %q is no number of gateways", text))
		}
		c.gateways = append(c.gateways, n)
	}
	if c.supervisors < 1 {
		errs = append(errs, fmt.Errorf("-supervisors is %d; at least 1 is needed", c.supervisors))
	}
	if c.seeds < 1 {
		errs = append(errs, fmt.Errorf("-seeds is %d; at least 1 is needed", c.seeds))
	}
	if c.over < 0 {
		errs = append(errs, fmt.Errorf("-over is %v; it cannot be below 0", c.over))
	}
	if c.interleavings < 0 {
		errs = append(errs, fmt.Errorf("-interleavings is %d; it cannot be below 0", c.interleavings))
	}
	c.ways = wayNames()
	if *names != "all" {
		c.ways = strings.Split(*names, ",")
	}
	for _, name := range c.ways {
		if !slices.Contains(wayNames(), name) {
			errs = append(errs, fmt.Errorf("-ways: no way is called %q; there are %s", name, strings.Join(wayNames(), ", ")))
		}
	}
	return c, errors.Join(errs...)
}

func run(args []string, stdout, stderr io.Writer) int {
	cfg, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, "simulate:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	missed, err := simulate(ctx, cfg, printer(cfg.json, stdout))
	if err != nil {
		fmt.Fprintln(stderr, "simulate:", err)
		return 1
	}
	people := stdout
	if cfg.json {
		people = stderr
	}
	return verdict(missed, people)
}

// verdict names what was missed, and returns the exit status.
func verdict(missed []string, people io.Writer) int {
	for _, m := range missed {
		fmt.Fprintln(people, "MISSED:", m)
	}
	if len(missed) > 0 {
		return 1
	}
	fmt.Fprintln(people, "Every target is met.")
	return 0
}
