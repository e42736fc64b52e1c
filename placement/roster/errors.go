// SPDX-License-Identifier: Apache-2.0

package roster

import "errors"

// The errors that [Rejected] carries and [Decode] returns; compare with [errors.Is].
var (
	// ErrSelf: this process was connected to itself. It is not a peer.
	ErrSelf = errors.New("roster: connected to myself")
	// ErrTwin: another process has this gateway's ID and its incarnation, so that neither is
	// the newer one and peers take both for one. Incarnations that come from the clock do not do that.
	ErrTwin = errors.New("roster: another process has my ID and my incarnation")
	// ErrForeign: a gateway spoke for another one.
	ErrForeign = errors.New("roster: a gateway speaks for another")
	// ErrOldIncarnation: an older start of the gateway is known to have been followed, or to have left.
	ErrOldIncarnation = errors.New("roster: old incarnation")
	// ErrInvalidMessage: the message contradicts itself or lacks what it needs.
	ErrInvalidMessage = errors.New("roster: invalid message")
	// ErrUnknownMessage: the message is of a version or a kind that a newer gateway speaks.
	ErrUnknownMessage = errors.New("roster: unknown message")
)
