// SPDX-License-Identifier: Apache-2.0

package redirect

import (
	"slices"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect/internal/pause"
	"github.com/evenring/evenring/ring"
)

// Key names one accepted stream of one gateway. It is never used twice.
type Key uint64

// Tell is a notice to be given to the stream Key.
type Tell struct {
	Key    Key
	Notice Notice
}

// Output is what an [Admission] wants done: notices, roster messages, and
// departures for whoever watches.
type Output struct {
	Turns      []*Admitting // those that waited and go on now
	Tells      []Tell
	Sends      []roster.Send
	Departures []Departure
	Conflicts  []roster.Conflict  // a newer process uses this gateway's ID
	Disagrees  []roster.Disagrees // gateways that compute other rings than this one
	Delisted   []roster.Delisted  // discovery has this gateway no more
	Rejected   []roster.Rejected  // messages and links that were ignored, and why
}

// Admission is one gateway's admission as a pure machine: what happens goes
// in together with the time, verdicts come out, and [Admission.Take] hands
// over what else is to be done. It owns the exact local attachments, and its
// roster's own record is fed from them, so that nobody is counted twice.
// Not safe for concurrent use; [Gateway] is.
type Admission struct {
	cfg      Config
	roster   *roster.Roster
	seats    map[ring.MemberID]*seat
	owners   map[Key]ring.MemberID
	children children
	reserved map[ring.MemberID]reservation
	expected int              // of the seats on hold: those that were asked for
	ledger   placement.Ledger // who was sent where
	picture  picture
	guests   guests
	asking   []*Admitting // whose question is out
	turns    turns
	rivalry  rivalry
	departed map[ring.MemberID]placement.Generation // during a drain: whose stream closed, in case it shows up elsewhere
	agenda   agenda
	draining bool
	settling settling
	pace     bucket
	lastKey  Key
	tally    tally
	out      Output
}

// NewAdmission starts a gateway's admission, in state [placement.Starting].
func NewAdmission(now time.Time, cfg Config) (*Admission, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.resolved()
	r, err := roster.New(now, cfg.Roster)
	if err != nil {
		return nil, err
	}
	return &Admission{
		cfg:      cfg,
		roster:   r,
		seats:    make(map[ring.MemberID]*seat),
		owners:   make(map[Key]ring.MemberID),
		children: newChildren(),
		reserved: make(map[ring.MemberID]reservation),
		rivalry:  make(rivalry),
		pace:     newBucket(now, cfg.Pace),
		tally:    tally{placements: make([]uint64, len(placement.Reasons()))},
	}, nil
}

// Admitting is one placement under way: a hello on its way to a verdict, or a
// supervisor on its way out. While Ask is set, put the question and go on with
// [Admission.Answered] or [Admission.Unanswered]. While it is not Done and Ask
// is nil it waits for its turn, which comes in [Output.Turns].
type Admitting struct {
	Ask      *placement.Ask
	Verdict  Verdict
	Done     bool               // there is a verdict; or, of a supervisor that is handed over, Notice or Err
	Key      Key                // of the stream, if the verdict is Accept
	Decision placement.Decision // the placement behind the verdict, if there was one
	Asked    int                // questions put

	// Of a supervisor that is handed over: what its stream was told, or why not.
	Notice Notice
	Err    error

	hello    Hello // what is believed of it
	standing standing
	leaving  bool                // a supervisor is handed over: no verdict on a hello
	errand   *errand             // and where to; nil: wherever the placement says
	unready  []ring.GatewayID    // who takes nobody at the moment
	own      *placement.Decision // to serve it here, while another gateway is looked for; see [Pacing]
	waited   bool                // for its turn
	running  bool                // its search has begun
	newcomer bool                // not counted anywhere when it came
	search   placement.Search
	asked    time.Time // when the last question was put
}

// Hello takes a hello. Every hello that is done with an Accept must be
// followed by [Admission.Leave] with its key, once.
func (a *Admission) Hello(now time.Time, h Hello) *Admitting {
	p := &Admitting{hello: h}
	a.expire(now)
	a.prove(now, p)
	if !a.settled(now, p) {
		p.newcomer = a.request(h).Home == ""
		a.turns.enter(p)
		a.start(now)
	}
	return p
}

// Cancel gives up a placement that is not done. It must not be used after that.
func (a *Admission) Cancel(now time.Time, p *Admitting) {
	if !p.Done {
		a.answered(p)
		p.Done = true
		a.abandon(p)
		a.turns.leave(p)
		a.start(now)
	}
}

