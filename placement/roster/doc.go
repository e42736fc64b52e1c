// SPDX-License-Identifier: Apache-2.0

// Package roster replicates who serves whom among gateways.
//
// Every gateway owns one record: its incarnation, endpoint, state, counts and
// the members it serves. Only its owner changes a record; the others hold
// copies. A [Roster] is one gateway's own record together with its copies of
// everybody else's. It is a pure machine: [Roster.Step] takes what happened
// and when, and returns what is to be done; it opens no socket and reads no
// clock. One goroutine at a time may use it.
//
// # How copies stay right
//
// The owner numbers its changes from 1 within one incarnation. A [Delta]
// carries the changes of a range of numbers, as absolute states, so that
// applying one twice is the same as applying it once. A copy takes a delta
// that continues it, ignores one that tells nothing new, and keeps one that
// leaves a gap until the gap has closed; if it does not close within
// [Config.Batch], the copy asks its owner for a [Snapshot], and stays as it
// is meanwhile. It may ask twice at once, and then four times in a
// [Config.Heartbeat]: an owner whose changes overflow its outbox again and
// again is not made to send its whole record each time. A [Heartbeat] carries the owner's number and digest, so a copy
// that missed the last delta, or went wrong in any other way, finds out within
// one heartbeat. State and endpoint travel in every message, so a lost
// announcement of a drain repairs itself as well.
//
// No event here has to wait for a peer. Changes gather for a [Config.Batch] and go out
// in messages of at most [Config.PageBytes]; more than [Config.Outbox] of them are
// dropped, and peers ask for the record. That is cut into pages a few thousand
// members at a time, with other steps in between, and is still the record at one
// number.
//
// A higher incarnation of a gateway starts its record afresh; a lower one is
// ignored, and is told by [Conflict] if it lives. Two processes with the same
// incarnation cannot be ranked: each reports [ErrTwin], and serves on until its
// operator stops one. Nobody's word about a third gateway changes that gateway's record:
// it can only improve its load, as a hint, until the record has caught up.
//
// # Where a member is
//
// Several gateways may list one member: it has moved, and its old gateway does
// not know yet. The highest generation is the member's place; if two are
// equal, the lower gateway ID is. A leave removes the leaving gateway's own
// entry and no other, so the order in which a leave and a later arrival
// elsewhere are heard does not matter.
//
// # Who is there
//
// A gateway that has been silent for [Config.TimeToLive] is purged, provided
// that another peer is still being heard. If all are silent, the fault may as
// well be here: everybody becomes suspect, nobody is purged, and
// [Roster.Stale] says so. A failed, partial or unexpectedly empty list from
// discovery has the same effect on purging. Time in which this process stood still
// itself, so that its own timer is late by more than a heartbeat, is nobody's silence. A gateway that is proven to have
// left is removed at once. One that falls out of discovery's list is given
// nobody any more, and is told so by [Delisted], so that it hands over whom it serves.
//
// # Whether all compute the same ring
//
// Gateways place alike only if they compute the same ring from the same
// gateways. Heartbeats carry the fingerprint of a ring over a fixed set of
// names, the layout: it differs if the [Config] of the ring does, or if a build
// computes another table, and it does not depend on whom a gateway knows just
// now. [Roster.Disagreeing] tells whose layout differs. A gateway that says
// nothing of its layout, such as one of an earlier version, is not among them.
package roster
