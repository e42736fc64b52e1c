// SPDX-License-Identifier: Apache-2.0

// Package redirect is what gateways and supervisors say to each other, and
// the gateway's side of the conversation.
//
// A supervisor opens a stream and says [Hello]; the gateway answers with a
// [Verdict]: accept, redirect or refuse. On an accepted stream the gateway may
// give a [Notice]: move there, or this is the end. Which bytes carry these
// words is the affair of a [Transport].
//
//	hello --> drain? --> identity? --> stay? --> place: here | ask the target, redirect
//	            |            |           |
//	       elsewhere,    stale: refuse,  accept
//	       or refuse     newer: take over
//
// Whether somebody who asks to stay was sent here, or was here before, a gateway
// can have proved to it; see [Proofs].
//
// [Gateway] is what a gateway server uses. It wraps [Admission], the same thing
// as a pure machine: no clock, no lock, no goroutine. The admission owns the exact local
// attachments; its roster's own record is fed from them.
package redirect
