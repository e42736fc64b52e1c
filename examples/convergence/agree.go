// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/evenring/evenring/examples/internal/gatewayd"
	"github.com/evenring/evenring/ring"
)

// compare says in what two of the rosters differ; nil: in nothing.
func compare(pages []gatewayd.Roster) error {
	first := pages[0]
	for _, page := range pages[1:] {
		if page.Digest == first.Digest {
			continue
		}
		for _, record := range page.Records {
			i := slices.IndexFunc(first.Records, func(r gatewayd.Record) bool { return r.Gateway == record.Gateway })
			switch {
			case i < 0:
				return fmt.Errorf("%s knows %s and %s does not", page.Gateway, record.Gateway, first.Gateway)
			case first.Records[i].Digest != record.Digest:
				mine := first.Records[i]
				return fmt.Errorf("of %s, %s has %d attached and %d held up to %d, and %s has %d and %d up to %d", record.Gateway,
					first.Gateway, mine.Attached, mine.Held, mine.Sequence, page.Gateway, record.Attached, record.Held, record.Sequence)
			}
		}
		return fmt.Errorf("%s and %s know different gateways", first.Gateway, page.Gateway)
	}
	return nil
}

// shown is how many of many faults are told.
const shown = 3

// verify holds one roster, members included, against the truth: everybody is
// listed once, attached, at the gateway that serves it.
func verify(page gatewayd.Roster, want truth) error {
	var errs []error
	found := make(map[ring.MemberID]bool, len(want))
	for _, record := range page.Records {
		for _, m := range record.Members {
			switch at := want[m.Member]; {
			case m.Held:
				errs = append(errs, fmt.Errorf("%s still expects %s back, which is at %s", record.Gateway, m.Member, at))
			case at != record.Gateway:
				errs = append(errs, fmt.Errorf("%s lists %s, which is at %q", record.Gateway, m.Member, at))
			default:
				found[m.Member] = true
			}
		}
	}
	for m, at := range want {
		if !found[m] {
			errs = append(errs, fmt.Errorf("%s does not list %s", at, m))
		}
	}
	if n := len(errs); n > shown {
		errs = append(errs[:shown], fmt.Errorf("and %d more", n-shown))
	}
	return errors.Join(errs...)
}

// times reads off rosters that agree how long each took: agree since the last
// supervisor was attached, lag since the last change of any gateway's own record.
// Neither is below 0: a gateway may know of the last supervisor before the supervisor does.
func times(pages []gatewayd.Roster, attached time.Time) (agree, lag []time.Duration) {
	var changed time.Time
	for _, page := range pages {
		for _, record := range page.Records {
			if record.Gateway == page.Gateway && record.ChangedAt.After(changed) {
				changed = record.ChangedAt
			}
		}
	}
	for _, page := range pages {
		agree = append(agree, max(0, page.Since.Sub(attached)))
		lag = append(lag, max(0, page.Since.Sub(changed)))
	}
	return agree, lag
}

// spread is most minus fewest served.
func spread(page gatewayd.Roster) int {
	lo, hi := -1, 0
	for _, record := range page.Records {
		if lo < 0 || record.Attached < lo {
			lo = record.Attached
		}
		hi = max(hi, record.Attached)
	}
	return hi - max(lo, 0)
}
