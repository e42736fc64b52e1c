// SPDX-License-Identifier: Apache-2.0

// Explain tells where a supervisor would be placed in a fleet, and why; and
// what a plan of stops and starts would come to:
//
//	go run ./examples/explain -gateways a=3,b=4,c=2:draining -member sup-7
//	go run ./examples/explain -gateways a=10,b=10,c=10 -plan "stop a; start a; arrive 10; crash b; settle"
//
// Each gateway is NAME=SUPERVISORS, and may be followed by :starting,
// :draining or :suspect. With -home the member is served there already; -avoid names gateways that it
// could not reach. -help lists the steps of a plan; [placement.ParsePlan] has the details. With -json all of it is one
// object, with the fields of [placement.Explanation], [placement.Balance] and [placement.Prediction].
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "explain:", err)
		os.Exit(2)
	}
}

// report is what there is to tell, and the shape of -json.
type report struct {
	Ring        shape                  `json:"ring"`
	Balance     placement.Balance      `json:"balance"`
	Explanation *placement.Explanation `json:"explanation,omitempty"` // of -member
	Prediction  *placement.Prediction  `json:"prediction,omitempty"`  // of -plan
}

type shape struct {
	Slots        int     `json:"slots"`
	LargestShare float64 `json:"largest_share"` // over the even one
}

func run(args []string, stdout, stderr io.Writer) error {
	cfg, err := parse(args, stderr)
	if err != nil {
		return err
	}
	ids := make([]ring.GatewayID, len(cfg.gateways))
	live := 0
	for i, g := range cfg.gateways {
		ids[i] = g.ID
		live += g.Load()
	}
	circle, err := ring.New(ring.Config{}, ids...)
	if err != nil {
		return fmt.Errorf("-gateways: %w", err)
	}
	view := placement.NewView(placement.Picture{Ring: circle, Gateways: cfg.gateways, Live: live})
	told := report{Ring: shape{circle.Slots(), circle.LargestShare()}, Balance: view.Balance()}
	if cfg.request.Member != "" {
		explanation := view.Explain(cfg.request)
		told.Explanation = &explanation
	}
	if len(cfg.plan) > 0 {
		prediction, err := placement.Predict(view, nil, cfg.plan...)
		if err != nil {
			return fmt.Errorf("-plan: %w", err)
		}
		told.Prediction = &prediction
	}
	if cfg.json {
		out := json.NewEncoder(stdout)
		out.SetIndent("", "  ")
		return out.Encode(told)
	}
	told.print(stdout)
	return nil
}

// print writes the report for a person. A prediction tells of the balance itself.
func (r report) print(w io.Writer) {
	if r.Explanation != nil {
		fmt.Fprintf(w, "a ring of %d slots, the largest share %.3f times the even one\n", r.Ring.Slots, r.Ring.LargestShare)
		fmt.Fprintln(w, r.Balance)
		fmt.Fprint(w, r.Explanation)
	}
	if r.Prediction != nil {
		fmt.Fprint(w, r.Prediction)
	}
}
