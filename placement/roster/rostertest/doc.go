// SPDX-License-Identifier: Apache-2.0

// Package rostertest puts a [roster.Transport] through its paces, as
// testing/fstest does for file systems. It belongs into the tests of whoever
// writes a transport:
//
//	func TestTransport(t *testing.T) {
//		rostertest.Run(t, func(t testing.TB) rostertest.Join {
//			network := newNetwork(t)
//			return func(t testing.TB, n rostertest.Node) (roster.Transport, func()) {
//				transport := network.join(n.Gateway, n.Incarnation, n.Replica)
//				return transport, transport.Close
//			}
//		})
//	}
//
// # What is examined
//
// A few gateways with real rosters speak over the transport as it is. On top
// of what the transport may lose by itself, the kit loses, repeats, delays and
// reorders messages at both ends of it, cuts gateways off from each other,
// and lets one die and start again under its ID. Members come and go all the
// while. Once nothing is in the way any more, every roster must agree with
// what every gateway really serves.
//
// Besides, single messages must arrive whole, up to the size that rosters send
// by default, at the gateway that they are for or at all but the sender, and
// nowhere else; Send must be possible from many goroutines, and out of
// [roster.Replica].Step; and who was stopped must be silent.
//
// A transport may lose messages, which is no fault as long as most arrive.
// Rosters repair that, and their tests show it; here it is the transport that is
// in question.
package rostertest
