// SPDX-License-Identifier: Apache-2.0

package redirect

import (
	"errors"
	"slices"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/ring"
)

// Key names one accepted stream of one gateway. It is never used twice.
type Key uint64

// Errors of handing over.
var (
	ErrDraining = errors.New("redirect: a drain is under way already")
	ErrNotHere  = errors.New("redirect: that supervisor is not attached here")
	ErrNowhere  = errors.New("redirect: no gateway can take that supervisor")
)

// Tell is a notice to be given to the stream Key.
type Tell struct {
	Key    Key
	Notice Notice
}

// Departure says that a supervisor which this gateway served is served no more.
type Departure struct {
	Member ring.MemberID
	To     ring.GatewayID // who serves it now; empty: nobody that is known, its stream has closed
	Clean  bool           // it said goodbye
}

// Supervisor is one attached supervisor.
type Supervisor struct {
	Member     ring.MemberID
	Generation placement.Generation
	Movable    bool // it follows redirects
}

// Output is what an [Admission] wants done: notices, roster messages, and
// departures for whoever watches.
type Output struct {
	Turns      []*Admitting // those that waited and go on now
	Tells      []Tell
	Sends      []roster.Send
	Departures []Departure
	Conflicts  []roster.Conflict // a newer process uses this gateway's ID
	Rejected   []roster.Rejected // messages and links that were ignored, and why
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
	ledger   placement.Ledger // promises made without asking, and questions that are out
	turns    turns
	rivalry  rivalry
	heard    map[ring.GatewayID]time.Time
	departed map[ring.MemberID]placement.Generation // during a drain: whose stream closed, in case it shows up elsewhere
	agenda   agenda
	draining bool
	lastKey  Key
	tally    tally
	out      Output
}

// seat is a supervisor's place at this gateway.
type seat struct {
	generation placement.Generation
	state      seatState
	key        Key // of its stream; held: of the one that broke
	movable    bool
	told       bool      // its stream was told to move or to end
	until      time.Time // held: when the hold ends; left: when the stream is told to end
}

type seatState uint8

const (
	attached seatState = iota
	held               // the stream broke uncleanly; expected back
	left               // served elsewhere; the old stream is still open
)

// reservation is a place that this gateway keeps for a member on its way.
type reservation struct {
	generation placement.Generation // the newest that the asker had seen
	until      time.Time
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
		heard:    make(map[ring.GatewayID]time.Time),
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

	hello   Hello
	leaving bool // a supervisor is handed over: no verdict on a hello
	waited  bool // for its turn
	running bool // its search has begun
	search  placement.Search
	asked   time.Time // when the last question was put
}

// Hello takes a hello. Every hello that is done with an Accept must be
// followed by [Admission.Leave] with its key, once.
func (a *Admission) Hello(now time.Time, h Hello) *Admitting {
	p := &Admitting{hello: h}
	a.expire(now)
	if !a.settled(now, p) {
		a.turns.enter(p)
		a.start(now)
	}
	return p
}

// Cancel gives up a placement that is not done. It must not be used after that.
func (a *Admission) Cancel(now time.Time, p *Admitting) {
	if !p.Done {
		a.ledger.Settle(p.hello.Member)
		p.Done = true
		a.turns.leave(p)
		a.start(now)
	}
}

