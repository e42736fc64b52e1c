// SPDX-License-Identifier: Apache-2.0

package sim

import "time"

// Clock is how the clock of one machine differs from the world's. The zero
// value does not differ.
type Clock struct {
	Ahead time.Duration // at the start; below 0: behind
	Drift int64         // nanoseconds gained in a millisecond
}

// read returns what the clock shows at a time of the world's.
func (c Clock) read(start, now time.Time) time.Time {
	if c == (Clock{}) {
		return now
	}
	gone := now.Sub(start)
	return start.Add(gone + c.Ahead + time.Duration(c.gained(gone)))
}

func (c Clock) gained(gone time.Duration) int64 {
	return int64(gone) / int64(time.Millisecond) * c.Drift
}

// when returns the first moment of the world's at which the clock shows t or more.
func (c Clock) when(start, t time.Time) time.Time {
	if c == (Clock{}) {
		return t
	}
	shown := t.Sub(start) - c.Ahead
	gone := shown - time.Duration(c.gained(shown))
	for c.read(start, start.Add(gone)).Before(t) {
		gone += time.Duration(max(1, int64(t.Sub(c.read(start, start.Add(gone))))))
	}
	return start.Add(gone)
}

// host is the machine that a process runs on: it has a clock of its own, and
// may stand still.
type host struct {
	w        *World
	clock    Clock
	standing bool
	inbox    []func() // what came meanwhile
}

// now returns what the host's clock shows.
func (h *host) now() time.Time { return h.clock.read(h.w.start, h.w.now) }

// Now returns what the host's clock shows.
func (h *host) Now() time.Time { return h.now() }

// at runs f when the host's clock shows t.
func (h *host) at(t time.Time, f func()) { h.w.at(h.clock.when(h.w.start, t), func() { h.enter(f) }) }

// enter runs f, or keeps it for the time when the host goes on.
func (h *host) enter(f func()) {
	if h.standing {
		h.inbox = append(h.inbox, f)
		return
	}
	f()
}

// Pause lets the host stand still until Resume: its timers are late, and what
// is sent to it waits.
func (h *host) Pause() { h.standing = true }

// Resume lets the host go on, with everything that has come meanwhile, in order.
func (h *host) Resume() {
	h.standing = false
	for len(h.inbox) > 0 && !h.standing {
		f := h.inbox[0]
		h.inbox = h.inbox[1:]
		f()
	}
}

// wipe forgets what waits: the process has ended.
func (h *host) wipe() { h.standing, h.inbox = false, nil }
