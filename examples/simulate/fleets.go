// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/evenring/evenring/examples/simulate/internal/scale"
)

// figures are what a plan came to, as -json prints them.
type figures struct {
	Gateways           int     `json:"gateways"`
	Supervisors        int     `json:"supervisors"`
	Spread             int     `json:"spread"`
	PeakOverFair       float64 `json:"peak_over_fair"`
	Moves              int     `json:"moves"`
	MaxMoves           int     `json:"max_moves"`
	Decisions          int     `json:"decisions"`
	NsPerDecision      float64 `json:"ns_per_decision"`
	BytesPerSupervisor float64 `json:"bytes_per_supervisor"`
	Seconds            float64 `json:"seconds"`
	OK                 bool    `json:"ok"`
}

func figuresOf(r scale.Result) figures {
	return figures{
		Gateways: r.Config.Gateways, Supervisors: r.Config.Supervisors, Spread: r.Spread, PeakOverFair: r.OverFair(),
		Moves: r.Moves, MaxMoves: r.MaxMoves, Decisions: r.Decisions,
		NsPerDecision: r.NanosecondsPerDecision(), BytesPerSupervisor: r.BytesPerSupervisor(),
		Seconds: r.Took.Seconds(), OK: len(r.Broken) == 0,
	}
}

// scaled carries the plan out, on every fleet of the command line, and returns the promises that were broken.
func scaled(ctx context.Context, cfg config, pic *picture, stdout, people, stderr io.Writer) ([]string, error) {
	fleets := cfg.fleets()
	expected := 0
	for _, f := range fleets {
		expected += f.Decisions()
	}
	bar := newBar(stderr, expected)
	defer bar.close()
	var all []scale.Result
	var broken []string
	done := 0
	for _, f := range fleets {
		out, err := often(ctx, cfg, f, func(decisions int) { bar.at(done + decisions) })
		if err != nil {
			return nil, err
		}
		done += f.Decisions()
		for _, b := range out.Broken {
			broken = append(broken, fmt.Sprintf("%s, %d on %d: %s", f.Plan, f.Supervisors, f.Gateways, b))
		}
		all = append(all, out)
		if cfg.json {
			bar.clear()
			if err := json.NewEncoder(stdout).Encode(figuresOf(out)); err != nil {
				return nil, err
			}
		}
	}
	bar.close()
	if cfg.grow {
		growth(people, cfg, all)
		return broken, pic.draw(growthPanels(cfg, all))
	}
	story(people, all[0])
	return broken, pic.draw(storyPanels(all[0]))
}

// enough is how long decisions must take altogether for their mean to say something.
const enough = 200 * time.Millisecond

// often runs a fleet. To show how the cost grows a small one is run several times, and the fastest run counts.
func often(ctx context.Context, cfg config, f scale.Config, progress func(int)) (scale.Result, error) {
	best, err := scale.Run(ctx, f, progress)
	if err != nil || !cfg.grow {
		return best, err
	}
	total := best.Placing
	for range 9 {
		if total > enough || len(best.Broken) > 0 {
			break
		}
		out, err := scale.Run(ctx, f, nil)
		if err != nil {
			return out, err
		}
		total += out.Placing
		if len(out.Broken) > 0 || out.Placing < best.Placing {
			best = out
		}
	}
	return best, nil
}
