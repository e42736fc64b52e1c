// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// maxSupervisors is how many the fleet may have.
const maxSupervisors = 1_000_000_000

const usage = `usage: explain -gateways FLEET [-member ID [-home GATEWAY] [-avoid GATEWAYS]] [-plan STEPS] [-json]

A fleet is gateways with commas between them, each NAME=SUPERVISORS or NAME=SUPERVISORS:STATE. The states:

  ready        serves, and may be given supervisors; this is meant without a state
  starting     does not serve yet
  draining     hands over what it has
  suspect      believed lost

A plan is steps with semicolons between them, each over before the next begins:

  stop a          drain a, which then leaves the fleet; "stop a b" drains both at once
  start a         start it again, as a new incarnation that serves nobody
  crash a         a is lost without a word
  join d          start a gateway that the fleet has not had yet
  arrive 10       newcomers
  leave 10        goodbyes, from everywhere; "leave 10 from a" takes them from there
  settle          the fewest moves that make it even; with "settle 5" each gateway makes no more than 5

`

type config struct {
	gateways []placement.Gateway
	request  placement.Request // without a member: nobody is placed
	plan     placement.Plan
	json     bool
}

// parse reads the command line. Help that is asked for goes to stderr, and is
// [flag.ErrHelp]; any other error goes nowhere but to the caller, and names the word that is wrong.
func parse(args []string, stderr io.Writer) (c config, err error) {
	fs := flag.NewFlagSet("explain", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fleet := fs.String("gateways", "a=0,b=0,c=0", "the `fleet`")
	member := fs.String("member", "", "the supervisor's member `ID`")
	home := fs.String("home", "", "the `gateway` that serves it already")
	avoid := fs.String("avoid", "", "`gateways` that it could not reach, with commas")
	plan := fs.String("plan", "", "`steps` to predict, as in \"stop a; start a; arrive 10; crash b; settle\"")
	fs.BoolVar(&c.json, "json", false, "print one JSON object")
	if err = fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(stderr, usage)
			fs.SetOutput(stderr)
			fs.PrintDefaults()
		}
		return c, err
	}
	if fs.NArg() > 0 {
		return c, fmt.Errorf("%q is no flag; a plan takes quotes, as in -plan \"stop a; settle\"", fs.Arg(0))
	}
	if c.gateways, err = parseFleet(*fleet); err != nil {
		return c, fmt.Errorf("-gateways: %w", err)
	}
	if c.plan, err = placement.ParsePlan(*plan); err != nil {
		return c, fmt.Errorf("-plan: %w", err)
	}
	c.request.Member = ring.MemberID(*member)
	if *member == "" {
		switch {
		case *home != "":
			return c, errors.New("-home is of no use without -member")
		case *avoid != "":
			return c, errors.New("-avoid is of no use without -member")
		case len(c.plan) == 0:
			return c, errors.New("-member is empty, and so is -plan")
		}
	}
	if *home != "" {
		g, err := c.gateway(*home)
		if err != nil {
			return c, fmt.Errorf("-home: %w", err)
		}
		if g.Load() == 0 {
			return c, fmt.Errorf("-home: %q serves nobody", g.ID)
		}
		c.request.Home = g.ID
	}
	if *avoid != "" {
		for name := range strings.SplitSeq(*avoid, ",") {
			g, err := c.gateway(name)
			if err != nil {
				return c, fmt.Errorf("-avoid: %w", err)
			}
			c.request.Avoid = append(c.request.Avoid, g.ID)
		}
	}
	return c, nil
}

// gateway finds a gateway of the fleet.
func (c config) gateway(name string) (placement.Gateway, error) {
	id := ring.GatewayID(strings.TrimSpace(name))
	i := slices.IndexFunc(c.gateways, func(g placement.Gateway) bool { return g.ID == id })
	if i < 0 {
		return placement.Gateway{}, fmt.Errorf("there is no gateway %q", id)
	}
	return c.gateways[i], nil
}

// parseFleet reads a fleet.
func parseFleet(text string) ([]placement.Gateway, error) {
	var all []placement.Gateway
	seen := map[ring.GatewayID]bool{}
	room := maxSupervisors
	for one := range strings.SplitSeq(text, ",") {
		one = strings.TrimSpace(one)
		what, state, stated := strings.Cut(one, ":")
		name, count, _ := strings.Cut(what, "=")
		id := ring.GatewayID(strings.TrimSpace(name))
		n, err := strconv.Atoi(strings.TrimSpace(count))
		switch {
		case n > room: // with an error too, if no int holds it
			return nil, fmt.Errorf("%q: that is more than %d supervisors in all", one, maxSupervisors)
		case err != nil, n < 0, id == "":
			return nil, fmt.Errorf("%q is not NAME=SUPERVISORS", one)
		case seen[id]:
			return nil, fmt.Errorf("%q is there twice", id)
		}
		seen[id] = true
		room -= n
		g := placement.Gateway{ID: id, Endpoint: string(id), State: placement.Ready, Known: true, Counts: placement.Counts{Attached: n}}
		switch state = strings.TrimSpace(state); state {
		case "ready":
		case "starting":
			g.State = placement.Starting
		case "draining":
			g.State = placement.Draining
		case "suspect":
			g.Suspect = true
		default:
			if stated {
				return nil, fmt.Errorf("%q: %q is no state; there are ready, starting, draining and suspect", one, state)
			}
		}
		all = append(all, g)
	}
	return all, nil
}
