// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/internal/pause"
	"github.com/evenring/evenring/ring"
)

// generationLimit is above every generation that a clock gives before the year
// 2262. A verdict that names a higher one is not believed, for a supervisor
// could not raise its own above it for ever.
const generationLimit = placement.Generation(1) << 63

// Machine is a supervisor's machine. It is not safe for concurrent use. A copy
// made by assignment goes its own way; it shares the config's funcs alone.
type Machine struct {
	cfg     Config
	started bool
	stopped bool

	generation placement.Generation // of the newest attempt, or one below the first
	stream     stream               // in use; zero: none
	next       attempt              // in flight or planned; zero: none

	home       Home
	homeProof  []byte // to be shown at home; never written to, so copies may share it
	homeDenied error  // why the address that home gave is not dialled; nil if it may be
	homeKept   bool   // home is published and not forgotten
	leaving    bool   // home wants us gone: avoid it until another accepts us

	homeTries int       // failed dials of home since it was lost
	homeSince time.Time // when those began
	homeLast  time.Time // when the last one is due; drawn once the first has failed
	homeUntil time.Time // when to stop waiting for home; not after homeSince + HomePatience

	avoid    avoidList
	failures int  // failures in a row that cost a pause
	skipped  bool // the free skip of this acceptance is spent
	dials    int  // without a pause between them
	flaps    pause.Flaps
}

// stream is an accepted stream.
type stream struct {
	generation  placement.Generation
	gateway     ring.GatewayID
	incarnation placement.Incarnation
	since       time.Time
	judged      bool // its end, or its replacement, has been counted in flaps
}

// route is what an attempt dials, which decides what its failure means.
type route uint8

const (
	nowhere route = iota
	toService
	toHome
	toTarget // where a verdict or a notice has sent us
)