// start begins the searches whose turn has come.
func (a *Admission) start(now time.Time) {
	for p := a.turns.next(); p != nil; p = a.turns.next() {
		if !a.settled(now, p) {
			a.place(now, p)
		}
		if p.Done {
			a.turns.leave(p)
		}
		if p.waited {
			a.out.Turns = append(a.out.Turns, p)
		}
	}
	a.turns.settle()
}

// Answered goes on with the answer to p.Ask.
func (a *Admission) Answered(now time.Time, p *Admitting, answer placement.Answer) {
	a.expire(now)
	a.step(now, roster.Heard{Gateway: answer.Gateway})
	a.step(now, roster.Hinted{Reports: answer.Reports})
	if now.Sub(p.asked) >= a.cfg.Reserve {
		answer.Yes = false // the place is kept no longer: this process, or its machine, stood still
	}
	if p.errand != nil {
		p.errand.yes = answer.Yes && answer.Gateway == p.errand.to
	}
	if answer.State != placement.Ready {
		p.unready = append(p.unready, answer.Gateway)
	}
	a.resume(now, p, func(s *placement.Search, v *placement.View) (*placement.Ask, placement.Decision) {
		return s.Answered(v, answer)
	})
}

// Unanswered goes on after the target of p.Ask has not answered. It makes that
// gateway suspect; unless it was merely late, and something else was heard of
// it since the question was put: then it is slow and not lost, and is asked again.
func (a *Admission) Unanswered(now time.Time, p *Admitting, late bool) {
	a.expire(now)
	a.tally.askFailures++
	next := (*placement.Search).Late
	if target := p.Ask.To.ID; !late || !a.roster.HeardAt(target).After(p.asked) {
		a.step(now, roster.LinkLost{Gateway: target})
		next = (*placement.Search).Failed
	}
	a.resume(now, p, next)
}

func (a *Admission) resume(now time.Time, p *Admitting, next func(*placement.Search, *placement.View) (*placement.Ask, placement.Decision)) {
	a.answered(p)
	switch {
	case a.settled(now, p): // the world went on while the question was out
	case p.errand != nil:
		a.finishErrand(now, p)
	default:
		v := a.view(now)
		p.search.Update(a.wanted(p, v))
		ask, d := next(&p.search, v)
		a.follow(now, p, ask, d)
	}
	if p.Done {
		a.turns.leave(p)
		a.start(now)
	}
}

// settled gives the verdict if it does not take a placement. It applies the
// precedence: drain > identity > stay > cap > ring.
func (a *Admission) settled(now time.Time, p *Admitting) bool {
	h := p.hello
	if p.leaving {
		switch {
		case a.present(h.Member) == nil:
			p.Err, p.Done = ErrNotHere, true
		case p.errand != nil && a.settling == nil:
			p.Err, p.Done = ErrDraining, true
		}
		return p.Done
	}
	if h.Validate() != nil {
		a.refuse(p, ReasonBadHello)
		return true
	}
	if h.Session != "" {
		a.admitChild(p)
		return true
	}
	if a.draining {
		if h.CanRedirect {
			return false
		}
		a.refuse(p, ReasonDraining)
		return true
	}
	if newest := a.newest(h.Member); h.Generation <= newest {
		a.refuse(p, ReasonStaleGeneration)
		p.Verdict.Generation = newest
		return true
	}
	if a.rivalry.count(h.Member, now) >= rivals {
		a.refuse(p, ReasonDuplicateMember)
		p.Verdict.RetryAfter = max(p.Verdict.RetryAfter, a.cfg.Hold)
		return true
	}
	if p.standing == forged {
		a.refuse(p, ReasonBadProof)
		return true
	}
	switch {
	case !h.CanRedirect:
		a.accept(now, p, ReasonNoRedirect)
	case h.Stay && !a.passOn(now, p):
		a.accept(now, p, ReasonStay)
	case !h.Stay && a.roster.Stale(now): // nobody is sent anywhere on a view that is not to be relied on
		a.accept(now, p, ReasonLocal)
	case !h.Stay:
		return false
	}
	return true
}

// newest returns the highest generation that is known of m's claims: here, or anywhere on the roster.
func (a *Admission) newest(m ring.MemberID) placement.Generation {
	_, e, _ := a.roster.Home(m)
	g := e.Generation
	if s := a.counted(m); s != nil {
		g = max(g, s.generation)
	}
	return g
}

