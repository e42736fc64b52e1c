// SPDX-License-Identifier: Apache-2.0

package herd

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/evenring/evenring/internal/sim"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/supervisor"
)

// patience is the virtual time that a wave may take.
const patience = 10 * time.Minute

// batch is short, so that a view that is brought up to date shows everybody who was served by then.
const batch = 100 * time.Microsecond

// Ours is this library: the real machines of gateways and supervisors, on a
// network whose every message takes a time of its own, so that dials and
// questions of the whole fleet are under way at once and overtake each other.
type Ours struct {
	NoAsks  bool // there is no peer link to ask over
	MaxHops int  // without a peer link; 0: 2
}

// Run places a wave. The error says that it did not come to rest.
func (o Ours) Run(wave Wave) (Outcome, error) {
	if err := wave.Validate(); err != nil {
		return Outcome{}, err
	}
	w := sim.New(sim.Config{
		Seed: wave.Seed, NoAsks: o.NoAsks,
		Gateway:    func(c *redirect.Config) { c.MaxHops, c.Roster.Batch = o.MaxHops, batch },
		Supervisor: func(c *supervisor.Config) { c.MaxHops = o.MaxHops },
	})
	for _, id := range wave.gateways() {
		w.StartGateway(id)
	}
	w.Run(time.Second) // they meet
	w.Mute, w.Hold = wave.stale(), true
	served := 0
	w.Adopted = func(*sim.Supervisor) {
		if served++; wave.due(served) {
			w.Refresh()
		}
	}
	rnd := rand.New(rand.NewPCG(wave.Seed, 1))
	for i := range wave.Supervisors {
		if wave.Over > 0 {
			w.After(time.Duration(rnd.Int64N(int64(wave.Over))), func() { w.StartSupervisor(wave.member(i)) })
		} else {
			w.StartSupervisor(wave.member(i))
		}
	}
	if !w.Until(patience, func() bool { return served >= wave.Supervisors }) || !w.Until(patience, w.Settled) {
		return Outcome{}, fmt.Errorf("herd: seed %d: not at rest after %v: %v", wave.Seed, patience, w.Served())
	}
	var out Outcome
	for _, n := range w.Served() {
		out.Served = append(out.Served, n)
	}
	for _, s := range w.Supervisors {
		out.Dials.add(s.Dials)
		out.Asks.add(s.Asks)
	}
	return out, nil
}
