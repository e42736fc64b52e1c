// SPDX-License-Identifier: Apache-2.0

package redirect

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// Pacing bounds how fast a gateway takes newcomers: supervisors that it does
// not serve, and does not hold a place for. After a crash or a join one
// gateway may look far emptier than the others, and would be given everybody at
// once. It is always on if it is on at all, so choose a rate above everyday traffic, and only
// a flood is slowed down.
//
// A gateway that has taken as many as it may keeps no place when it is asked,
// and places whoever comes to it on the next gateway of the walk. The bound is
// soft: whoever nobody else takes is taken, and nobody is refused for it. It does
// not concern a supervisor that comes back, one that asks to stay, a session, or a
// gateway that drains and insists. Without Config.Peers nobody asks, and it
// concerns those alone that come to the gateway by themselves.
type Pacing struct {
	Rate  float64 // newcomers a second; 0: any number
	Burst int     // so many at once, after a quiet time; 0: as many as come in a second, and at least 1
}

func (p Pacing) validate() error {
	var errs []error
	if p.Rate < 0 || math.IsNaN(p.Rate) || math.IsInf(p.Rate, 0) {
		errs = append(errs, fmt.Errorf("redirect: Config.Pace.Rate is %v; it must be a number, and cannot be below 0", p.Rate))
	}
	if p.Burst < 0 {
		errs = append(errs, fmt.Errorf("redirect: Config.Pace.Burst is %d; it cannot be below 0", p.Burst))
	} else if p.Burst > 0 && p.Rate == 0 {
		errs = append(errs, fmt.Errorf("redirect: Config.Pace.Burst is %d and Rate 0; a burst needs a rate", p.Burst))
	}
	return errors.Join(errs...)
}

// bucket is how many newcomers may be taken at once. It fills with time.
type bucket struct {
	rate, burst float64
	tokens      float64
	at          time.Time
}

func newBucket(now time.Time, p Pacing) bucket {
	burst := float64(p.Burst)
	if p.Burst == 0 {
		burst = max(1, math.Ceil(p.Rate))
	}
	return bucket{rate: p.Rate, burst: burst, tokens: burst, at: now}
}

// full reports whether nobody more may be taken now.
func (b *bucket) full(now time.Time) bool {
	if b.rate == 0 {
		return false
	}
	if gone := now.Sub(b.at); gone > 0 {
		b.tokens = min(b.burst, b.tokens+gone.Seconds()*b.rate)
		b.at = now
	}
	return b.tokens < 1
}

// take notes that somebody is taken.
func (b *bucket) take(now time.Time) {
	b.full(now)
	b.tokens = max(0, b.tokens-1)
}

// busy reports whether m would be one newcomer too many now.
func (a *Admission) busy(now time.Time, m ring.MemberID) bool {
	return !a.expects(m) && a.pace.full(now)
}

// busyFor reports whether a question is answered with a no for that. One who
// drains cannot wait.
func (a *Admission) busyFor(now time.Time, q placement.Question) bool {
	from, _ := a.roster.Gateway(q.From)
	return !q.Insist && from.State != placement.Draining && a.busy(now, q.Member)
}

// divert looks for another gateway for a hello whose place is here, if it would
// be one too many now, and takes it after all if there is none.
func (a *Admission) divert(now time.Time, p *Admitting, ask *placement.Ask, d placement.Decision) (*placement.Ask, placement.Decision) {
	if p.leaving || a.draining {
		return ask, d
	}
	if ask == nil && d.Gateway == a.cfg.Gateway && p.own == nil && a.busy(now, p.hello.Member) {
		own := d
		p.own = &own
		r := a.request(p.hello)
		r.Avoid = append(slices.Concat(r.Avoid, p.unready), a.cfg.Gateway)
		p.search = placement.NewSearch(a.cfg.Gateway, a.cfg.Asks, r)
		ask, d = p.search.Begin(a.view(now))
	}
	if p.own != nil && (ask != nil && ask.Question.Insist || ask == nil && d.Gateway == "") {
		return nil, *p.own
	}
	return ask, d
}