// start begins the searches whose turn has come.
func (a *Admission) start(now time.Time) {
	for p := a.turns.next(); p != nil; p = a.turns.next() {
		if p.leaving || !a.settled(now, p) {
			a.place(now, p)
		}
		a.turns.leaveIfDone(p)
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
	if target := p.Ask.To.ID; !late || !a.heard[target].After(p.asked) {
		a.step(now, roster.LinkLost{Gateway: target})
		next = (*placement.Search).Failed
	}
	a.resume(now, p, next)
}

func (a *Admission) resume(now time.Time, p *Admitting, next func(*placement.Search, *placement.View) (*placement.Ask, placement.Decision)) {
	a.ledger.Settle(p.hello.Member) // the question is out no more
	ask, d := next(&p.search, a.view())
	p.Ask = nil
	if p.leaving || !a.settled(now, p) { // the world went on while the question was out
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
	switch {
	case !h.CanRedirect:
		a.accept(now, p, ReasonNoRedirect)
	case h.Stay && !a.passOn(now, p):
		a.accept(now, p, ReasonStay)
	case !h.Stay:
		return false
	}
	return true
}

// newest returns the highest generation that is known of m's claims: here, or anywhere on the roster.
func (a *Admission) newest(m ring.MemberID) placement.Generation {
	_, e, _ := a.roster.Home(m)
	g := e.Generation
	if s := a.seats[m]; s != nil && s.state != left {
		g = max(g, s.generation)
	}
	return g
}

// passOn sends somebody who asks to stay to another gateway. That happens only
// where there is no peer link to ask over: it was redirected here, may be
// redirected once more, this gateway is full, and one that has not found itself full is not.
func (a *Admission) passOn(now time.Time, p *Admitting) bool {
	h := p.hello
	if a.cfg.Peers != nil || h.Hops < 1 || h.Hops >= a.cfg.MaxHops || !h.CanRedirect {
		return false
	}
	v, r := a.view(), a.request(h)
	if a.loadWithout(h.Member) < max(v.CapFor(r), h.Cap) {
		return false
	}
	r.Avoid = slices.Concat(h.Avoid, h.Full, []ring.GatewayID{a.cfg.Gateway})
	d := v.Place(r)
	if d.Reason == placement.Full || d.Reason == placement.Nowhere {
		return false
	}
	p.Decision = d
	a.send(now, p, ReasonPassedOn)
	p.Verdict.Full = append(slices.Clone(h.Full), a.cfg.Gateway)
	return true
}

// place starts the search for the member's gateway.
func (a *Admission) place(now time.Time, p *Admitting) {
	v := a.view()
	r := a.request(p.hello)
	if p.leaving {
		r.Home, r.Avoid = a.cfg.Gateway, []ring.GatewayID{a.cfg.Gateway}
	}
	if p.leaving || a.draining {
		r.Prefer = a.youngest(v)
	}
	p.search = placement.NewSearch(a.cfg.Gateway, a.cfg.Asks, r)
	ask, d := p.search.Begin(v)
	a.follow(now, p, ask, d)
}

// follow turns a step of the search into the next question, the verdict or the notice.
func (a *Admission) follow(now time.Time, p *Admitting, ask *placement.Ask, d placement.Decision) {
	if ask != nil {
		ask.Question.Generation = p.hello.Generation
		ask.Question.Reports = a.roster.Reports()
		a.ledger.Promise(p.hello.Member, ask.To, now.Add(a.cfg.Reserve))
		p.Ask, p.asked = ask, now
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

func (a *Admission) accept(now time.Time, p *Admitting, reason Reason) {
	h := p.hello
	limit := max(a.view().CapFor(a.request(h)), h.Cap) // who sent it here may have known of more
	if old := a.seats[h.Member]; old != nil && old.state != held {
		if !old.told && old.state == attached {
			a.rivalry.note(h.Member, now, a.cfg.Hold)
		}
		a.tell(old.key, Notice{Kind: NoticeEnd, Reason: ReasonSuperseded})
	}
	p.Key = a.nextKey()
	a.seats[h.Member] = &seat{generation: h.Generation, key: p.Key, movable: h.CanRedirect}
	a.owners[p.Key] = h.Member
	a.release(now, h.Member, &a.tally.arrived)
	a.ledger.Settle(h.Member)
	a.step(now, roster.Attached{Member: h.Member, Generation: h.Generation})
	if a.counts().Load() > limit {
		a.tally.overCap[reason]++
	}
	a.conclude(p, Verdict{Outcome: Accept, Reason: reason, Cap: limit,
		Gateway: a.cfg.Gateway, Endpoint: a.cfg.Endpoint, Incarnation: a.cfg.Incarnation})
}

func (a *Admission) send(now time.Time, p *Admitting, reason Reason) {
	a.promise(now, p)
	d := p.Decision
	a.conclude(p, Verdict{Outcome: Redirect, Reason: reason, Cap: d.Cap,
		Gateway: d.Gateway, Endpoint: d.Endpoint, Incarnation: d.Incarnation, Full: slices.Clone(p.hello.Full)})
}

func (a *Admission) refuse(p *Admitting, reason Reason) {
	wait := a.cfg.RetryAfter + time.Duration(a.cfg.Jitter()*float64(a.cfg.RetryAfter))
	a.conclude(p, Verdict{Outcome: Refuse, Reason: reason, RetryAfter: wait,
		Gateway: a.cfg.Gateway, Endpoint: a.cfg.Endpoint, Incarnation: a.cfg.Incarnation})
}

func (a *Admission) conclude(p *Admitting, v Verdict) {
	p.Verdict, p.Done = v, true
	a.tally.verdicts[v.Outcome][v.Reason]++
}

// promise notes where the member was sent.
func (a *Admission) promise(now time.Time, p *Admitting) {
	if g, ok := a.roster.Gateway(p.Decision.Gateway); ok {
		if a.cfg.Peers != nil {
			g.Counts = placement.Counts{} // it has said yes, so its counts show the place
		}
		until := now.Add(a.cfg.Reserve)
		a.ledger.Promise(p.hello.Member, g, until)
		a.agenda.add(until, p.hello.Member)
	}
}

// Leave says that the stream key has ended. Clean: the supervisor said
// goodbye, and nobody will come back for it; otherwise it is expected back for
// Config.Hold. A key whose stream was superseded, or is not known, changes nothing.
func (a *Admission) Leave(now time.Time, key Key, clean bool) {
	a.expire(now)
	if a.children.leave(key) {
		return
	}
	m, ok := a.owners[key]
	if !ok {
		return
	}
	delete(a.owners, key)
	s := a.seats[m]
	if s == nil || s.key != key {
		return
	}
	switch {
	case s.state == left:
		delete(a.seats, m)
		return
	case clean:
		delete(a.seats, m)
		a.step(now, roster.Left{Member: m, Generation: s.generation})
	default:
		s.state = held
		s.until = now.Add(a.cfg.Hold)
		a.agenda.add(s.until, m)
		a.step(now, roster.Held{Member: m, Generation: s.generation})
	}
	if a.departed != nil {
		a.departed[m] = s.generation
	}
	a.out.Departures = append(a.out.Departures, Departure{Member: m, Clean: clean})
}

// Asked answers another gateway's question: it keeps the place if there is
// room, and says what it knows.
func (a *Admission) Asked(now time.Time, q placement.Question) placement.Answer {
	a.expire(now)
	a.step(now, roster.Heard{Gateway: q.From})
	a.step(now, roster.Hinted{Reports: q.Reports})
	answer := placement.Answer{Gateway: a.cfg.Gateway, State: a.self().State}
	if answer.State == placement.Ready && (q.Insist || a.loadWithout(q.Member) < q.Limit || a.wouldKeep(q.Member)) {
		answer.Yes = true
		a.reserve(now, q)
	}
	answer.Reports = a.roster.Reports()
	return answer
}

// wouldKeep reports whether this gateway has room for m in its own eyes.
func (a *Admission) wouldKeep(m ring.MemberID) bool {
	r := a.request(Hello{Member: m})
	r.Prefer = a.cfg.Gateway
	d := a.view().Place(r)
	return d.Gateway == a.cfg.Gateway && d.Reason == placement.Preferred
}

func (a *Admission) reserve(now time.Time, q placement.Question) {
	if s := a.seats[q.Member]; s != nil && s.state != left {
		return // its seat is its place
	}
	until := now.Add(a.cfg.Reserve)
	a.reserved[q.Member] = reservation{generation: q.Generation, until: until}
	a.agenda.add(until, q.Member)
	a.step(now, roster.Reserved{Count: len(a.reserved)})
}

// release drops m's reservation, if there is one, and counts it.
func (a *Admission) release(now time.Time, m ring.MemberID, counter *uint64) {
	if _, ok := a.reserved[m]; ok {
		delete(a.reserved, m)
		*counter++
		a.step(now, roster.Reserved{Count: len(a.reserved)})
	}
}

// Step feeds the roster: messages and what the transport saw.
func (a *Admission) Step(now time.Time, ev roster.Event) {
	a.expire(now)
	a.step(now, ev)
}

func (a *Admission) step(now time.Time, ev roster.Event) {
	switch ev := ev.(type) {
	case roster.Heard:
		a.heard[ev.Gateway] = now
	case roster.Received:
		a.heard[ev.From] = now
	}
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
		case roster.Rejected:
			a.out.Rejected = append(a.out.Rejected, act)
		}
	}
}

// shownElsewhere takes another gateway's word that it serves a member now.
func (a *Admission) shownElsewhere(now time.Time, gateway ring.GatewayID, at roster.Entry) {
	m := at.Member
	if r, ok := a.reserved[m]; ok && at.Generation > r.generation {
		a.release(now, m, &a.tally.elsewhere)
	}
	a.ledger.Settle(m)
	if g, ok := a.departed[m]; ok && at.Generation > g {
		delete(a.departed, m)
		a.out.Departures = append(a.out.Departures, Departure{Member: m, To: gateway})
	}
	s := a.seats[m]
	if s == nil || s.state == left || s.generation >= at.Generation {
		return
	}
	a.step(now, roster.Left{Member: m, Generation: s.generation})
	if s.state == held {
		delete(a.seats, m)
	} else {
		if !s.told {
			a.rivalry.note(m, now, a.cfg.Hold)
		}
		s.state = left // the supervisor closes the old stream itself, once it has its Accept
		s.until = now.Add(a.cfg.Linger)
		a.agenda.add(s.until, m)
	}
	a.out.Departures = append(a.out.Departures, Departure{Member: m, To: gateway})
}

// Serve says that the gateway serves, and may be given supervisors.
func (a *Admission) Serve(now time.Time) {
	if !a.draining {
		a.step(now, roster.StateChanged{State: placement.Ready})
	}
}

// StartDrain makes the gateway take nobody new and returns whom it serves, in
// ID order. A second one is told so with [ErrDraining].
func (a *Admission) StartDrain(now time.Time) ([]Supervisor, error) {
	if a.draining {
		return nil, ErrDraining
	}
	a.draining = true
	a.departed = make(map[ring.MemberID]placement.Generation)
	a.step(now, roster.StateChanged{State: placement.Draining})
	return a.Supervisors(), nil
}

// StopDrain makes the gateway placeable again.
func (a *Admission) StopDrain(now time.Time) {
	if a.draining {
		a.draining = false
		a.departed = nil
		a.step(now, roster.StateChanged{State: placement.Ready})
	}
}

// MoveAway starts to hand an attached supervisor to another gateway. Done, the
// placement has set Notice, or Err to [ErrNotHere] or [ErrNowhere].
func (a *Admission) MoveAway(now time.Time, m ring.MemberID) (*Admitting, error) {
	a.expire(now)
	s := a.seats[m]
	if s == nil || s.state != attached {
		return nil, ErrNotHere
	}
	p := &Admitting{leaving: true, hello: Hello{Member: m, Generation: s.generation}}
	a.turns.enter(p)
	a.start(now)
	return p, nil
}

// dismiss tells a supervisor that leaves where to go.
func (a *Admission) dismiss(now time.Time, p *Admitting) {
	p.Done = true
	d := p.Decision
	s := a.seats[p.hello.Member]
	switch {
	case s == nil || s.state != attached:
		p.Err = ErrNotHere
	case d.Gateway == "":
		p.Err = ErrNowhere
	default:
		a.promise(now, p)
		s.told = true
		p.Notice = Notice{Kind: NoticeMove, Reason: a.moveReason(), Gateway: d.Gateway, Endpoint: d.Endpoint, Incarnation: d.Incarnation, Cap: d.Cap}
		a.tell(s.key, p.Notice)
	}
}

func (a *Admission) moveReason() Reason {
	if a.draining {
		return ReasonDraining
	}
	return ReasonPlaced
}

// youngest returns the target that started last. Whoever is handed over
// prefers it: in a rolling restart it is the least likely to stop next, so
// that each supervisor moves once. Incarnations of different gateways are
// comparable as far as their clocks are, and a preference needs no more.
func (a *Admission) youngest(v *placement.View) ring.GatewayID {
	var best placement.Gateway
	for g := range v.Gateways() {
		if g.ID != a.cfg.Gateway && g.Placeable() && g.Endpoint != "" && g.Incarnation > best.Incarnation {
			best = g
		}
	}
	return best.ID
}

// End tells m's stream to end, for reason; false: m is not attached here.
func (a *Admission) End(m ring.MemberID, reason Reason) bool {
	s := a.seats[m]
	if s == nil || s.state == held {
		return false
	}
	s.told = true
	a.tell(s.key, Notice{Kind: NoticeEnd, Reason: reason})
	return true
}

// EndAll tells every stream to end, sessions' too, for reason.
func (a *Admission) EndAll(reason Reason) {
	for _, s := range a.Supervisors() {
		a.End(s.Member, reason)
	}
	for _, key := range a.children.keys() {
		a.tell(key, Notice{Kind: NoticeEnd, Reason: reason})
	}
}

// Supervisors returns who is attached, in ID order.
func (a *Admission) Supervisors() []Supervisor {
	all := make([]Supervisor, 0, len(a.seats))
	for m, s := range a.seats {
		if s.state == attached {
			all = append(all, Supervisor{Member: m, Generation: s.generation, Movable: s.movable})
		}
	}
	slices.SortFunc(all, func(x, y Supervisor) int { return compare(x.Member, y.Member) })
	return all
}

// Explain tells why m would be placed where it would.
func (a *Admission) Explain(m ring.MemberID, avoid ...ring.GatewayID) placement.Explanation {
	return a.view().Explain(a.request(Hello{Member: m, Avoid: avoid}))
}

// Roster returns the roster, to be read.
func (a *Admission) Roster() *roster.Roster { return a.roster }

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

// expire ends what has run out: holds, reservations, promises, lingering streams.
func (a *Admission) expire(now time.Time) {
	for {
		m, ok := a.agenda.pop(now)
		if !ok {
			return
		}
		if r, ok := a.reserved[m]; ok && !r.until.After(now) {
			a.release(now, m, &a.tally.expired)
		}
		a.ledger.Expire(m, now)
		s := a.seats[m]
		if s == nil || s.until.IsZero() || s.until.After(now) {
			continue
		}
		switch s.state {
		case held:
			delete(a.seats, m)
			a.step(now, roster.Left{Member: m, Generation: s.generation})
		case left:
			s.until = time.Time{}
			a.tell(s.key, Notice{Kind: NoticeEnd, Reason: ReasonMoved})
		}
	}
}

// request is what the placement is asked for this hello.
func (a *Admission) request(h Hello) placement.Request {
	r := placement.Request{Member: h.Member, Avoid: h.Avoid}
	if home, _, ok := a.roster.Home(h.Member); ok {
		r.Home = home
	} else if _, ok := a.reserved[h.Member]; ok {
		r.Home = a.cfg.Gateway
	} else if sent, ok := a.ledger.Target(h.Member); ok {
		r.Home = sent
	}
	return r
}

// view freezes the fleet as this gateway sees it now.
func (a *Admission) view() *placement.View {
	p := placement.Picture{
		Self: a.cfg.Gateway, Ring: a.roster.Ring(), Live: a.roster.Live(), Version: a.roster.Version(),
		Gateways: slices.Collect(a.roster.Gateways()),
	}
	for i := range p.Gateways {
		if g := &p.Gateways[i]; g.ID == a.cfg.Gateway && g.State == placement.Starting {
			g.State = placement.Ready // a hello that came here shows that it serves
		}
	}
	a.ledger.Apply(p.Gateways)
	if a.cfg.Peers != nil {
		p.Live += a.turns.waiting()
		for i := range p.Gateways {
			p.Live += p.Gateways[i].Promised // questions whose answer the target's counts do not show
			p.Gateways[i].Promised, p.Gateways[i].Pending = 0, 0
		}
	} else {
		for m := range a.ledger.Members() {
			if _, _, ok := a.roster.Home(m); !ok {
				p.Live++
			}
		}
		if !a.draining { // a gateway that drains places alone
			for _, g := range p.Gateways {
				if g.Placeable() {
					p.Rivals++
				}
			}
		}
	}
	return placement.NewView(p)
}

func (a *Admission) self() placement.Gateway {
	g, _ := a.roster.Gateway(a.cfg.Gateway)
	return g
}

func (a *Admission) counts() placement.Counts { return a.self().Counts }

// loadWithout is this gateway's exact load, m left out.
func (a *Admission) loadWithout(m ring.MemberID) int {
	n := a.counts().Load()
	if s := a.seats[m]; s != nil && s.state != left {
		n--
	} else if _, ok := a.reserved[m]; ok {
		n--
	}
	return n
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
