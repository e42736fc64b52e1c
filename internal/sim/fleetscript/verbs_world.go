// SPDX-License-Identifier: Apache-2.0

package fleetscript

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/evenring/evenring/internal/sim"
	"github.com/evenring/evenring/redirect"
)

func (f *fleet) world(args []string) (string, error) {
	flags, values, err := settings(args, "seed", "page")
	if err != nil {
		return "", err
	}
	numbers := make(map[string]int)
	for key, text := range values {
		if numbers[key], err = count(text); err != nil {
			return "", err
		}
	}
	for _, flag := range flags {
		if flag != "no-asks" && flag != "proofs" {
			return "", misuse("there is no setting %q", flag)
		}
	}
	proofs := slices.Contains(flags, "proofs")
	f.begin(sim.Config{
		Seed: uint64(numbers["seed"]), NoAsks: slices.Contains(flags, "no-asks"),
		Gateway: func(c *redirect.Config) {
			c.Roster.PageBytes = numbers["page"]
			if proofs {
				c.Proofs = redirect.Proofs{Keys: [][]byte{bytes.Repeat([]byte{1}, 32)}, Required: true}
			}
		},
	})
	return "", nil
}

func (f *fleet) leave([]string) (string, error) {
	f.unwatched()
	return "", nil
}

func (f *fleet) run(args []string) (string, error) {
	d, err := duration(args[0])
	if err == nil {
		f.w.Run(d)
	}
	return "", err
}

func (f *fleet) rest([]string) (string, error) {
	f.w.Run(glance) // what has just been done takes a moment to be felt
	d, held := f.until(patience, f.w.Settled)
	d += glance
	if held {
		f.w.Run(time.Second)
	}
	return took("at rest", d, held), nil
}

func (f *fleet) clock(args []string) (string, error) {
	d, err := duration(args[1])
	if err == nil {
		f.w.Clocks[args[0]] = sim.Clock{Ahead: d}
	}
	return "", err
}

func (f *fleet) arrivals([]string) (string, error) {
	const window = 100 * time.Millisecond
	a := &f.account
	supervisors, together := len(a.comings), densest(a.comings, window)
	out := fmt.Sprintf("%d hellos, at most %d within %v\n%d supervisors, at most %d within %v: %.1f %%",
		len(a.hellos), densest(a.hellos, window), window, supervisors, together, window, 100*float64(together)/float64(max(1, supervisors)))
	a.hellos, a.comings = nil, nil
	clear(a.came)
	return out, nil
}
