// SPDX-License-Identifier: Apache-2.0

// Package fleetscript plays conversations of whole fleets that are written down
// as text: the real machines of package sim, on virtual time. A test of the
// package that owns a rule calls [Run] on its scripts; see package script for
// their form.
//
// One seed decides everything, so a script that is played again gives the same
// output. Links take 1 to 20 ms. Everything that happens is also held against
// the invariants of package sim, unless the script has said "unwatched"; a
// broken one fails the test.
//
// A MEMBER is a supervisor's ID; s1..s9 stands for nine of them. Numbered
// supervisors get the IDs s1, s2 and so on in the order in which they first
// start. A LINK is written A->B and is one direction; x->A and A->x are those
// between a supervisor and a gateway. ALL is the word all, for every gateway that lives.
//
// The world and its time:
//
//	world [seed=N] [no-asks] [proofs] [page=BYTES]
//	    begin, with an empty fleet. no-asks: gateways have no peer link to ask
//	    over. proofs: who asks to stay must prove that it was sent, or was there
//	    before. page: the bound of a roster message
//	unwatched
//	    do not hold what follows against the invariants, for somebody lies in it,
//	    or asks for what is not his
//	run DURATION
//	    let time pass
//	rest
//	    let time pass until everybody has a stream and nothing is under way,
//	    looking every 100 ms for two minutes; then one second more
//	clock GATEWAY|MEMBER DURATION
//	    its machine's clock is ahead by so much, or behind; say so before it starts
//
// Gateways:
//
//	gateways GATEWAY... [at=ADDRESS]
//	    start them, a new incarnation each, and let a second pass. One that
//	    lives is joined by a second process under its ID, and drains once it learns that
//	kill GATEWAY...
//	    end the process without a word: its streams break at once
//	crash GATEWAY...
//	    end the machine: everybody finds out in his own time, see notice
//	stop GATEWAY...
//	    end the process with a word to its peers, and without handing over
//	drain GATEWAY [propagation=D] [window=D] [confirm=D]
//	    begin to hand everybody over; the process ends when that is over
//	abort GATEWAY
//	    break the drain off
//	gone GATEWAY
//	    let time pass until its process has ended, ten minutes at most
//	out GATEWAY...
//	    take them out of the Service, which goes on sending to the others
//	refresh
//	    every gateway ends every stream, as credentials that run out do
//	settle GATEWAY...|ALL [budget=N]
//	    even out: each of them looks at the fleet, gives what is more than its
//	    share, and reports. Lets time pass until all reports are there
//
// Supervisors:
//
//	arrive N | arrive MEMBER...
//	    start N new ones, or these, all at once, through the Service
//	at GATEWAY N | at GATEWAY MEMBER...
//	    start them so that they dial this gateway first, and ask it to stay; one
//	    that runs is killed before. Then let a second pass
//	restart MEMBER... | restart GATEWAY... | restart everybody
//	    kill these, or those that these gateways serve, and start them again at once
//	end MEMBER...
//	    end their processes without a word
//	steal MEMBER from MEMBER
//	    the first shows, in its next hello, the proof that the second has shown last
//
// The network, and what is wrong with it:
//
//	cut X Y...
//	    X hears none of the others any more, nor they X: gateways or members. Streams break
//	partition GATEWAY... | GATEWAY...
//	    cut every gateway on the left off from every one on the right
//	heal
//	    undo every cut
//	notice DURATION
//	    a broken link is seen only after up to so long
//	lose LINK...
//	    no roster message arrives
//	hold LINK...
//	    roster messages wait
//	delay LINK DURATION
//	    everything takes so much longer
//	release LINK...
//	    undo lose, hold and delay; what was held arrives now, in order
//	mute
//	    no roster message arrives from now on, on any link
//	garble LINK
//	    of the next delta that names members, only the numbers arrive
//	lie LINK about GATEWAY
//	    the one at the left tells the one at the right that this gateway serves nobody
//	echo GATEWAY
//	    what it says of itself comes back to it, as from a peer, and its own address is given to it as a peer's
//	pause GATEWAY...|MEMBER...
//	    the process stands still; what is sent to it waits
//	resume GATEWAY...|MEMBER...
//	    it goes on
//	discovery GATEWAY|ALL: GATEWAY... [...]
//	    discovery gives it this list; with ... at the end the list is known not
//	    to be whole. "discovery A: nobody" is an empty list, "discovery A: fails" is none.
//	    A gateway that learns that discovery has dropped it drains, and lives on
//
// What is looked at:
//
//	show
//	    who serves how many, and what happened since the last show: how many
//	    supervisors changed gateway, the most dials of one, the longest time that one was without a
//	    stream, and how often gateways have redirected, refused, told to move, told to
//	    end, and accepted above the cap, by reason; then the reports of drains, and what gateways have ignored
//	homes [GATEWAY]
//	    who is where, or where that gateway takes everybody to be; ? marks who is on hold
//	view GATEWAY
//	    what it knows of every gateway, and what it makes of that
//	ready GATEWAY...
//	    whether supervisors may dial it, and callers may ask it, and why
//	explain MEMBER GATEWAY
//	    why that gateway would place the member where it would
//	predict STEP; STEP...
//	    what a plan would come to; the steps are those of placement.ParsePlan
//	call MEMBER at GATEWAY
//	    a caller's request for the member, put to that gateway
//	arrivals
//	    how many hellos have reached gateways since the last one, and the most in
//	    any 100 ms; and how many supervisors they came from, each at its first
//	traffic
//	    what gateways have told each other since the last one, by kind, and the longest message
package fleetscript
