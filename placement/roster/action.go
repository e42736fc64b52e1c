// SPDX-License-Identifier: Apache-2.0

package roster

import (
	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// Action is what [Roster.Step] wants done, in the order given.
type Action interface{ action() }

type (
	// Send: give Message to the gateway To, or to every peer if To is empty. A
	// message that does not arrive is repaired by a later heartbeat.
	Send struct {
		To      ring.GatewayID
		Message Message
	}

	// Placed: Gateway, another one, has become the place of these members, or
	// has taken them again with a higher generation. What is kept here for
	// them (a hold, a reservation, a stream that is dead but does not know it) with a
	// generation not above the entry's is a ghost. Entries belongs to whom it is given.
	Placed struct {
		Gateway ring.GatewayID
		Entries []Entry
	}

	// Conflict: a newer process uses this gateway's ID. It is right and this
	// one is wrong: from now on this roster tells nobody anything about itself,
	// and this process should hand over what it serves and stop. Given once
	// for each newer incarnation.
	Conflict struct {
		Incarnation placement.Incarnation // of the newer process
		Endpoint    string                // where it is
	}

	// Disagrees: Gateway, another one, computes rings in another way than this
	// one: it was given another [Config].Ring, or is of a build that computes
	// another table from the same. Until one of the two is replaced, they send
	// some members to different gateways. Given once for each incarnation; see
	// [Roster.Disagreeing].
	Disagrees struct{ Gateway ring.GatewayID }

	// Delisted: discovery, whose complete list has had this gateway, has it no
	// more, and has others: peers give it nobody from now on. It should hand over
	// what it serves. Given once each time, and not for a list that never had this
	// gateway: that may be its delay. See [Roster.Delisted] for whether it is so still.
	Delisted struct{}

	// Rejected: a message or a link was ignored. Err is one of this package's
	// errors, wrapped.
	Rejected struct {
		From ring.GatewayID // who it came from, as far as known
		Err  error
	}
)

func (Send) action()      {}
func (Placed) action()    {}
func (Conflict) action()  {}
func (Disagrees) action() {}
func (Delisted) action()  {}
func (Rejected) action()  {}
