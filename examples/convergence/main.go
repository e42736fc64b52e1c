// SPDX-License-Identifier: Apache-2.0

// Convergence measures how soon all gateways of a fleet agree on who serves
// whom after everybody has come back at once. It starts gateways as processes
// of their own on this machine, joined by gossip over loopback, and a few
// processes that host many supervisors each, with a gRPC stream over TCP for every supervisor.
//
// At the start the supervisors come to a Service that picks a gateway at
// random, a few at a time, and stay there: they always ask to be kept, since this
// measures the rosters and not the placing. Then come bursts: the network breaks every connection of
// every supervisor at the same moment, without a goodbye. Each gateway expects
// its supervisors back, and all of them want back at once, 100 at a time from every
// host: to their home, with a new generation, or to any gateway once that has not answered in time. After the last one is
// attached again, two times count, for each gateway:
//
//	agree  from there until this gateway's roster last changed
//	lag    from the last change of any gateway's own record until then
//
// The rosters must then be equal in all gateways, member by member and with
// the same generations, and say what the supervisors say: everybody is served by the gateway that
// accepted it. The gateways note these moments themselves, so how often they are asked
// does not blur them. The gossip's messages and bytes are counted from before the burst
// until the rosters agree, and so are the CPU seconds.
//
// The exit status is 0 only if the rosters were right and agreed in time after
// every burst, and at the start: 1 if they were not, 2 for a bad command line.
//
// Usage:
//
//	go run ./examples/convergence [-gateways 16] [-supervisors 20000] [-hosts 4] [-rounds 5] [-within 5s] [-json] [-timeout 20m]
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/evenring/evenring/examples/internal/child"
)

func main() {
	child.Play("convergence", map[string]func([]string) int{"gateway": child.Gateway, "supervisor": playSupervisors})
	os.Exit(show(os.Args[1:], os.Stdout, os.Stderr))
}

// show measures and returns the exit status.
func show(args []string, stdout, stderr io.Writer) int {
	cfg, err := parseFlags(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err == nil {
		err = cfg.fits(openFiles())
	}
	if err != nil {
		fmt.Fprintln(stderr, "convergence:", err)
		return 2
	}
	told, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(told, cfg.timeout, fmt.Errorf("-timeout of %v is over", cfg.timeout))
	defer cancel()

	f, err := newFleet(cfg)
	if err != nil {
		fmt.Fprintln(stderr, "convergence:", err)
		return 1
	}
	out := printer{people: stdout}
	if cfg.json {
		out = printer{people: stderr, machine: json.NewEncoder(stdout)}
	}
	out.say("%d gateways, %d supervisors in %d processes, %d bursts; all are to agree within %v",
		cfg.gateways, cfg.supervisors, cfg.hosts, cfg.rounds, cfg.within)
	err = measure(ctx, f, &out)
	failed := err != nil
	if failed {
		fmt.Fprintln(stderr, "convergence:", err)
	}
	if err := f.close(failed); err != nil {
		fmt.Fprintln(stderr, "convergence: not everything ended well:", err)
		failed = true
	}
	if failed {
		if told.Err() == nil {
			fmt.Fprint(stderr, child.Tail(f.dir, 5))
		}
		out.say("Logs are in %s", f.dir)
		return 1
	}
	return 0
}

// errDisagree: a round did not hold.
var errDisagree = errors.New("the rosters were not right, or not in time")

// measure starts the fleet and goes through the bursts. Its error is errDisagree
// if everything could be measured.
func measure(ctx context.Context, f *fleet, out *printer) error {
	if err := f.startGateways(ctx); err != nil {
		return err
	}
	var all []result
	for round := range f.cfg.rounds + 1 {
		res, err := f.round(ctx, round)
		if err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		all = append(all, res)
		if err := out.round(res); err != nil {
			return err
		}
	}
	sum := summarize(all)
	if err := out.summary(sum); err != nil {
		return err
	}
	if !sum.OK {
		return errDisagree
	}
	return nil
}
