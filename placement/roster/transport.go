// SPDX-License-Identifier: Apache-2.0

package roster

import "github.com/evenring/evenring/ring"

// Transport carries a roster's messages to its peers.
type Transport interface {
	// Send gives the encoded message to one gateway, or to every peer if to is
	// empty. It must not block on the network: it queues or drops, and must
	// be safe for concurrent use. The bytes belong to the transport from then on.
	// An error means that the message was dropped; nobody needs to send it
	// again, for heartbeats repair what is lost.
	Send(to ring.GatewayID, message []byte) error
}

// Replica is what a transport feeds: the holder of a [Roster], which adds the
// clock and carries out the actions. A transport calls it with [Received] for
// every message that [Decode] understands, with [LinkUp] and [LinkLost] as
// peers come and go, and with [Departed] for a peer that said goodbye.
type Replica interface {
	// Step takes the event. It does not block for long, is safe for concurrent
	// use, and may call [Transport.Send] before it returns: a transport must not
	// hold a lock around it that Send needs.
	Step(Event)
}
