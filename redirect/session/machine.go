// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/internal/pause"
	"github.com/evenring/evenring/redirect/supervisor"
	"github.com/evenring/evenring/ring"
)

// generationLimit is above every generation that a clock gives before the year
// 2262; a verdict that names a higher one is not believed.
const generationLimit = placement.Generation(1) << 63

// Machine is a session's machine. It is not safe for concurrent use. A copy
// made by assignment goes its own way; it shares the config's funcs alone.
type Machine struct {
	cfg     Config
	started bool
	stopped bool

	generation placement.Generation // of the newest attempt, or one below the first
	stream     stream               // in use; zero: none
	next       attempt              // in flight or planned; zero: none

	home      supervisor.Home // of the supervisor, as last heard
	homeBy    time.Time       // without a stream: until when to insist on home
	shunned   supervisor.Home // a home that sent us away: its supervisor is about to follow
	shunnedTo time.Time       // until when it is no home

	failures int // failures in a row that cost a pause, without a stream
	returns  int // attempts in a row to be at home, with a stream elsewhere
	dials    int // without a pause between them
	flaps    pause.Flaps
}

// stream is an accepted stream.
type stream struct {
	generation  placement.Generation
	gateway     ring.GatewayID
	incarnation placement.Incarnation
	since       time.Time
	dialledFor  supervisor.Home // whose endpoint it was accepted at; zero: another address
	judged      bool            // its end, or its replacement, has been counted in flaps
}

// route is what an attempt dials, which decides what its failure means.
type route uint8

const (
	nowhere    route = iota
	toWherever       // planned only: decide when the time has come
	toService
	toHome
	toTarget // where a verdict or a notice has sent us
)

// attempt is one dial, planned or in flight.
type attempt struct {
	to         route
	generation placement.Generation // 0: planned
	at         time.Time            // planned: when to dial; in flight: when to give up

	addr   string
	home   supervisor.Home // toHome: the home that it is for
	stay   bool
	hops   int
	cap    int
	full   []ring.GatewayID // never written to, so copies may share it
	passed error
}

func (a attempt) inFlight() bool { return a.generation != 0 }

// New returns a machine for cfg, idle. The error is that of [Config.Validate].
func New(cfg Config) (*Machine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	return &Machine{cfg: cfg, generation: cfg.Generation - 1}, nil
}

// State returns what the session is doing. Its states are a supervisor's.
func (m *Machine) State() supervisor.State {
	switch {
	case m.stopped:
		return supervisor.Stopped
	case m.attached() && m.next.to != nowhere:
		return supervisor.Moving
	case m.attached():
		return supervisor.Attached
	case m.next.inFlight():
		return supervisor.Dialing
	case m.next.to != nowhere:
		return supervisor.Waiting
	default:
		return supervisor.Idle
	}
}

// AtHome reports whether the session has a stream to its supervisor's home, as
// far as that is known.
func (m *Machine) AtHome() bool {
	if !m.attached() || m.home == (supervisor.Home{}) {
		return false
	}
	if m.stream.dialledFor == m.home {
		return true
	}
	return m.stream.gateway == m.home.Gateway && m.home.Gateway != "" &&
		cmp.Or(m.stream.incarnation, m.home.Incarnation) == cmp.Or(m.home.Incarnation, m.stream.incarnation)
}

// Deadline returns when the machine wants a [Tick], and false if it wants none.
func (m *Machine) Deadline() (time.Time, bool) {
	return m.next.at, m.next.to != nowhere
}

// Step takes one event and returns what to do about it, in order. Pauses are
// counted from now, which should not run backwards.
func (m *Machine) Step(now time.Time, event Event) []Action {
	s := step{Machine: m, now: now}
	switch e := event.(type) {
	case Start:
		s.start()
	case HomeChanged:
		s.homeChanged(e.Home)
	case Answered:
		s.answered(e)
	case Failed:
		s.dialFailed(e)
	case Lost:
		s.streamLost(e)
	case Noticed:
		s.noticed(e)
	case Tick:
		s.tick()
	case Stop:
		s.stop()
	}
	return s.actions
}

func (m *Machine) attached() bool { return m.stream.generation != 0 }

// step is one step of the machine under way.
type step struct {
	*Machine
	now     time.Time
	actions []Action
}

func (s *step) do(a Action) { s.actions = append(s.actions, a) }

func (s *step) start() {
	if s.started || s.stopped {
		return
	}
	s.started = true
	s.seekAnew(0)
}

