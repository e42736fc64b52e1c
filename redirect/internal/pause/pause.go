// SPDX-License-Identifier: Apache-2.0

// Package pause draws the pauses between attempts. It is pure: randomness
// comes in as a function.
package pause

import "time"

// Draw returns one number in [0, 1) from jitter. Whatever jitter returns
// outside of that range is brought back into it; a nil jitter is always 0.5.
func Draw(jitter func() float64) float64 {
	if jitter == nil {
		return 0.5
	}
	const belowOne = 1 - 1.0/(1<<53)
	u := jitter()
	if !(u > 0) { // NaN too
		return 0
	}
	return min(u, belowOne)
}

// Scale returns d times factor.
func Scale(d time.Duration, factor float64) time.Duration {
	return time.Duration(float64(d) * factor)
}

// Backoff says how long to wait between attempts that fail: full jitter under
// a ceiling that doubles from Min to Max. A pause is never shorter than a tenth
// of Min, for a pause of nothing is none.
type Backoff struct{ Min, Max time.Duration }

// After returns the pause after the given number of failures in a row, counted
// from 1.
func (b Backoff) After(failures int, jitter func() float64) time.Duration {
	ceiling := b.Min
	for range failures - 1 {
		if ceiling >= b.Max/2 {
			ceiling = b.Max
			break
		}
		ceiling *= 2
	}
	floor := b.Min / 10
	return floor + Scale(ceiling-floor, Draw(jitter))
}

// Longest is the longest that a gateway can make a client wait, so that one
// wrong number does not silence it for good.
const Longest = 10 * time.Minute

// Retry returns how long to wait after a refusal that asks for at least
// retryAfter: up to half as long again, at least least, at most 1.5 times
// [Longest].
func Retry(retryAfter, least time.Duration, jitter func() float64) time.Duration {
	return Scale(max(min(retryAfter, Longest), least), 1+Draw(jitter)/2)
}
