// SPDX-License-Identifier: Apache-2.0

// Package supervisor decides what a supervisor dials next, and whether it asks
// to stay there.
//
// [Machine] is pure: events and the time go in, actions come out. [Run] drives
// it over any [redirect.Transport]; that is all that most programs need.
//
//	                   Start
//	         idle ---------------> dialing <--------------------+
//	                                |    ^                      |
//	                      Accept    |    |  pause over          | Lost: home
//	           +--------------------+    +------------+         | at once
//	           |                    |                 |         |
//	           |                    | failed, refused |         |
//	           |                    +------------> waiting      |
//	           v                                      ^         |
//	       attached ----------------------------------+---------+
//	         |   ^          Lost: taken over, or home has no address
//	told to  |   |
//	move or  |   | Accept: the old stream is closed now, not before
//	refresh  v   |
//	        moving ----> dialing or waiting when the old stream is lost meanwhile
//
//	       any state ----> stopped by Stop, for good
//
// Moving is attached with the next dial in flight or planned: the old stream
// works until the new one is accepted. There are never two dials in flight, and
// two streams only while moving.
//
// A dial that follows a redirect asks to stay, and shows the proof that came
// with it, as a dial of home shows that of the last accept; see [redirect.Proofs].
// A target that cannot be reached, or that [Config].Allow does not let it dial,
// is avoided and the Service is dialled at once, staying: so a placement takes
// at most MaxHops+2 dials, and one more costs a pause. That skip is free once
// per acceptance; then pauses grow with full jitter, until an Accept.
//
// A gateway that evens out, and says so by [redirect.ReasonPlaced], does not want
// the supervisor gone. It has just heard from the gateway that it names, so that one is dialled even if
// it is avoided; and if that is in vain, the supervisor stays where it is.
//
// A lost stream goes back home: at once, then after a pause of up to 80 % of
// HomePatience, drawn anew by each supervisor, then to the Service, avoiding
// that home. When a gateway dies, its supervisors thus arrive at the others one
// by one. A gateway without an address of its own cannot be gone back to; the pause
// is the same, the Service comes after it.
package supervisor