// passOn sends somebody who asks to stay to another gateway. That happens only
// where there is no peer link to ask over: it was redirected here, may be
// redirected once more, this gateway is full, and one that has not found itself full is not.
func (a *Admission) passOn(now time.Time, p *Admitting) bool {
	h := p.hello
	if a.cfg.Peers != nil || h.Hops < 1 {
		return false
	}
	a.guests.arrive()
	if h.Hops >= a.cfg.MaxHops || !h.CanRedirect {
		return false
	}
	v, r := a.view(now), a.request(h)
	if a.loadWithout(h.Member) < max(v.CapFor(r), h.Cap) {
		return false
	}
	r.Avoid = slices.Concat(h.Avoid, h.Full)
	d := v.Place(r)
	if d.Reason == placement.Full || d.Gateway == "" || d.Gateway == a.cfg.Gateway {
		return false
	}
	p.Decision = d
	a.send(now, p, ReasonPassedOn)
	p.Verdict.Full = append(slices.Clone(h.Full), a.cfg.Gateway)
	return true
}

// place starts the search for the member's gateway.
func (a *Admission) place(now time.Time, p *Admitting) {
	if p.errand != nil {
		a.askErrand(now, p)
		return
	}
	v := a.view(now)
	p.search = placement.NewSearch(a.cfg.Gateway, a.cfg.Asks, a.wanted(p, v))
	ask, d := p.search.Begin(v)
	a.follow(now, p, ask, d)
}

// wanted is what the search for p's place is to find, as things are now.
func (a *Admission) wanted(p *Admitting, v *placement.View) placement.Request {
	r := a.request(p.hello)
	if p.leaving {
		r.Home, r.Avoid = a.cfg.Gateway, []ring.GatewayID{a.cfg.Gateway}
	}
	if p.leaving || a.draining {
		r.Prefer = v.Youngest(a.cfg.Gateway)
	}
	return r
}

// follow turns a step of the search into the next question, the verdict or the notice.
func (a *Admission) follow(now time.Time, p *Admitting, ask *placement.Ask, d placement.Decision) {
	ask, d = a.divert(now, p, ask, d)
	if ask != nil {
		ask.Question.Generation = p.hello.Generation
		ask.Question.Reports = a.roster.Reports()
		p.Ask, p.asked = ask, now
		a.asking = append(a.asking, p)
		p.Asked++
		a.tally.asks++
		return
	}
	p.Decision = d
	a.tally.placements[d.Reason]++
	switch {
	case p.leaving:
		a.dismiss(now, p)
	case d.Gateway == "" && a.draining:
		a.refuse(p, ReasonDraining)
	case d.Gateway == "":
		a.accept(now, p, ReasonLocal)
	case d.Gateway == a.cfg.Gateway:
		a.expectGuests(now, p)
		a.accept(now, p, placedReason(d.Reason))
	case a.draining:
		a.send(now, p, ReasonDraining)
	default:
		a.send(now, p, placedReason(d.Reason))
	}
}

// placedReason is the word for the supervisor.
func placedReason(r placement.Reason) Reason {
	switch r {
	case placement.Full, placement.Insisted:
		return ReasonFull
	case placement.Unreachable:
		return ReasonUnreachable
	default:
		return ReasonPlaced
	}
}

// answered notes that p's question is out no more.
func (a *Admission) answered(p *Admitting) {
	if i := slices.Index(a.asking, p); i >= 0 {
		a.asking = slices.Delete(a.asking, i, i+1)
	}
	p.Ask = nil
}

func (a *Admission) accept(now time.Time, p *Admitting, reason Reason) {
	h := p.hello
	limit := max(a.view(now).CapFor(a.request(h)), h.Cap) // who sent it here may have known of more
	if old := a.seats[h.Member]; old != nil && old.state != held {
		if !old.told && old.state == attached {
			a.contest(now, h.Member)
		}
		a.tell(old.key, Notice{Kind: NoticeEnd, Reason: ReasonSuperseded})
	}
	if !a.expects(h.Member) {
		a.pace.take(now)
	}
	from := a.from(h)
	a.unseat(h.Member)
	p.Key = a.nextKey()
	a.seats[h.Member] = &seat{generation: h.Generation, key: p.Key, movable: h.CanRedirect, from: from}
	a.owners[p.Key] = h.Member
	a.release(now, h.Member, &a.tally.arrived)
	a.ledger.Settle(h.Member)
	a.step(now, roster.Attached{Member: h.Member, Generation: h.Generation})
	if a.counts().Load() > limit {
		a.tally.overCap[reason]++
	}
	a.conclude(p, Verdict{Outcome: Accept, Reason: reason, Cap: limit,
		Proof: a.cfg.Proofs.kept(now, h.Member, a.cfg.Gateway, a.cfg.Incarnation)})
}

