// SPDX-License-Identifier: Apache-2.0

// Rollout runs a whole fleet on this machine and puts it through what fleets
// go through. It starts gateways and supervisors as processes of their own, with real streams
// over TCP, gRPC's or WebSockets, puts a load balancer that picks at random in front, and
// goes through these steps:
//
//	start                everything starts, supervisors at once
//	restart-supervisors  every supervisor is killed and started again at once
//	token-refresh        each gateway ends every stream, as an expired token does
//	rolling              each gateway in turn: a replacement starts, the old one hands over and stops;
//	                     with -surge=false the other way round, and with -settle those above the even share move at the end
//	crash                one gateway is killed
//	scale-up             one gateway more, and then newcomers
//	chaos                for as long as -for says, one blow after the other, as the seed has it; not part of all
//
// With -echo, so many supervisors are asked all the while, through gateways picked at
// random. No request may be executed twice, and each must be answered, but in the
// steps that kill processes: there, what has no answer is told and allowed.
//
// After each step it says who serves how many supervisors, who moved, and how
// long anybody was without a stream. The figures come from what the processes saw. The exit status is 0
// only if every step held: 1 if one did not, 2 for a bad command line.
//
// Usage:
//
//	go run ./examples/rollout [-gateways 3] [-supervisors 12] [-sessions 2] [-steps all] [-surge=true] [-settle]
//		[-transport grpc] [-echo 0] [-echo-every 10ms] [-json] [-seed N] [-timeout 2m]
//	go run ./examples/rollout -steps chaos -for 5m [-gateways 4] [-supervisors 60] [-echo 10]
//
// # Chaos
//
// Gateways and processes with supervisors are killed, told to stop, and paused, for moments and
// for longer than anybody waits; connections are reset, the Service, or one gateway's endpoint,
// takes none, and gateways hear no gossip; one, two at a time, or all. In between credentials expire and an operator settles. After each act
// the fleet must come to rest within bounds that follow from the defaults:
//
//   - everybody is served, every session where its supervisor is, and the gateways' gauges say the same
//   - all gateways' rosters are the same, and list who is served where; who has ended is forgotten
//   - every gateway is ready, and every supervisor can be asked through every one
//   - no process has more goroutines or files open than what it holds explains, nor more with every act
//   - nobody has moved to whom nothing had happened; in a drain nobody was without a stream, or moved twice
//   - no process has ended that was not told to, and who was, in time and with status 0
//   - with -echo, nothing was executed twice, and every request answered unless processes or connections broke
//
// An act that does not hold is told with the seed, and the next one follows if the fleet comes to rest. -json prints
// one object an act, and one for the step. It needs Linux, where a process may gossip at an address of its own.
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
	"strings"
	"syscall"
	"time"

	"github.com/evenring/evenring/examples/internal/child"
)

func main() {
	child.Play("rollout", map[string]func([]string) int{"gateway": child.Gateway, "supervisor": child.Supervisors})
	os.Exit(show(os.Args[1:], os.Stdout, os.Stderr))
}

// show runs the steps and returns the exit status.
func show(args []string, stdout, stderr io.Writer) int {
	cfg, err := parseFlags(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, "rollout:", err)
		return 2
	}
	if cfg.seed == 0 {
		cfg.seed = uint64(time.Now().UnixNano())
	}
	told, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(told, cfg.timeout+cfg.chaosFor, fmt.Errorf("-timeout of %v is over", cfg.timeout+cfg.chaosFor))
	defer cancel()

	fleet, err := newFleet(cfg)
	if err != nil {
		fmt.Fprintln(stderr, "rollout:", err)
		return 1
	}
	people := stdout
	if cfg.json {
		people = stderr
	}
	scr := newScreen(people, fleet.board)
	scr.say(fmt.Sprintf("%d gateways, %d supervisors with %d sessions each, the Service at %s, seed %d",
		cfg.gateways, cfg.supervisors, cfg.sessions, fleet.balance.address(), cfg.seed))
	failed := play(ctx, fleet, scr, stdout)
	scr.begin("stop")
	err = fleet.close(failed > 0)
	scr.close()
	if failed == 0 && err == nil {
		fmt.Fprintln(people, "Every step held.")
		return 0
	}
	if failed > 0 {
		fmt.Fprintf(people, "%d of %d steps did not hold.\n", failed, len(cfg.steps))
	}
	if err != nil {
		fmt.Fprintln(stderr, "rollout: not everything ended well:", err)
	}
	if told.Err() == nil && !cfg.chaos() { // there are too many of them by then
		fmt.Fprint(stderr, child.Tail(fleet.dir, 12))
	}
	fmt.Fprintf(people, "Logs are in %s\n", fleet.dir)
	return 1
}

// play runs the steps and returns how many did not hold. Those that there was
// no time for did not.
func play(ctx context.Context, fleet *fleet, scr *screen, stdout io.Writer) int {
	failed := 0
	r := &run{fleet: fleet, screen: scr, stdout: stdout}
	names := fleet.cfg.steps
	for i, name := range names {
		if ctx.Err() != nil {
			scr.say(fmt.Sprintf("not run, for %v: %s", context.Cause(ctx), strings.Join(names[i:], ", ")))
			return failed + len(names) - i
		}
		scr.begin(name)
		res := r.play(ctx, find(name))
		scr.say(res.line())
		if fleet.cfg.json {
			if err := json.NewEncoder(stdout).Encode(res); err != nil {
				scr.say("rollout: " + err.Error())
				return failed + len(names) - i
			}
		}
		if !res.OK {
			failed++
		}
		if i == 0 && len(names) > 1 {
			fleet.startEchoes()
		}
	}
	return failed
}
