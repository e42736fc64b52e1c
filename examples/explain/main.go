// SPDX-License-Identifier: Apache-2.0

// Explain tells where a supervisor would be placed in a fleet, and why; and
// what a plan of stops and starts would come to:
//
//	go run ./examples/explain -gateways a=3,b=4,c=2:draining -member sup-7
//	go run ./examples/explain -gateways a=10,b=10,c=10 -plan "stop a; start a; arrive 10; crash b; settle"
//
// Each gateway is NAME=SUPERVISORS, and may be followed by :starting,
// :draining or :suspect. With -home the member is served there already; -avoid names gateways that it
// could not reach.
//
// A plan is steps with semicolons between them, each over before the next begins:
//
//	stop a          drain a, which then leaves the fleet; "stop a b" drains both at once
//	start a         start it again, as a new incarnation that serves nobody
//	crash a         a is lost without a word
//	join d          start a gateway that the fleet has not had yet
//	arrive 10       newcomers
//	leave 10        goodbyes, from everywhere; "leave 10 from a" takes them from there
//	settle          the fewest moves that make it even; "settle 5" makes no more than 5
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "explain:", err)
		os.Exit(2)
	}
}

func run(args []string, stdout, stderr io.Writer) error {
	fs := flag.NewFlagSet("explain", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fleet := fs.String("gateways", "a=0,b=0,c=0", "the fleet: `NAME=SUPERVISORS[:STATE],...`")
	member := fs.String("member", "", "the supervisor's member `ID`")
	home := fs.String("home", "", "the `gateway` that serves it already")
	avoid := fs.String("avoid", "", "`gateways` that it could not reach, with commas")
	plan := fs.String("plan", "", "`steps` to predict, with semicolons, as in \"stop a; start a; arrive 10; crash b; settle\"")
	if err := fs.Parse(args); err != nil {
		return err
	}
	gateways, err := parse(*fleet)
	if err != nil {
		return fmt.Errorf("-gateways: %w", err)
	}
	steps, err := parsePlan(*plan)
	if err != nil {
		return fmt.Errorf("-plan: %w", err)
	}
	if *member == "" && len(steps) == 0 {
		return errors.New("-member is empty, and so is -plan")
	}
	request := placement.Request{Member: ring.MemberID(*member), Home: ring.GatewayID(*home)}
	if *avoid != "" {
		for id := range strings.SplitSeq(*avoid, ",") {
			request.Avoid = append(request.Avoid, ring.GatewayID(id))
		}
	}
	ids := make([]ring.GatewayID, len(gateways))
	live := 0
	for i, g := range gateways {
		ids[i] = g.ID
		live += g.Load()
	}
	circle, err := ring.New(ring.Config{}, ids...)
	if err != nil {
		return fmt.Errorf("-gateways: %w", err)
	}
	view := placement.NewView(placement.Picture{Ring: circle, Gateways: gateways, Live: live})
	prediction, err := placement.Predict(view, nil, steps...)
	if err != nil {
		return fmt.Errorf("-plan: %w", err)
	}
	if *member != "" {
		fmt.Fprintf(stdout, "a ring of %d slots, the largest share %.3f times the even one\n", circle.Slots(), circle.LargestShare())
		fmt.Fprintln(stdout, view.Balance())
		fmt.Fprint(stdout, view.Explain(request))
	}
	if len(steps) > 0 {
		fmt.Fprint(stdout, prediction)
	}
	return nil
}

// parse reads a fleet.
func parse(text string) ([]placement.Gateway, error) {
	var all []placement.Gateway
	seen := map[string]bool{}
	for one := range strings.SplitSeq(text, ",") {
		what, state, _ := strings.Cut(one, ":")
		name, count, ok := strings.Cut(what, "=")
		n, err := strconv.Atoi(count)
		if !ok || name == "" || err != nil || n < 0 {
			return nil, fmt.Errorf("%q is not NAME=SUPERVISORS", one)
		}
		if seen[name] {
			return nil, fmt.Errorf("%q is there twice", name)
		}
		seen[name] = true
		g := placement.Gateway{ID: ring.GatewayID(name), Endpoint: name, State: placement.Ready, Known: true,
			Counts: placement.Counts{Attached: n}}
		switch state {
		case "", "ready":
		case "starting":
			g.State = placement.Starting
		case "draining":
			g.State = placement.Draining
		case "suspect":
			g.Suspect = true
		default:
			return nil, fmt.Errorf("%q: no gateway is %q; it may be ready, starting, draining or suspect", one, state)
		}
		all = append(all, g)
	}
	return all, nil
}
