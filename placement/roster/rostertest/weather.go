// SPDX-License-Identifier: Apache-2.0

package rostertest

import (
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/ring"
)

// weather is what happens to messages on top of what the transport does to
// them. The zero value is nothing. It does not change once it is in use.
type weather struct {
	loss  float64                // the share that is lost, half of it at either end
	twice float64                // the share that is sent twice, and that arrives twice
	late  float64                // the share that is overtaken by others
	side  map[ring.GatewayID]int // gateways on different sides do not hear each other
}

func (w *weather) apart(a, b ring.GatewayID) bool { return w.side[a] != w.side[b] }

func (w *weather) calm() bool { return w.loss == 0 && w.twice == 0 && w.late == 0 && w.side == nil }

// speaker returns the start of a gateway that made the message; a request does
// not say which.
func speaker(m roster.Message) roster.Origin {
	if o, ok := roster.OriginOf(m); ok {
		return o
	}
	return roster.Origin{Gateway: m.(roster.SnapshotRequest).From}
}
