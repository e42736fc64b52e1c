// SPDX-License-Identifier: Apache-2.0

package main

import "time"

// The defaults that the bounds of a chaos run follow from.
const (
	keepalive   = 15 * time.Second // silence on a stream until it ends: a ping after 10 s, 5 s for the answer
	timeToLive  = 30 * time.Second // of a gateway that is not heard
	heartbeat   = 10 * time.Second // between gateways
	homeTries   = 5 * time.Second  // a supervisor's patience with its home
	dialLimit   = 10 * time.Second // from a dial to its verdict
	backoff     = 30 * time.Second // the longest pause between two dials
	sessionWait = 5 * time.Second  // of a session for its supervisor
	farewell    = 15 * time.Second // for a process with supervisors to say goodbye
)

const (
	// attachedWithin bounds the time from when all is given back to when everybody is served: somebody is silent and
	// does not know, tries home, dials in vain, has just begun the longest pause, dials; and sessions follow.
	attachedWithin = keepalive + homeTries + dialLimit + backoff + dialLimit + sessionWait

	// snapshot is the time for a record to be asked for and to come.
	snapshot = 5 * time.Second
	// agreedWithin bounds the time from then to when all rosters are the same: who is lost is forgotten, a heartbeat
	// shows what is wrong, and a snapshot mends it. It is also how long a gateway that has ended may be listed.
	agreedWithin = timeToLive + heartbeat + snapshot
	// tidyWithin bounds the time from then to when all that served the old streams has ended: what is
	// silent is found out, and what is dialled in vain is given up.
	tidyWithin = keepalive + dialLimit + snapshot
)

// slack is what a process may have open beyond what it holds explains: what comes and goes, as probes do, and
// over HTTP the idle links of a gateway that serves nobody, two to each other one.
var slack = usage{Goroutines: 10, Files: 8}

// growthAllowed is by how much that may grow with each act, for certain.
var growthAllowed = usage{Goroutines: 0.5, Files: 0.25}
