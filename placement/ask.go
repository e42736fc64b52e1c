// SPDX-License-Identifier: Apache-2.0

package placement

import "github.com/evenring/evenring/ring"

// Report is what somebody knows of one gateway's counts. Counts travel with
// every question and answer, so that who asks and who answers both learn.
type Report struct {
	Gateway ring.GatewayID
	Counts
}

// Question asks a gateway to keep one place for a member until it arrives or
// the reservation expires. Between two updates of a gateway's counts everybody
// who places sees the same room, and a burst would fill it many times over;
// only the gateway itself knows its exact count.
type Question struct {
	From       ring.GatewayID // who asks
	Member     ring.MemberID  // for whom
	Generation Generation     // the newest of the member that the asker has seen
	Limit      int            // keep the place if your load, this member left out, is below this
	Insist     bool           // keep it even if it is not: nobody has room, or enough has been asked
	Reports    []Report       // what the asker knows
}

// Answer is the target's word. A no brings the counts that it was decided on,
// so that the walk starts again from fresh figures.
type Answer struct {
	Gateway ring.GatewayID // who answers
	Yes     bool           // a place is kept
	State   State          // of the one who answers; only Ready says yes
	Limit   int            // of a no: the limit below which it would have room, for it knows of more who are live; 0: under none
	Reports []Report       // what it knows, its own counts included
}
