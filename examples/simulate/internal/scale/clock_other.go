// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package scale

import "time"

var epoch = time.Now()

// spent returns the time that has passed, for want of the processor time of a thread.
func spent() time.Duration { return time.Since(epoch) }
