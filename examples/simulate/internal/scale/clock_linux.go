// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"time"

	"golang.org/x/sys/unix"
)

// spent returns the processor time that this thread has taken: on a machine that others use too, it
// says what the decisions cost. Lock the goroutine to its thread before.
func spent() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil { // no kernel of today lacks it
		return 0
	}
	return time.Duration(t.Nano())
}
