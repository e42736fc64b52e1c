// SPDX-License-Identifier: Apache-2.0

package roster

import (
	"iter"

	"github.com/evenring/evenring/ring"
)

// reference is the membership over which every process computes the ring that
// stands for all its rings. A rule that only larger rings show cannot differ unseen: changing one
// raises [ring.Format], which is part of every fingerprint. Changing the reference makes every other build look different.
var reference = [...]ring.GatewayID{"gw-1", "gw-2", "gw-11"}

// layoutOf returns the fingerprint of the reference ring. It tells how a process
// computes rings, its build and its Config, and does not depend on whom it
// knows.
func layoutOf(cfg ring.Config) (uint64, error) {
	circle, err := ring.New(cfg, reference[:]...)
	if err != nil {
		return 0, err
	}
	return circle.Fingerprint(), nil
}

// receiveLayout takes what a gateway says of how it computes rings. No process
// changes that, so its first word stands until it starts anew.
func (r *Roster) receiveLayout(rec *record, layout uint64) {
	if rec.layout != 0 {
		return
	}
	rec.layout = layout
	if r.disagrees(rec) {
		r.changed()
		r.do(Disagrees{Gateway: rec.id})
	}
}

func (r *Roster) disagrees(rec *record) bool {
	return rec.layout != 0 && rec.layout != r.self.layout
}

// Disagreeing yields, in ID order, the gateways that compute rings in another
// way than this one: another [Config].Ring, or a build that computes another
// table from the same. It yields none that has not said how it computes
// them, and none for knowing other gateways than this one does.
func (r *Roster) Disagreeing() iter.Seq[ring.GatewayID] {
	return func(yield func(ring.GatewayID) bool) {
		for _, rec := range r.sorted {
			if r.disagrees(rec) && !yield(rec.id) {
				return
			}
		}
	}
}