// attempt is one dial, planned or in flight.
type attempt struct {
	to         route
	generation placement.Generation // 0: planned
	at         time.Time            // planned: when to dial; in flight: when to give up

	addr        string
	gateway     ring.GatewayID // toTarget: who should be there
	incarnation placement.Incarnation
	stay        bool
	hops        int
	cap         int
	full        []ring.GatewayID // never written to, so copies may share it
	proof       []byte           // nor is this one
	passed      error
	offered     bool // home would be glad of it, and keeps us otherwise
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

// State returns what the supervisor is doing.
func (m *Machine) State() State {
	switch {
	case m.stopped:
		return Stopped
	case m.stream.generation != 0 && m.next.to != nowhere:
		return Moving
	case m.stream.generation != 0:
		return Attached
	case m.next.inFlight():
		return Dialing
	case m.next.to != nowhere:
		return Waiting
	default:
		return Idle
	}
}

// Home returns the gateway that last accepted the supervisor.
func (m *Machine) Home() Home { return m.home }

// Deadline returns when the machine wants a [Tick], and false if it wants none.
func (m *Machine) Deadline() (time.Time, bool) {
	return m.next.at, m.next.to != nowhere
}

// Step takes one event and returns what to do about it, in order. now must not
// be before that of an earlier step by more than the caller can live with:
// pauses are counted from it.
func (m *Machine) Step(now time.Time, event Event) []Action {
	s := step{Machine: m, now: now}
	switch e := event.(type) {
	case Start:
		s.start()
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
	s.dial(s.service(false))
}

func (s *step) stop() {
	if s.stopped {
		return
	}
	s.stopped = true
	s.abandon()
	s.closeStream()
}

func (s *step) tick() {
	a := s.next
	if a.to == nowhere || s.now.Before(a.at) {
		return
	}
	s.next = attempt{}
	if a.inFlight() {
		s.do(Abandon{a.generation})
		s.failed(a)
		return
	}
	s.dials = 0
	if a.to == toHome && !s.now.Before(s.homeUntil) {
		s.giveUpHome(0)
		return
	}
	s.dial(a)
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
	s.stream = stream{generation: a.generation, gateway: v.Gateway, incarnation: v.Incarnation, since: s.now}
	s.home, s.homeProof, s.homeDenied = Home{v.Gateway, v.Endpoint, v.Incarnation}, slices.Clone(v.Proof), nil
	if s.home.Endpoint == "" && a.addr != s.cfg.Service {
		s.home.Endpoint = a.addr
	}
	if err := s.denied(s.home.Gateway, s.home.Endpoint, a); err != nil {
		s.home.Endpoint, s.homeDenied = "", err
	}
	s.homeKept = true
	s.leaving = false
	s.failures, s.dials, s.skipped = 0, 0, false
	s.avoid.remove(v.Gateway)
	s.do(Adopt{a.generation, s.home})
	if old.generation != 0 {
		s.do(Close{old.generation})
	}
}

func (s *step) redirected(a attempt, v redirect.Verdict) {
	s.seen(v.Gateway, v.Incarnation)
	if s.keeps(a) {
		return
	}
	target := attempt{
		to: toTarget, addr: v.Endpoint, gateway: v.Gateway, incarnation: v.Incarnation,
		stay: true, hops: a.hops + 1, cap: max(v.Cap, 0), full: slices.Clone(v.Full), proof: slices.Clone(v.Proof),
	}
	fallback := s.instead(target)
	if fallback.passed = s.unfit(target); fallback.passed != nil {
		s.passOver(target)
		s.dialOrPause(fallback, fallback)
		return
	}
	s.dialOrPause(target, fallback)
}

func (s *step) refused(a attempt, v redirect.Verdict) {
	stale := v.Reason == redirect.ReasonStaleGeneration
	if stale && v.Generation < generationLimit {
		s.generation = max(s.generation, v.Generation)
	}
	switch {
	case s.keeps(a):
		return
	case stale && a.to != toHome:
		s.pause(a)
		return
	case stale:
		s.failures++ // home is alive: its patience starts anew
		s.goHome(s.cfg.backoff().After(s.failures, s.cfg.Jitter), false)
		return
	case v.Reason == redirect.ReasonBadProof && a.to == toHome:
		s.homeProof = nil
	}
	s.plan(pause.Retry(v.RetryAfter, s.cfg.BackoffMin, s.cfg.Jitter), s.service(false))
}

// failed decides what follows a dial that brought no verdict.
func (s *step) failed(a attempt) {
	switch a.to {
	case toHome:
		s.homeFailed()
	case toTarget:
		s.avoid.add(a.gateway, a.incarnation, s.now.Add(s.cfg.AvoidFor))
		if s.keeps(a) {
			return
		}
		// While the old stream works there is no hurry: be placed anew.
		fallback := s.service(false)
		if s.stream.generation == 0 {
			fallback = s.instead(a)
		}
		if s.skipped {
			s.pause(fallback)
			return
		}
		s.skipped = true
		s.dialOrPause(fallback, fallback)
	default:
		s.pause(s.service(false))
	}
}

func (s *step) streamLost(e Lost) {
	if e.Generation != 0 && e.Generation == s.stream.generation {
		s.redial()
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
		s.redial()
		return
	}
	if len(n.Proof) > 0 {
		s.homeProof = slices.Clone(n.Proof)
	}
}

// ended acts on the gateway's word that the stream ends now.
func (s *step) ended(reason redirect.Reason) {
	switch reason {
	case redirect.ReasonSuperseded, redirect.ReasonDuplicateMember, redirect.ReasonMoved:
		// Another stream of this member serves. If it is not our own next one, do not fight it.
		wait := s.flapPause(true)
		s.closeStream()
		if s.next.to == nowhere {
			s.goHome(wait, false)
		}
	case redirect.ReasonExpired:
		if s.next.to == nowhere {
			s.goHome(s.flapPause(false), true)
		}
	case redirect.ReasonDraining, redirect.ReasonStopped:
		switch {
		case s.next.to == nowhere:
			s.leave()
			s.plan(s.movePause(), s.service(false))
		case s.next.offered:
			s.order()
		}
	default:
		s.do(Close{s.stream.generation})
		s.redial()
	}
}

func (s *step) toldToMove(n redirect.Notice) {
	s.seen(n.Gateway, n.Incarnation)
	target := attempt{
		to: toTarget, addr: n.Endpoint, gateway: n.Gateway, incarnation: n.Incarnation,
		stay: true, hops: 1, cap: max(n.Cap, 0), proof: slices.Clone(n.Proof),
	}
	if n.Reason == redirect.ReasonPlaced {
		s.offered(target)
		return
	}
	passed := s.unfit(target)
	if s.next.to != nowhere {
		same := s.next.to == toTarget && s.next.addr == target.addr
		switch {
		case s.next.offered && same && passed == nil:
			s.order()
			return
		case !s.next.offered && (same || passed != nil):
			return
		}
		s.abandon()
	}
	if passed == nil && target.gateway != "" && target.gateway == s.home.Gateway {
		s.plan(s.flapPause(false), target) // the same gateway wants a new stream
		return
	}
	s.leave()
	if passed == nil {
		s.plan(s.flapPause(false), target)
		return
	}
	elsewhere := s.service(false)
	if n.Gateway != "" || n.Endpoint != "" {
		s.passOver(target)
		elsewhere.passed = passed
	}
	s.plan(s.movePause(), elsewhere)
}

// offered is told by a home that evens out and can do without us. It has just heard
// from that gateway, so what we avoid it for is over, if it is not our way there that is broken: then we stay.
func (s *step) offered(target attempt) {
	if s.next.to != nowhere || s.barred(target) != nil {
		return
	}
	target.offered = true
	s.plan(s.flapPause(false), target)
}

// order makes an order of what was an offer.
func (s *step) order() {
	s.next.offered = false
	s.leave()
}

// keeps reports whether nothing has to follow an attempt that was in vain.
func (s *step) keeps(a attempt) bool { return a.offered && s.stream.generation != 0 }

// abandon gives up what is planned or in flight.
func (s *step) abandon() {
	if s.next.inFlight() {
		s.do(Abandon{s.next.generation})
	}
	s.next = attempt{}
}

// redial follows the end of the stream in use, which is closed or lost.
func (s *step) redial() {
	wait := s.flapPause(false)
	s.stream = stream{}
	if s.next.offered {
		s.abandon()
	}
	if s.leaving {
		s.forgetHome()
	}
	if s.next.to == nowhere {
		s.goHome(wait, false)
	}
}

// goHome begins to dial home after a pause. A home that has just spoken is
// alive, and slow at worst because everybody whom it told the same dials it
// now: its dial has most of the patience.
func (s *step) goHome(after time.Duration, alive bool) {
	wait, until := s.spread(s.cfg.HomePatience)
	if alive {
		until = max(until, pause.Scale(s.cfg.HomePatience, 0.6)+until*2/5)
	}
	if s.home.Endpoint == "" {
		// Only the Service leads there, and not only there: arrive one by one.
		anywhere := s.service(false)
		anywhere.passed = s.homeDenied
		s.plan(max(after, wait), anywhere)
		return
	}
	s.homeTries = 0
	s.homeSince = s.now.Add(after)
	s.homeUntil = s.homeSince.Add(until)
	s.plan(after, s.homeAttempt())
}

func (s *step) homeFailed() {
	s.homeTries++
	if !s.now.Before(s.homeUntil) {
		s.giveUpHome(0)
		return
	}
	if s.homeTries == 1 {
		wait, until := s.spread(s.homeSince.Add(s.cfg.HomePatience).Sub(s.now))
		s.homeLast, s.homeUntil = s.now.Add(wait), s.now.Add(until)
	}
	wait := s.homeLast.Sub(s.now)
	switch left := s.cfg.HomeTries - s.homeTries; {
	case left > 0:
		s.plan(wait/time.Duration(left), s.homeAttempt())
	case s.homeTries == 1:
		s.giveUpHome(wait)
	default:
		s.giveUpHome(0) // the pause before this try has spread us already
	}
}

// spread divides a time so that supervisors who lose one gateway together do
// not go on together: wait is drawn from its first seven eighths, and one eighth
// more is left for what follows the wait.
func (s *step) spread(d time.Duration) (wait, until time.Duration) {
	wait = pause.Scale(d, 7./8*pause.Draw(s.cfg.Jitter))
	return wait, wait + max(d/8, 1)
}

// giveUpHome goes to the Service, to be placed anew anywhere but at home.
func (s *step) giveUpHome(after time.Duration) {
	s.avoid.add(s.home.Gateway, s.home.Incarnation, s.now.Add(s.cfg.AvoidFor))
	if s.stream.generation == 0 {
		s.forgetHome()
	}
	s.plan(after, s.service(false))
}

func (s *step) forgetHome() {
	if s.homeKept {
		s.homeKept = false
		s.do(Forget{})
	}
}

// leave avoids home from now on, for home wants us gone.
func (s *step) leave() {
	s.leaving = true
	s.avoid.add(s.home.Gateway, s.home.Incarnation, s.now.Add(s.cfg.AvoidFor))
}

// seen takes note of a gateway's incarnation: a newer one is another gateway.
func (s *step) seen(gateway ring.GatewayID, incarnation placement.Incarnation) {
	s.avoid.seen(gateway, incarnation)
	if gateway == s.home.Gateway && s.home.Incarnation != 0 && incarnation > s.home.Incarnation {
		s.leaving = false
	}
}

var (
	errNoEndpoint = errors.New("it has no endpoint")
	errAvoided    = errors.New("it is avoided")
)

// unfit says why a target is not to be dialled, and nil if it may be.
func (s *step) unfit(target attempt) error {
	if err := s.barred(target); err != nil {
		return err
	}
	if s.avoid.has(target.gateway, s.now) {
		return notSent(target, errAvoided)
	}
	return nil
}

// barred says why a target can never be dialled, and nil if it can.
func (s *step) barred(target attempt) error {
	var why error
	switch {
	case target.addr == "":
		why = errNoEndpoint
	case target.hops > s.cfg.MaxHops:
		why = fmt.Errorf("%d redirects were followed already", s.cfg.MaxHops)
	case s.cfg.Allow != nil:
		why = s.cfg.Allow(target.gateway, target.addr)
	}
	if why == nil {
		return nil
	}
	return notSent(target, why)
}

func notSent(target attempt, why error) error {
	return fmt.Errorf("supervisor: not sent to %q at %q: %w", target.gateway, target.addr, cause(why))
}

// passOver avoids a target that was not dialled, lest we are sent there again.
func (s *step) passOver(target attempt) {
	if !s.avoid.has(target.gateway, s.now) {
		s.avoid.add(target.gateway, target.incarnation, s.now.Add(s.cfg.AvoidFor))
	}
}

// instead dials the Service because a target is no good, with its proof: it
// shows, beside the avoided gateway's name, that this is no stay out of nowhere.
func (s *step) instead(target attempt) attempt {
	a := s.service(true)
	a.proof = target.proof
	return a
}

// denied says why a home must not be dialled at the address that it gave, when
// a was accepted. What was dialled already is not in question.
func (s *step) denied(gateway ring.GatewayID, endpoint string, a attempt) error {
	if s.cfg.Allow == nil || endpoint == "" || endpoint == a.addr || endpoint == s.cfg.Service {
		return nil
	}
	if err := s.cfg.Allow(gateway, endpoint); err != nil {
		return fmt.Errorf("supervisor: no way back to %q at %q: %w", gateway, endpoint, cause(err))
	}
	return nil
}

func (s *step) closeStream() {
	if s.stream.generation != 0 {
		s.do(Close{s.stream.generation})
		s.stream = stream{}
	}
}

func (s *step) service(stay bool) attempt {
	return attempt{to: toService, addr: s.cfg.Service, stay: stay}
}

func (s *step) homeAttempt() attempt {
	return attempt{to: toHome, addr: s.home.Endpoint, stay: true, proof: s.homeProof}
}

// movePause is how long to wait before a move without a target.
func (s *step) movePause() time.Duration {
	return max(pause.Scale(s.cfg.MoveDelay, pause.Draw(s.cfg.Jitter)), s.flapPause(false))
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

// pause plans a for after the pause that one more failure costs.
func (s *step) pause(a attempt) {
	s.failures++
	s.plan(s.cfg.backoff().After(s.failures, s.cfg.Jitter), a)
}

// dialOrPause dials a at once, unless this placement has had its dials: then
// it dials later, after a pause.
func (s *step) dialOrPause(a, later attempt) {
	if s.dials >= s.cfg.MaxHops+2 {
		s.pause(later)
		return
	}
	s.dial(a)
}

// plan dials a after a pause. Not after one means now, as the first dial of a placement.
func (s *step) plan(after time.Duration, a attempt) {
	if after <= 0 {
		s.dials = 0
		s.dial(a)
		return
	}
	a.generation = 0
	a.at = s.now.Add(after)
	s.next = a
}

func (s *step) dial(a attempt) {
	if s.leaving {
		s.leave()
	}
	s.dials++
	s.generation++
	timeout := s.cfg.DialTimeout
	if a.to == toHome {
		timeout = min(timeout, s.homeUntil.Sub(s.now))
	}
	a.generation = s.generation
	a.at = s.now.Add(timeout)
	s.next = a
	s.do(Dial{
		Addr: a.addr,
		Hello: redirect.Hello{
			Member:      s.cfg.Member,
			Generation:  a.generation,
			Stay:        a.stay,
			Hops:        a.hops,
			Cap:         a.cap,
			Avoid:       s.avoid.gateways(s.now),
			Full:        slices.Clone(a.full),
			CanRedirect: true,
			Home:        s.home.Gateway,
			Proof:       slices.Clone(a.proof),
		},
		Timeout: timeout,
		Passed:  a.passed,
	})
}
