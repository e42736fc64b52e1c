// SPDX-License-Identifier: Apache-2.0

// Package settle evens out a fleet once, on request: it moves the fewest
// supervisors that bring a gateway within the even share, and stops.
//
// Nobody moves because a gateway joins, so that a rolling restart which stops
// each gateway before its replacement is ready leaves the last one empty.
// [Run] on every gateway of the fleet, at once or one after the other, mends that.
// Nothing here runs by itself.
//
// Each gateway gives away its own surplus, and nobody coordinates. What a
// gateway may give follows from everybody's counts: first what it has above the
// even share rounded up; once nobody is above that, one more, if
// somebody is below the share rounded down: the first gateways in ID order, as many as are
// needed, and the next one if they do not for a while. Counts may be
// a moment old, so the one who is to receive is asked to keep a place, below a limit that it
// holds against its exact count, and the limit is below what the giver has. So a
// supervisor moves only if the receiver, with it, stays strictly below what the giver had,
// whatever the views say, and the moves of all gateways together are the
// fewest that even the fleet out. The rules are those of placement.Giver and placement.Leavers, which tell
// beforehand, in placement.Predict, what a settle will come to.
//
// Under Run is a machine, [Machine], that knows no clock and no socket:
//
//	                       a gateway comes, goes or fails
//	                 +-----------------------------------------+
//	                 v                                         |
//	idle -------> waiting -------------------------------> moving ------------------> done
//	      Begin      |          stable for Stable              |     nothing to give,
//	                 |                                         |     for Linger; or no
//	                 |                                         |     progress, for Patience
//	                 +-----------------------------------------+--------------------> ended
//	                    not stable for Patience, a drain here, Abort
//
// Those that a drain or a crash had brought here go first, back to where they
// came from if that is who receives. Nobody is told to move twice in one settle; who does
// not move in time counts as failed, and nobody else goes in its place.
package settle
