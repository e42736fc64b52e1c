// SPDX-License-Identifier: Apache-2.0

// Package handoff empties a gateway that is about to stop: it hands over every
// supervisor that the gateway serves, in a time that is known at the start.
//
// [Drain] does it for a running gateway. Under it is a machine, [Machine],
// that knows no clock and no socket, for those who own their loop:
//
//	       Begin         Propagation is over     nobody left to move,      streams ended,
//	                                             and Linger is over;       or half of Margin
//	                                             or deadline               is over
//	idle ---------> announced ---------> handing ---------------> closing ---------> done
//	                    |                   |                        |
//	                    +-------------------+------------------------+----> aborted
//	                                                                 Abort
//
// The gateway first announces that it drains, and nothing else happens for the
// propagation delay, so that no peer sends it anybody any more. Then each
// supervisor is told to move, spread evenly over the window; its target is
// chosen at the moment when it is told. One that is gone, attached elsewhere or
// closed, is confirmed. One for which no target was found is offered again
// after a pause, one that does not answer after its own time limit. What is
// left at the deadline is closed, and named in the [Report]; with [Config].Keep it
// is named and served on.
//
// Child sessions follow their supervisor by themselves, a moment later; the
// drain therefore lingers after the last supervisor has gone. One that cannot follow an
// order to move is served until nobody is left who can.
//
// A fleet that restarts have left uneven is evened out, on request, by package settle.
package handoff
