// SPDX-License-Identifier: Apache-2.0

// Simulate answers what a fleet would do that is larger than this machine, without a socket.
//
// With -plan it carries a plan out, a decision at a time, by the real rules:
//
//	go run ./examples/simulate -plan rolling -gateways 1000 -supervisors 10000000
//
// All begin with a fleet that nobody is on, and supervisors that arrive through a Service that picks
// a gateway at random. Then
//
//	rolling    each gateway is restarted, one after the other; with -surge=false each
//	           stops before its replacement starts, which leaves the last one empty
//	crash      a tenth of the gateways is lost at once
//	burst      every stream breaks at once, and everybody comes back through the Service
//	scale-up   half the gateways join once half the supervisors are there, and then the others arrive
//	partition  two halves do not hear each other while the last tenth arrives, and then they do
//
// and with -settle the fewest moves that make it even. -plot draws what happened, -json prints one object. A supervisor takes
// seven bytes; what a decision costs is processor time, with the naming, asking and counting around it. With -grow the
// plan, burst if none is given, is run on fleets of many sizes, and a table shows how the cost grows:
//
//	go run ./examples/simulate -grow -plot growth.svg
//
// Figures of one machine are kept in the directory results.
//
// With -herd a whole fleet of newcomers arrives at once on a virtual clock, while the gateways' views are stale:
//
//	go run ./examples/simulate -herd
//
// Each row is one way to place them, this library's own machines among them:
// how far the fullest gateway ends above the cap, most minus fewest served, what that
// costs in dials and in questions between gateways, and how long it took on that clock. Views are refreshed whenever 1 % or 10 % more are
// served, or never (100 %: throughout, every view is that of the start, when nobody was served). Figures are the
// worst over several seeds, and means. Then questions and answers have trouble: whatever becomes of them, nobody is
// lost, and no gateway says yes above the limit that it was asked for. Small fleets follow, which must end even however their messages
// overtake each other; distinct are those in which not everything happened to the same in the same order.
//
// A message takes 1 ms to 20 ms, or as long as -latency says. The targets of evenness, dials and asks are for up to 20 ms: gateways search one
// after the other, so that a burst takes longer on a slow network, and in the end longer than a supervisor waits for its verdict.
//
// The simple ways take no time: they share one array of loads, in which who is placed is served before the next one comes, and are told the
// cap that the wave will end with: more than a gateway could know.
//
// The exit status is 1 if a plan's promise is broken, or one of this library's targets is missed, each named; 2 for a bad command line.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

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
	people := stdout
	if cfg.json {
		people = stderr
	}
	if cfg.herd {
		targets, err := simulate(ctx, cfg, printer(cfg.json, stdout))
		return verdict(err, targets.missed, "MISSED:", targets.met(), people, stderr)
	}
	pic, err := newPicture(cfg.plot)
	if err != nil {
		fmt.Fprintln(stderr, "simulate: -plot:", err)
		return 2
	}
	broken, err := scaled(ctx, cfg, pic, stdout, people, stderr)
	err = pic.close(err)
	return verdict(err, broken, "BROKEN:", "Every promise is kept.", people, stderr)
}

// verdict names what was missed, or why there is no verdict, and returns the exit status.
func verdict(err error, missed []string, word, well string, people, stderr io.Writer) int {
	if err != nil {
		fmt.Fprintln(stderr, "simulate:", err)
		return 1
	}
	for _, m := range missed {
		fmt.Fprintln(people, word, m)
	}
	if len(missed) > 0 {
		return 1
	}
	fmt.Fprintln(people, well)
	return 0
}
