// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/evenring/evenring/examples/internal/gatewayd"
)

// stableFor is how long the fleet must have been stable before a gateway
// settles. It is short, for a run that people watch.
const stableFor = time.Second

// evened is what -settle came to.
type evened struct {
	moves  int
	who    []string // that were told to move
	above  int      // how many the gateways served above the even share, rounded down, before
	spread int      // before
}

// evenOut has every gateway settle, at the same time.
func (r *run) evenOut(ctx context.Context) error {
	f := r.board.read()
	share := f.supervisor / len(r.gateways)
	r.settled = evened{spread: f.spread(r.ids())}
	for _, id := range r.ids() {
		r.settled.above += max(0, f.served[id]-share)
	}
	var mu sync.Mutex
	var errs []error
	var all sync.WaitGroup
	for _, id := range r.ids() {
		all.Go(func() {
			page, err := askToSettle(ctx, r.gateways[id].ops)
			mu.Lock()
			defer mu.Unlock()
			r.settled.moves += len(page.Moved)
			for _, m := range slices.Concat(page.Moved, page.Failed) {
				r.settled.who = append(r.settled.who, m.Member)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("%s does not settle: %w", id, err))
			}
			for _, f := range page.Failed {
				errs = append(errs, fmt.Errorf("%s told %s to move to %s, and it did not (%s)", id, f.Member, f.Gateway, f.Cause))
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// askToSettle has one gateway settle, and returns what it answers.
func askToSettle(ctx context.Context, ops string) (page gatewayd.Settled, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("http://%s/settle?stable=%v", ops, stableFor), nil)
	if err != nil {
		return page, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return page, err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&page); err != nil {
		return page, fmt.Errorf("%s: %w", resp.Status, err)
	}
	if page.Error != "" {
		return page, errors.New(page.Error)
	}
	return page, nil
}

// judgeSettled says what did not hold of the settle: it moves those above the even share, and nobody else.
func (r *run) judgeSettled() []string {
	s := r.settled
	r.aside = fmt.Sprintf("-settle moved %d, of %d above the even share; the spread was %d", s.moves, s.above, s.spread)
	if s.moves > s.above {
		return []string{fmt.Sprintf("-settle moved %d, and only %d were above the even share", s.moves, s.above)}
	}
	return nil
}
