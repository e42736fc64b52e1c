// SPDX-License-Identifier: Apache-2.0

package roster

import (
	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// Event is what [Roster.Step] takes. Every event is legal at any time.
type Event interface{ event() }

// What happens at this gateway. These events change its own record.
type (
	// Attached: the member has a stream here. A generation below that of the
	// member's own entry here changes nothing.
	Attached struct {
		Member     ring.MemberID
		Generation placement.Generation
	}

	// Held: the member's stream broke uncleanly, and it keeps its place for a
	// while. A generation below that of its own entry here changes nothing.
	Held struct {
		Member     ring.MemberID
		Generation placement.Generation
	}

	// Left: the member is not here any more. A generation below that of its own
	// entry here changes nothing: it is a late word about an earlier stream.
	Left struct {
		Member     ring.MemberID
		Generation placement.Generation
	}

	// Reserved: Count places are kept here for members that are neither
	// attached nor held here.
	Reserved struct{ Count int }

	// StateChanged: this gateway's state is State from now on. Peers are told
	// at once.
	StateChanged struct{ State placement.State }
)

// What is heard of others.
type (
	// Received: a message arrived. From is the gateway at the other end, or
	// empty if the transport passes messages on and does not know who made
	// them; then the message's own word is taken.
	Received struct {
		From    ring.GatewayID
		Message Message
	}

	// Hinted: somebody, in a question or an answer, told what it knows of
	// everybody's counts. Newer ones improve a load, and touch no member.
	Hinted struct{ Reports []placement.Report }

	// LinkUp: the gateway can be reached. It is sent a heartbeat at once.
	LinkUp struct{ Gateway ring.GatewayID }

	// LinkLost: the peer link broke, or an ask failed. The gateway is suspect
	// until it is heard again.
	LinkLost struct{ Gateway ring.GatewayID }

	// Heard: the gateway answered by another way than a message, such as an
	// ask. It is alive.
	Heard struct{ Gateway ring.GatewayID }

	// Departed: the gateway is proven to have left; it is removed at once, and
	// what is still under way from that incarnation or an earlier one is
	// ignored for [Config.TimeToLive]. Incarnation 0 stands for the one known.
	Departed struct {
		Gateway     ring.GatewayID
		Incarnation placement.Incarnation
	}

	// Discovered: discovery listed the gateways, this one included or not. A
	// complete list that lacks a gateway which an earlier one had makes it
	// suspect until it is listed again or starts anew; if it is this one, it is
	// told so by [Delisted]. A partial list, or an
	// empty one while peers are known, takes nothing away and makes the roster
	// stale.
	Discovered struct {
		Gateways []ring.GatewayID
		Partial  bool
	}

	// DiscoveryFailed: discovery gave no list. The roster is stale until it does.
	DiscoveryFailed struct{ Err error }

	// Tick: time has passed. It is due at [Roster.Deadline].
	Tick struct{}
)

func (Attached) event()        {}
func (Held) event()            {}
func (Left) event()            {}
func (Reserved) event()        {}
func (StateChanged) event()    {}
func (Received) event()        {}
func (Hinted) event()          {}
func (LinkUp) event()          {}
func (LinkLost) event()        {}
func (Heard) event()           {}
func (Departed) event()        {}
func (Discovered) event()      {}
func (DiscoveryFailed) event() {}
func (Tick) event()            {}
