// SPDX-License-Identifier: Apache-2.0

package pause

import "time"

// Flaps counts streams in a row that did not last. Usually a stream that ends
// is replaced at once; but streams that are taken over, or that end as soon as
// they are accepted, one after the other, must not make a loop.
type Flaps struct{ count int }

// Ended counts the end of a stream that lived for a time, and returns how long
// to wait before it is replaced. takenOver says that another client has it now,
// which is not to be fought; of other streams, one that lived for less than
// b.Min is forgiven.
func (f *Flaps) Ended(lived time.Duration, takenOver bool, b Backoff, jitter func() float64) time.Duration {
	if takenOver {
		if lived >= b.Max {
			f.count = 0
		}
		f.count++
		return b.After(f.count, jitter)
	}
	if lived >= b.Min {
		f.count = 0
		return 0
	}
	f.count++
	if f.count == 1 {
		return 0
	}
	return b.After(f.count-1, jitter)
}