func (s *step) stop() {
	if s.stopped {
		return
	}
	s.stopped = true
	s.cancelNext()
	s.closeStream()
}

func (s *step) tick() {
	a := s.next
	if a.to == nowhere || s.now.Before(a.at) {
		return
	}
	if a.inFlight() {
		s.cancelNext()
		s.failed(a)
		return
	}
	s.begin(a)
}

// begin carries out what was planned.
func (s *step) begin(a attempt) {
	s.next = attempt{}
	s.dials = 0
	switch {
	case a.to != toWherever:
		s.dial(a)
	case !s.attached():
		s.seek()
	case s.misplaced():
		s.dial(s.homeAttempt())
	}
}

func (s *step) homeChanged(home supervisor.Home) {
	if home == s.home {
		return
	}
	s.home = home
	s.shunned = supervisor.Home{}
	s.returns = 0
	if !s.started || s.stopped {
		return
	}
	known := home != (supervisor.Home{})
	switch {
	case s.attached():
		s.review()
	case known && (!s.next.inFlight() || s.next.to == toHome):
		// What we wait for, or dial, was the best guess without this.
		s.cancelNext()
		s.dials = 0
		s.seek()
	}
}

func (s *step) answered(e Answered) {
	a := s.next
	if !a.inFlight() || e.Generation != a.generation {
		if e.Verdict.Outcome == redirect.Accept && e.Generation != 0 && e.Generation != s.stream.generation {
			s.do(Close{e.Generation})
		}
		return
	}
	s.next = attempt{}
	switch e.Verdict.Outcome {
	case redirect.Accept:
		s.accepted(a, e.Verdict)
	case redirect.Redirect:
		s.redirected(a, e.Verdict)
	case redirect.Refuse:
		s.refused(a, e.Verdict)
	default:
		s.failed(a)
	}
}

func (s *step) dialFailed(e Failed) {
	a := s.next
	if a.inFlight() && e.Generation == a.generation {
		s.next = attempt{}
		s.failed(a)
	}
}

func (s *step) accepted(a attempt, v redirect.Verdict) {
	old := s.stream
	s.stream = stream{
		generation: a.generation, gateway: v.Gateway, incarnation: v.Incarnation,
		since: s.now, dialledFor: a.home,
	}
	s.failures, s.dials = 0, 0
	s.do(Adopt{a.generation, v.Gateway, s.AtHome()})
	if old.generation != 0 {
		s.do(Close{old.generation})
	}
	s.review()
}

func (s *step) redirected(a attempt, v redirect.Verdict) {
	target := attempt{
		to: toTarget, addr: v.Endpoint,
		stay: true, hops: a.hops + 1, cap: max(v.Cap, 0), full: slices.Clone(v.Full),
	}
	passed := s.unfit(v.Gateway, target)
	switch {
	case s.attached() && (passed != nil || a.to == toHome && v.Gateway == s.stream.gateway):
		s.tryHomeLater() // there is a stream already, and no better one to be had
	case passed != nil:
		s.fallBack(passed)
	case s.dials < s.maxDials():
		s.dial(target)
	default:
		s.pause()
	}
}

func (s *step) refused(a attempt, v redirect.Verdict) {
	if v.Reason == redirect.ReasonStaleGeneration && v.Generation < generationLimit {
		s.generation = max(s.generation, v.Generation)
	}
	wait := pause.Retry(v.RetryAfter, s.cfg.BackoffMin, s.cfg.Jitter)
	again := attempt{to: toWherever}
	if a.to == toHome && !s.attached() && !s.now.Add(wait).Before(s.homeBy) {
		again = s.service(false)
	}
	s.plan(wait, again)
}

// failed decides what follows a dial that brought no verdict.
func (s *step) failed(a attempt) {
	switch {
	case s.attached():
		s.tryHomeLater()
	case a.to == toTarget:
		s.fallBack(nil)
	case a.to == toHome && !s.now.Before(s.homeBy):
		s.dial(s.service(false))
	default:
		s.pause()
	}
}

func (s *step) streamLost(e Lost) {
	if e.Generation != 0 && e.Generation == s.stream.generation {
		s.endStream(false)
	}
}

