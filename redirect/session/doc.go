// SPDX-License-Identifier: Apache-2.0

// Package session decides what a supervisor's child session dials, so that its
// stream ends at the gateway that serves its supervisor.
//
// [Machine] is pure: events and the time go in, actions come out. [Run] drives
// it over any [redirect.Transport], following the home that the supervisor
// publishes through [supervisor.Homes].
//
//	              idle ----> dialing or waiting, for a home, when started
//
//	                         dialing <--------------------+
//	                          |    ^  home known, or      |
//	                Accept    |    |  the wait is over    |
//	         +----------------+    +------------+         |
//	         |                |                 |         |
//	         |                | failed, refused |         |
//	         |                +------------> waiting      |
//	         v                                  ^         |
//	     attached ------------------------------+---------+
//	       |   ^       Lost, without a home    Lost: home at once
//	another|   |
//	home   |   | Accept: the old stream is closed now, not before
//	       v   | or home is here again: nothing was moved
//	      moving ----> dialing or waiting when the old stream is lost meanwhile
//
//	           dialing ----> moving when it is accepted, but not at home
//
//	         any state ----> stopped by Stop, for good
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
