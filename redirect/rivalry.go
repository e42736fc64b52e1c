// SPDX-License-Identifier: Apache-2.0

package redirect

import (
	"time"

	"github.com/evenring/evenring/ring"
)

// rivals is how many times within a hold a member's healthy stream may be
// taken over before two processes are taken to share its ID. One process that
// restarts takes over its own broken stream once; two that both mean to live do it for ever.
const rivals = 3

// rivalry remembers when healthy streams were taken over by a newer stream of
// the same member, here or at another gateway.
type rivalry map[ring.MemberID][]time.Time

// note records a takeover, to be forgotten after keep.
func (r rivalry) note(m ring.MemberID, now time.Time, keep time.Duration) {
	r.forget(m, now)
	r[m] = append(r[m], now.Add(keep))
}

// count returns how many takeovers are remembered.
func (r rivalry) count(m ring.MemberID, now time.Time) int {
	r.forget(m, now)
	return len(r[m])
}

func (r rivalry) forget(m ring.MemberID, now time.Time) {
	times := r[m]
	for len(times) > 0 && !times[0].After(now) {
		times = times[1:]
	}
	if len(times) == 0 {
		delete(r, m)
	} else {
		r[m] = times
	}
}