func (s *step) noticed(e Noticed) {
	if e.Generation == 0 || e.Generation != s.stream.generation {
		return
	}
	switch n := e.Notice; n.Kind {
	case redirect.NoticeMove:
		s.toldToMove(n)
	case redirect.NoticeEnd:
		s.ended(n.Reason)
	case redirect.NoticeHeartbeat:
		s.heartbeat(n)
	}
}

// heartbeat looks who is at the other end: a proxy may keep the stream while the
// gateway behind it restarts, and the new one has never heard of us.
func (s *step) heartbeat(n redirect.Notice) {
	s.stream.gateway = cmp.Or(s.stream.gateway, n.Gateway)
	s.stream.incarnation = cmp.Or(s.stream.incarnation, n.Incarnation)
	if cmp.Or(n.Gateway, s.stream.gateway) != s.stream.gateway ||
		cmp.Or(n.Incarnation, s.stream.incarnation) != s.stream.incarnation {
		s.do(Close{s.stream.generation})
		s.endStream(false)
	}
}

// ended acts on the gateway's word that the stream ends now.
func (s *step) ended(reason redirect.Reason) {
	takenOver := false
	switch reason {
	case redirect.ReasonExpired:
		if !s.next.inFlight() {
			// Make before break: the old stream may still carry something.
			renewal := s.service(false)
			if s.reachable() {
				renewal = s.homeAttempt()
			}
			s.plan(s.flapPause(false), renewal)
		}
		return
	case redirect.ReasonDraining, redirect.ReasonStopped, redirect.ReasonMoved:
		s.shunHome(s.cfg.HomeWait)
	case redirect.ReasonSuperseded, redirect.ReasonDuplicateMember:
		takenOver = true
	}
	s.do(Close{s.stream.generation})
	s.endStream(takenOver)
}

// toldToMove takes the gateway's word as a hint: a home elsewhere is better
// knowledge, for it is the supervisor's own.
func (s *step) toldToMove(n redirect.Notice) {
	if n.Gateway != s.stream.gateway {
		s.shunHome(s.cfg.BackoffMax) // time for its supervisor to go, too
	}
	if s.next.inFlight() {
		return
	}
	target := attempt{to: toTarget, addr: n.Endpoint, stay: true, hops: 1, cap: max(n.Cap, 0)}
	switch {
	case s.misplaced():
		s.plan(s.pace(), attempt{to: toWherever})
	case s.unfit(n.Gateway, target) == nil:
		s.plan(s.pace(), target)
	}
}

// endStream follows the end of the stream in use, which is closed or lost.
func (s *step) endStream(takenOver bool) {
	wait := s.flapPause(takenOver)
	s.stream = stream{}
	if s.next.inFlight() {
		s.homeBy = s.now.Add(s.cfg.HomeWait)
		return
	}
	s.seekAnew(wait)
}

// seekAnew begins to look for a stream, after a pause.
func (s *step) seekAnew(after time.Duration) {
	s.homeBy = s.now.Add(after + s.cfg.HomeWait)
	s.dials = 0
	if after <= 0 {
		s.next = attempt{}
		s.seek()
		return
	}
	s.plan(after, attempt{to: toWherever})
}

// seek looks for a stream, having none.
func (s *step) seek() {
	switch {
	case s.reachable():
		s.dial(s.homeAttempt())
	case s.known() || !s.now.Before(s.homeBy):
		s.dial(s.service(false))
	default:
		s.plan(s.homeBy.Sub(s.now), attempt{to: toWherever})
	}
}

// review decides whether the session, having a stream, must move.
func (s *step) review() {
	if s.misplaced() {
		if s.next.inFlight() && (s.next.to != toHome || s.next.addr == s.home.Endpoint) {
			return
		}
		s.cancelNext()
		s.tryHomeLater()
		return
	}
	if s.AtHome() {
		s.returns = 0
	}
	if s.home != (supervisor.Home{}) || !s.next.inFlight() {
		s.cancelNext()
	}
	if s.home != (supervisor.Home{}) && s.shunning() && !s.AtHome() {
		s.plan(s.shunnedTo.Sub(s.now)+s.pace(), attempt{to: toWherever})
	}
}

// tryHomeLater plans the next attempt to be at home, if the session is not.
func (s *step) tryHomeLater() {
	if !s.misplaced() {
		return
	}
	wait := s.cfg.Debounce + s.pace()
	if s.returns > 0 {
		wait = s.cfg.backoff().After(s.returns, s.cfg.Jitter)
	}
	s.returns++
	s.plan(wait, attempt{to: toWherever})
}

