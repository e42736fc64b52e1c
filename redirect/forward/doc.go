// SPDX-License-Identifier: Apache-2.0

// Package forward carries a request to the gateway that has its member, one hop
// at most, and never executes it twice by its own doing.
//
// [Call] does it for a running gateway. Under it is a machine, [Machine], that
// knows no clock and no socket, for those who own their loop:
//
//	      Begin          somebody has it               answered, or perhaps executed
//	idle ---------+----------------------> sending -----------------------------------> over
//	              |                         |   ^                                        ^
//	              |  nobody that is known,  |   |  another                               |
//	              |  or it is expected      v   |  has it                                |
//	              +---------------------> waiting ---------------------------------------+
//	                                                     Patience or Settle is over
//
//	any state ----> over by Stop
//
// A request is given to two gateways at most, the second only if the first
// has certainly not executed it, or executing it twice does no harm. A request
// that was forwarded goes to nobody but this gateway's own streams.
//
// The waiting is for members on their way: one whose stream broke comes back,
// and one that moves is heard of at its new gateway a moment after it has left the
// old one. Nobody has it, and nobody that is known has it, are different ends;
// see [Nobody] and [Incomplete].
package forward
