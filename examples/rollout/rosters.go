// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/evenring/evenring/examples/internal/gatewayd"
	"github.com/evenring/evenring/examples/internal/scrape"
)

// rosters reads the roster of every gateway, members included.
func (f *fleet) rosters(ctx context.Context) ([]gatewayd.Roster, error) {
	pages := make([]gatewayd.Roster, 0, len(f.gateways))
	for _, id := range f.ids() {
		var page gatewayd.Roster
		if err := scrape.JSON(ctx, f.gateways[id].ops, "/roster?members=1", &page); err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
		pages = append(pages, page)
	}
	return pages, nil
}

// disagreements says in what the gateways' rosters differ from each other, and each one's own
// record from where the supervisors say that they are.
func disagreements(pages []gatewayd.Roster, at map[string]string) []string {
	var why []string
	own := make(map[string]gatewayd.Record)
	for _, page := range pages {
		record, ok := recordOf(page, string(page.Gateway))
		if !ok {
			why = append(why, fmt.Sprintf("%s has no record of its own", page.Gateway))
			continue
		}
		own[string(page.Gateway)] = record
		why = append(why, misled(record, at)...)
	}
	for _, page := range pages {
		for _, other := range pages {
			truth := own[string(other.Gateway)]
			record, ok := recordOf(page, string(other.Gateway))
			switch {
			case !ok:
				why = append(why, fmt.Sprintf("%s does not know %s", page.Gateway, other.Gateway))
			case record.Incarnation != truth.Incarnation:
				why = append(why, fmt.Sprintf("%s knows an incarnation of %s that is not the one that runs", page.Gateway, other.Gateway))
			case record.Digest != truth.Digest || record.Sequence != truth.Sequence:
				why = append(why, fmt.Sprintf("of %s, %s has %d attached and %d held up to %d, and itself %d and %d up to %d", other.Gateway,
					page.Gateway, record.Attached, record.Held, record.Sequence, truth.Attached, truth.Held, truth.Sequence))
			}
		}
	}
	return why
}

func recordOf(page gatewayd.Roster, id string) (gatewayd.Record, bool) {
	i := slices.IndexFunc(page.Records, func(r gatewayd.Record) bool { return string(r.Gateway) == id })
	if i < 0 {
		return gatewayd.Record{}, false
	}
	return page.Records[i], true
}

// misled says in what a gateway's own record is wrong.
func misled(record gatewayd.Record, at map[string]string) []string {
	var why []string
	id := string(record.Gateway)
	listed := make(map[string]bool)
	for _, m := range record.Members {
		switch place := at[string(m.Member)]; {
		case m.Held:
			why = append(why, fmt.Sprintf("%s still expects %s back, which is at %s", id, m.Member, place))
		case place != id:
			why = append(why, fmt.Sprintf("%s lists %s, which is at %s", id, m.Member, place))
		default:
			listed[string(m.Member)] = true
		}
	}
	for member, place := range at {
		if place == id && !listed[member] {
			why = append(why, fmt.Sprintf("%s does not list %s", id, member))
		}
	}
	slices.Sort(why)
	return why
}

// ghosts says who lists gateways that have ended, and must have forgotten them by now: since returns from when on
// a gateway could find out. listed is whether anybody lists any.
func ghosts(pages []gatewayd.Roster, since func(lister, ended string) (time.Time, bool), now time.Time) (late []string, listed bool) {
	for _, page := range pages {
		for _, record := range page.Records {
			if slices.ContainsFunc(pages, func(p gatewayd.Roster) bool { return p.Gateway == record.Gateway }) {
				continue
			}
			listed = true
			switch from, ok := since(string(page.Gateway), string(record.Gateway)); {
			case !ok:
				late = append(late, fmt.Sprintf("%s lists %s, which nobody has started", page.Gateway, record.Gateway))
			case now.Sub(from) > agreedWithin:
				late = append(late, fmt.Sprintf("%s lists %s, which ended, and could have been forgotten for %v", page.Gateway, record.Gateway, now.Sub(from).Round(time.Second)))
			}
		}
	}
	return late, listed
}

// couldForget returns since when a gateway could find out that another one has ended: it has ended, and the
// one that lists it is not paused. false: it has not ended.
func (f *fleet) couldForget(lister, ended string) (time.Time, bool) {
	at, ok := f.died[ended]
	if g := f.gateways[lister]; g != nil && g.resumed.After(at) {
		at = g.resumed
	}
	return at, ok
}

// unready says which gateways do not take supervisors, or callers.
func (f *fleet) unready(ctx context.Context) []string {
	var why []string
	for _, id := range f.ids() {
		for _, path := range []string{"/readyz", "/readyz/callers"} {
			if err := scrape.OK(ctx, f.gateways[id].ops, path); err != nil {
				why = append(why, fmt.Sprintf("%s is not ready: %v", id, err))
			}
		}
		if !f.balance.takes(id) {
			why = append(why, fmt.Sprintf("the Service does not take %s", id))
		}
	}
	return why
}

// unseen says which gateways take another for lost. Their rosters may be the same all the same, as long as nothing changes.
func (f *fleet) unseen(ctx context.Context) []string {
	var why []string
	for _, id := range f.ids() {
		page, err := scrape.Get(ctx, f.gateways[id].ops)
		if err != nil {
			why = append(why, fmt.Sprintf("%s: %v", id, err))
			continue
		}
		n, err := page.Sum("evenring_fleet_gateways_placeable")
		switch {
		case err != nil:
			why = append(why, fmt.Sprintf("%s: %v", id, err))
		case int(n) != len(f.gateways):
			why = append(why, fmt.Sprintf("%s would give supervisors to %v of %d gateways", id, n, len(f.gateways)))
		}
	}
	return why
}
