// SPDX-License-Identifier: Apache-2.0

// Package carry keeps the books of the requests on one stream, for transports
// that carry them: whatever the frames look like, they need the same. The
// gateway's end has [Requests], which are without an answer yet. The supervisor's
// end has [Answers], which its program works on. Both ends number the requests
// alike, and both can be closed: what is under way is then waited for, while
// more is turned away.
//
// Neither knows anything of frames, nor when the stream has ended, which is for the transport
// to watch. All methods are safe for concurrent use.
package carry
