// SPDX-License-Identifier: Apache-2.0

package herd

import (
	"time"

	"github.com/evenring/evenring/internal/sim"
	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// Questions is what became of the questions of a wave.
type Questions struct {
	Yes        int `json:"yes"`        // plain ones
	No         int `json:"no"`         // the target was full, or took nobody
	Insisted   int `json:"insisted"`   // yes to a question that insisted: above its limit or not
	Unanswered int `json:"unanswered"` // the asker gave up waiting: question or answer were late or lost
	InVain     int `json:"in_vain"`    // places kept for supervisors that went elsewhere
	Above      int `json:"above"`      // plain yeses that left their target above the limit that it was asked for
}

func (q *Questions) merge(other Questions) {
	q.Yes += other.Yes
	q.No += other.No
	q.Insisted += other.Insisted
	q.Unanswered += other.Unanswered
	q.InVain += other.InVain
	q.Above += other.Above
}

// answers stands by while the real admissions of a world answer, and keeps an
// account of its own of what each has promised, so that a place that a gateway forgets is missed.
type answers struct {
	Questions
	reserve time.Duration
	kept    map[ring.GatewayID]map[ring.MemberID]time.Time // until when; those that have arrived or run out go when they are met
}

func newAnswers(reserve time.Duration) *answers {
	return &answers{reserve: reserve, kept: make(map[ring.GatewayID]map[ring.MemberID]time.Time)}
}

// asked lets the gateway answer.
func (a *answers) asked(g *sim.Gateway, q placement.Question) placement.Answer {
	answer := g.Admission.Asked(g.Now(), q)
	switch {
	case !answer.Yes:
		a.No++
		return answer
	case q.Insist:
		a.Insisted++
	default:
		a.Yes++
	}
	places := a.kept[g.ID]
	if places == nil {
		places = make(map[ring.MemberID]time.Time)
		a.kept[g.ID] = places
	}
	places[q.Member] = g.Now().Add(a.reserve)
	if !q.Insist && a.load(g, q.Member) > q.Limit {
		a.Above++
	}
	return answer
}

// load is what the gateway carries in the eyes of m: as it counts itself or, if that is more, by the account.
func (a *answers) load(g *sim.Gateway, m ring.MemberID) int {
	r := g.Admission.Roster()
	self, _ := r.Gateway(g.ID)
	counted := self.Load()
	if home, _, ok := r.Home(m); ok && home == g.ID {
		counted -= self.Held // the others on hold come back like m, and the first ones stay
	}
	promised := self.Attached
	for one, until := range a.kept[g.ID] {
		home, _, ok := r.Home(one)
		switch {
		case !until.After(g.Now()) || ok && home == g.ID:
			delete(a.kept[g.ID], one)
		case !ok: // otherwise it has shown up elsewhere, as far as this gateway knows
			promised++
		}
	}
	return max(counted, promised)
}

// of returns what became of all questions, once the world is at rest.
func (a *answers) of(w *sim.World) Questions {
	q := a.Questions
	for _, g := range w.Gateways {
		s := g.Admission.Stats(g.Now())
		q.Unanswered += int(s.AskFailures)
		q.InVain += int(s.RedirectsExpired+s.RedirectsElsewhere) + s.Reserved
	}
	return q
}
