// SPDX-License-Identifier: Apache-2.0

// Package session decides what a supervisor's child session dials, so that its
// stream ends at the gateway that serves its supervisor.
//
// [Machine] is pure: events and the time go in, actions come out. [Run] drives
// it over any [redirect.Transport], following the home that the supervisor
// publishes through [supervisor.Homes].
//
//	                Start
//	      idle ------+------------> waiting, for a home: up to HomeWait
//	                 | home known     |  home known, or the wait is over
//	                 v                v
//	               dialing <----------+
//	        Accept |    ^  failed, refused: waiting, then again
//	               v    |
//	            attached  Lost: home at once, without a home: waiting
//	               |  ^
//	another home   |  | Accept: the old stream is closed now, not before
//	or a failed    |  | or home is here again: nothing was moved
//	return to it   v  |
//	             moving
//
//	    any state ----> stopped by Stop, for good
//
// A session dials its supervisor's home with a hello that asks to stay, so that
// the gateway serves it without a placement. If it is served anywhere else (it
// came through the Service, home sent it on) it tries home again, with pauses
// that grow, until it is there.
//
// A change of home moves an attached session after Debounce, so that a home that
// changes and changes back moves nobody, plus a share of Pace drawn by each
// session, so that the sessions of one supervisor do not land at once.
package session