// shunHome makes home no home for a while, if it is the one that the session is at.
func (s *step) shunHome(d time.Duration) {
	if s.AtHome() {
		s.shunned, s.shunnedTo = s.home, s.now.Add(d)
	}
}

func (s *step) shunning() bool {
	return s.home == s.shunned && s.now.Before(s.shunnedTo)
}

// known reports whether the supervisor has a home to go to.
func (s *step) known() bool { return s.home != (supervisor.Home{}) && !s.shunning() }

// reachable reports whether home is known and has an address of its own.
func (s *step) reachable() bool { return s.known() && s.home.Endpoint != "" }

// misplaced reports whether the stream is not where it could be, at home.
func (s *step) misplaced() bool { return s.attached() && s.reachable() && !s.AtHome() }

// unfit says why a target is not to be dialled, and nil if it may be.
func (s *step) unfit(gateway ring.GatewayID, target attempt) error {
	var cause error
	switch {
	case target.addr == "":
		cause = errNoEndpoint
	case target.hops > s.cfg.MaxHops:
		cause = fmt.Errorf("%d redirects were followed already", s.cfg.MaxHops)
	case s.cfg.Allow != nil:
		cause = s.cfg.Allow(gateway, target.addr)
		if named, ok := errors.AsType[*supervisor.NotAllowedError](cause); ok {
			cause = named.Cause // the names are said below
		}
	}
	if cause == nil {
		return nil
	}
	return fmt.Errorf("session: not sent to %q at %q: %w", gateway, target.addr, cause)
}

var errNoEndpoint = errors.New("it has no endpoint")

// maxDials bounds the dials without a pause: the first, the redirects, the fallback.
func (s *step) maxDials() int { return s.cfg.MaxHops + 2 }

// fallBack asks the Service to be kept by whoever answers: where it was sent is no good.
func (s *step) fallBack(passed error) {
	if s.dials >= s.maxDials() {
		s.pause()
		return
	}
	a := s.service(true)
	a.passed = passed
	s.dial(a)
}

func (s *step) cancelNext() {
	if s.next.inFlight() {
		s.do(Abandon{s.next.generation})
	}
	s.next = attempt{}
}

func (s *step) closeStream() {
	if s.attached() {
		s.do(Close{s.stream.generation})
		s.stream = stream{}
	}
}

func (s *step) service(stay bool) attempt {
	return attempt{to: toService, addr: s.cfg.Service, stay: stay}
}

func (s *step) homeAttempt() attempt {
	return attempt{to: toHome, addr: s.home.Endpoint, home: s.home, stay: true}
}

// pace draws this session's share of the window that moves are spread over.
func (s *step) pace() time.Duration {
	return pause.Scale(s.cfg.Pace, pause.Draw(s.cfg.Jitter))
}

// flapPause is how long to wait before the stream in use is replaced. It is
// asked once per stream: a second ending is not another.
func (s *step) flapPause(takenOver bool) time.Duration {
	if s.stream.judged {
		return 0
	}
	s.stream.judged = true
	return s.flaps.Ended(s.now.Sub(s.stream.since), takenOver, s.cfg.backoff(), s.cfg.Jitter)
}

// pause looks again after the pause that one more failure costs.
func (s *step) pause() {
	s.failures++
	s.plan(s.cfg.backoff().After(s.failures, s.cfg.Jitter), attempt{to: toWherever})
}

// plan carries a out after a pause. Not after one means now.
func (s *step) plan(after time.Duration, a attempt) {
	if after <= 0 {
		s.begin(a)
		return
	}
	a.at = s.now.Add(after)
	s.next = a
}

func (s *step) dial(a attempt) {
	s.dials++
	s.generation++
	timeout := s.cfg.DialTimeout
	if a.to == toHome && !s.attached() {
		timeout = min(timeout, s.cfg.HomeWait) // without a stream there is the Service to turn to
	}
	a.generation = s.generation
	a.at = s.now.Add(timeout)
	s.next = a
	s.do(Dial{
		Addr: a.addr,
		Hello: redirect.Hello{
			Member:      s.cfg.Member,
			Session:     s.cfg.Session,
			Generation:  a.generation,
			Stay:        a.stay,
			Hops:        a.hops,
			Cap:         a.cap,
			Full:        slices.Clone(a.full),
			CanRedirect: true,
			Home:        s.home.Gateway,
		},
		Timeout: timeout,
		Passed:  a.passed,
	})
}