func (a *Admission) send(now time.Time, p *Admitting, reason Reason) {
	a.promise(now, p)
	d := p.Decision
	a.conclude(p, Verdict{Outcome: Redirect, Reason: reason, Cap: d.Cap,
		Gateway: d.Gateway, Endpoint: d.Endpoint, Incarnation: d.Incarnation, Full: slices.Clone(p.hello.Full),
		Proof: a.cfg.Proofs.sent(now, p.hello.Member, d.Gateway, d.Incarnation, p.hello.Hops+1)})
}

func (a *Admission) refuse(p *Admitting, reason Reason) {
	wait := a.cfg.RetryAfter + pause.Scale(a.cfg.RetryAfter, pause.Draw(a.cfg.Jitter))
	a.conclude(p, Verdict{Outcome: Refuse, Reason: reason, RetryAfter: wait})
}

// conclude gives the verdict. One that names no gateway is about this one.
func (a *Admission) conclude(p *Admitting, v Verdict) {
	if v.Gateway == "" {
		v.Gateway, v.Endpoint, v.Incarnation = a.cfg.Gateway, a.cfg.Endpoint, a.cfg.Incarnation
	}
	p.Verdict, p.Done = v, true
	a.tally.verdicts[v.Outcome][v.Reason]++
}

// expectGuests notes that p's member, a newcomer, was placed here: the others are taken to
// send as many.
func (a *Admission) expectGuests(now time.Time, p *Admitting) {
	if a.cfg.Peers == nil && p.newcomer {
		until := now.Add(a.cfg.Reserve)
		a.guests.expect(a.view(now).Placeable()-1, until)
		a.agenda.add(until, p.hello.Member)
	}
}

// promise notes where the member was sent.
func (a *Admission) promise(now time.Time, p *Admitting) {
	until := now.Add(a.cfg.Reserve)
	a.ledger.Promise(p.hello.Member, p.Decision.Gateway, p.newcomer, until)
	if a.cfg.Peers == nil {
		a.guests.promised(p.hello.Member, until)
	}
	a.agenda.add(until, p.hello.Member)
}

// Step feeds the roster: messages and what the transport saw.
func (a *Admission) Step(now time.Time, ev roster.Event) {
	a.expire(now)
	a.step(now, ev)
}

func (a *Admission) step(now time.Time, ev roster.Event) {
	for _, act := range a.roster.Step(now, ev) {
		switch act := act.(type) {
		case roster.Send:
			a.out.Sends = append(a.out.Sends, act)
		case roster.Placed:
			for _, e := range act.Entries {
				a.shownElsewhere(now, act.Gateway, e)
			}
		case roster.Conflict:
			a.out.Conflicts = append(a.out.Conflicts, act)
		case roster.Disagrees:
			a.out.Disagrees = append(a.out.Disagrees, act)
		case roster.Delisted:
			a.out.Delisted = append(a.out.Delisted, act)
		case roster.Rejected:
			a.out.Rejected = append(a.out.Rejected, act)
		}
	}
}

// Take returns what is to be done since the last call, and forgets it.
func (a *Admission) Take() Output {
	out := a.out
	a.out = Output{}
	return out
}

// Deadline returns when the machine wants [Admission.Step] with a [roster.Tick]; false: never.
func (a *Admission) Deadline() (time.Time, bool) {
	at, ok := a.roster.Deadline()
	if next, due := a.agenda.next(); due && (!ok || next.Before(at)) {
		return next, true
	}
	return at, ok
}

func (a *Admission) tell(key Key, n Notice) {
	if n.Gateway == "" {
		n.Gateway, n.Incarnation = a.cfg.Gateway, a.cfg.Incarnation
	}
	a.out.Tells = append(a.out.Tells, Tell{Key: key, Notice: n})
}

func (a *Admission) nextKey() Key {
	a.lastKey++
	return a.lastKey
}
