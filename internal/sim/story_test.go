// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/evenring/evenring/handoff"
	"github.com/evenring/evenring/handoff/settle"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/forward"
	"github.com/evenring/evenring/redirect/supervisor"
	"github.com/evenring/evenring/ring"
)

// run is one random run: a fleet, its story, and a watch on both.
type run struct {
	*World
	watch *Watch
	seed  uint64
	mix   mix
	begun int // members
	names int // gateways
	busy  int // acts that have not come to their end
	over  bool
	calls []*Call

	attached, agreed time.Duration // how long those took, after the last fault
}

// The lengths of a run's parts.
const (
	attachBound = 90 * time.Second // by then everybody is attached again: two pauses, and what dials take
	agreeBound  = 60 * time.Second // by then every view agrees: a hold, a time-to-live, a heartbeat and a snapshot
	restTime    = 40 * time.Second // in which nothing may happen
	actBound    = 6 * time.Minute  // by then drains and settles are over
)

func newRun(seed uint64, m mix, spoil Spoil) *run {
	r := &run{seed: seed, mix: m}
	cfg := Config{Seed: seed, NoAsks: m.has(noAsks), Gateway: func(c *redirect.Config) { c.Roster.Ring.Slots = 53 }}
	r.World = New(cfg)
	r.Conflict = func(g *Gateway) { r.drain(source(seed, elder), g, func() {}) }
	r.Glance = 250 * time.Millisecond
	r.Spoil = spoil
	r.watch = NewWatch(r.World)
	r.Discovery, r.Obituaries = true, m.has(discovery)
	return r
}

// play tells the whole story and returns the first fault.
func play(seed uint64, m mix, spoil Spoil, trace func(time.Duration, string, string)) (*Fault, *run) {
	r := newRun(seed, m, spoil)
	r.Trace = trace
	for _, part := range []func(){r.begin, r.story, r.calm, r.rest, r.crowd} {
		if part(); r.watch.Fault != nil {
			break
		}
	}
	return r.watch.Fault, r
}

func (r *run) blame(i Invariant, who []string, format string, args ...any) {
	r.watch.blame(i, who, format, args...)
}

// pass lets time pass, until there is a fault.
func (r *run) pass(d time.Duration) {
	r.Until(d, func() bool { return r.watch.Fault != nil })
}

// waits until the condition holds, looking now and then.
func (r *run) waits(bound time.Duration, holds func() bool) bool {
	for end := r.Elapsed() + bound; r.Elapsed() < end && r.watch.Fault == nil; r.pass(500 * time.Millisecond) {
		if holds() {
			return true
		}
	}
	return holds()
}

func (r *run) live() (all []*Gateway) {
	for _, id := range r.ids {
		if g := r.Gateways[id]; g.Alive {
			all = append(all, g)
		}
	}
	return all
}

func (r *run) running() (all []*Supervisor) {
	for _, m := range sorted(r.Supervisors) {
		if s := r.Supervisors[m]; s.running {
			all = append(all, s)
		}
	}
	return all
}

func (r *run) newGateway() *Gateway {
	id := ring.GatewayID(fmt.Sprintf("g%d", r.names))
	r.names++
	r.setClock(string(id))
	return r.StartGateway(id)
}

// again starts a gateway anew, unless it has been.
func (r *run) again(g *Gateway) {
	if r.Gateways[g.ID] == g && !g.Alive {
		r.StartGateway(g.ID)
	}
}

func (r *run) newSupervisor() *Supervisor {
	m := ring.MemberID(fmt.Sprintf("s%02d", r.begun))
	r.begun++
	r.setClock(string(m))
	s := r.StartSupervisor(m)
	if r.mix.has(sessions) {
		for i := range source(r.seed+uint64(r.begun), sessions).IntN(3) {
			s.StartSession(redirect.SessionID(fmt.Sprint("c", i)))
		}
	}
	return s
}

// setClock gives a machine its clock, the same whenever it starts.
func (r *run) setClock(name string) {
	if _, set := r.Clocks[name]; set || !r.mix.has(clocks) {
		return
	}
	c := source(r.seed+uint64(len(r.Clocks)), clocks)
	r.Clocks[name] = Clock{Ahead: between(c, -time.Hour, time.Hour), Drift: c.Int64N(2001) - 1000}
}

// begin starts the fleet.
func (r *run) begin() {
	n := rand.New(rand.NewPCG(r.seed, 1))
	gateways, supervisors := 2+n.IntN(4), 5+n.IntN(36)
	r.weather()
	for range gateways {
		r.newGateway()
	}
	r.pass(time.Second)
	for range supervisors {
		r.After(between(n, 0, 5*time.Second), func() { r.newSupervisor() })
	}
	r.pass(8 * time.Second)
}

// weather is what is wrong all the time.
func (r *run) weather() {
	l := &r.Links
	if r.mix.has(loss) {
		l.Loss = 0.02 + 0.4*source(r.seed, loss).Float64()
	}
	if r.mix.has(twice) {
		l.Twice = 0.3 * source(r.seed, twice).Float64()
	}
	if r.mix.has(slow) {
		c := source(r.seed, slow)
		l.Slow, l.SlowBy = 0.3*c.Float64(), between(c, 50*time.Millisecond, 2*time.Second)
	}
	if r.mix.has(uneven) {
		l.Each = eachLink(source(r.seed, uneven).Uint64())
	}
	if r.mix.has(late) {
		l.Notice = between(source(r.seed, late), time.Second, 15*time.Second)
	}
	if r.mix.has(lag) {
		l.Lag = between(source(r.seed, lag), time.Second, 8*time.Second)
	}
}

// eachLink draws for every direction of every link what is wrong with it: nothing for a third of them.
func eachLink(salt uint64) func(from, to string) Link {
	drawn := make(map[[2]string]Link)
	return func(from, to string) Link {
		name := [2]string{from, to}
		l, ok := drawn[name]
		if !ok {
			c := rand.New(rand.NewPCG(salt, xxhash.Sum64String(from+"\x00"+to)))
			if c.IntN(3) > 0 {
				l = Link{Loss: 0.5 * c.Float64(), Twice: 0.3 * c.Float64(), Slow: 0.5 * c.Float64(), SlowBy: between(c, 0, time.Second), Delay: between(c, 0, 400*time.Millisecond)}
			}
			drawn[name] = l
		}
		return l
	}
}

// story schedules every act and lets it happen.
func (r *run) story() {
	length := between(rand.New(rand.NewPCG(r.seed, 2)), 10*time.Second, 60*time.Second)
	for k := range kinds {
		if act := acts[k]; act.do != nil && r.mix.has(k) {
			c := source(r.seed, k)
			for range 1 + c.IntN(act.most) {
				r.After(between(c, 0, length), func() {
					if !r.over {
						act.do(r, c)
					}
				})
			}
		}
	}
	r.pass(length)
}

// acts are the kinds that happen at some moments, and how often at most.
var acts = [kinds]struct {
	most int
	do   func(r *run, c *rand.Rand)
}{
	cuts: {3, func(r *run, c *rand.Rand) {
		all := r.live()
		side := make(map[*Gateway]bool)
		for _, g := range all {
			side[g] = c.IntN(2) == 0
		}
		for i, a := range all {
			for _, b := range all[:i] {
				if side[a] != side[b] {
					r.cutFor(string(a.ID), string(b.ID), between(c, time.Second, 45*time.Second))
				}
			}
		}
	}},
	outage: {2, func(r *run, c *rand.Rand) {
		all := r.live()
		for _, g := range all {
			switch c.IntN(4) {
			case 0:
				g.feed(roster.DiscoveryFailed{})
			case 1:
				g.feed(roster.Discovered{})
			case 2:
				g.feed(roster.Discovered{Gateways: []ring.GatewayID{pick(c, all).ID}, Partial: true})
			}
		}
		r.After(between(c, time.Second, 30*time.Second), r.Discover)
	}},
	severed: {6, func(r *run, c *rand.Rand) {
		s, g := pick(c, r.running()), pick(c, r.live())
		d := between(c, time.Second, 30*time.Second)
		if s != nil && g != nil {
			r.cutFor(string(s.Member), string(g.ID), d)
		}
	}},
	crash: {3, func(r *run, c *rand.Rand) {
		g, silent, back, d := pick(c, r.live()), c.IntN(2) == 0, c.IntN(4) > 0, between(c, 500*time.Millisecond, 40*time.Second)
		if g == nil {
			return
		}
		if silent {
			g.Crash()
		} else {
			g.Kill()
		}
		if back {
			r.later(d, func() { r.again(g) })
		}
	}},
	stop: {2, func(r *run, c *rand.Rand) {
		g, d := pick(c, r.live()), between(c, 0, 20*time.Second)
		if g != nil {
			g.Stop()
			r.later(d, func() { r.again(g) })
		}
	}},
	pause: {3, func(r *run, c *rand.Rand) {
		g, d := pick(c, r.live()), between(c, 100*time.Millisecond, 40*time.Second)
		if g != nil {
			r.trace(string(g.ID), "stands still for %v", d)
			g.Pause()
			r.After(d, g.Resume)
		}
	}},
	elder: {1, func(r *run, c *rand.Rand) {
		g, wait, more := pick(c, r.live()), between(c, time.Second, 40*time.Second), between(c, 0, 20*time.Second)
		if g == nil {
			return
		}
		r.trace(string(g.ID), "stands still for %v", wait+more)
		g.Pause()
		r.later(wait, func() {
			if r.Gateways[g.ID] == g {
				r.StartGateway(g.ID)
			}
		})
		r.later(wait+more, g.Resume)
	}},
	freeze: {4, func(r *run, c *rand.Rand) {
		s, d := pick(c, r.running()), between(c, 100*time.Millisecond, 40*time.Second)
		if s != nil {
			r.trace(string(s.Member), "stands still for %v", d)
			s.Pause()
			r.After(d, s.Resume)
		}
	}},
	breaks: {4, func(r *run, c *rand.Rand) {
		share := c.Float64()
		for _, g := range r.live() {
			for _, key := range sorted(g.streams) {
				if c.Float64() < share*share {
					g.streams[key].Break()
				}
			}
		}
	}},
	supCrash: {8, func(r *run, c *rand.Rand) {
		s, d := pick(c, r.running()), between(c, 0, 40*time.Second)
		if s != nil {
			s.Kill()
			r.later(d, func() { r.returns(s) })
		}
	}},
	supStop: {8, func(r *run, c *rand.Rand) {
		s, back, d := pick(c, r.running()), c.IntN(2) == 0, between(c, 0, 20*time.Second)
		if s == nil || s.standing {
			return
		}
		s.Stop()
		if back {
			r.later(d, func() { r.returns(s) })
		}
	}},
	burst: {2, func(r *run, c *rand.Rand) {
		for range 1 + c.IntN(15) {
			r.newSupervisor()
		}
	}},
	scaleUp: {2, func(r *run, _ *rand.Rand) { r.newGateway() }},
	drains: {2, func(r *run, c *rand.Rand) {
		r.drain(c, pick(c, r.live()), func() {})
	}},
	abort: {1, func(r *run, c *rand.Rand) {
		g, d := pick(c, r.live()), between(c, 0, 12*time.Second)
		if g == nil || g.drain != nil {
			return
		}
		r.drain(c, g, func() {})
		m := g.drain
		r.After(d, func() {
			if m != nil && g.drain == m && r.Gateways[g.ID] == g { // one that was replaced has to go
				g.Abort()
			}
		})
	}},
	rolling: {1, func(r *run, c *rand.Rand) { r.roll(c, r.live()) }},
	settles: {3, func(r *run, c *rand.Rand) {
		g := pick(c, r.live())
		cfg := settle.Config{Stable: between(c, time.Second, 10*time.Second), Patience: 30 * time.Second}
		if g == nil || g.standing {
			return
		}
		s, err := g.Settle(cfg)
		if err != nil {
			return // it drains, settles, or has nobody to ask
		}
		r.busy++
		r.when(func() bool { return s.Report != nil || !g.Alive }, func() { r.busy-- })
	}},
	calls: {20, func(r *run, c *rand.Rand) {
		g, s, idempotent := pick(c, r.live()), pick(c, r.running()), c.IntN(2) == 0
		if g != nil && s != nil {
			r.call(g, s.Member, idempotent)
		}
	}},
}

// later lets a part of the story happen that the rest waits for.
func (r *run) later(d time.Duration, f func()) {
	r.busy++
	r.After(d, func() { r.busy--; f() })
}

// returns starts a supervisor's process anew, unless it has been.
func (r *run) returns(s *Supervisor) {
	if !s.running {
		r.StartSupervisor(s.Member)
	}
}

func (r *run) cutFor(a, b string, d time.Duration) {
	r.Cut(a, b)
	r.After(d, func() {
		if !r.over {
			r.Mend(a, b)
		}
	})
}

// when calls f once the condition holds.
func (r *run) when(holds func() bool, f func()) {
	r.After(time.Second, func() {
		if holds() {
			f()
		} else {
			r.when(holds, f)
		}
	})
}

// drain drains a gateway, which is killed when its time is up.
func (r *run) drain(c *rand.Rand, g *Gateway, then func()) {
	cfg := handoff.Config{
		Propagation: between(c, 100*time.Millisecond, 3*time.Second), Window: between(c, 100*time.Millisecond, 8*time.Second),
		Confirm: between(c, time.Second, 10*time.Second), Jitter: c.Float64,
	}
	if g == nil || g.standing || g.Drain(cfg) != nil {
		then()
		return
	}
	m := g.drain
	r.busy++
	r.After(handoff.DefaultKillAfter, func() {
		if g.Alive && g.drain == m && m != nil {
			g.Kill()
		}
	})
	r.when(func() bool { return !g.Alive || g.drain == nil }, func() { r.busy--; then() })
}

// roll replaces the gateways one after the other.
func (r *run) roll(c *rand.Rand, all []*Gateway) {
	if len(all) == 0 {
		return
	}
	g, rest := all[0], all[1:]
	wait, ready := between(c, 0, 5*time.Second), between(c, time.Second, 3*time.Second)
	if !g.Alive || g.drain != nil {
		r.roll(c, rest)
		return
	}
	r.busy++
	drain := func() {
		r.drain(c, g, func() {
			r.After(wait, func() {
				r.busy--
				if !r.mix.has(surge) {
					r.again(g)
				}
				r.roll(c, rest)
			})
		})
	}
	if r.mix.has(surge) {
		r.newGateway()
		r.After(ready, drain)
	} else {
		drain()
	}
}

func (r *run) call(g *Gateway, m ring.MemberID, idempotent bool) *Call {
	call := g.Call(m, idempotent, nil)
	r.calls = append(r.calls, call)
	if !idempotent {
		r.After(20*time.Second, func() {
			if *call.Runs > 1 {
				r.blame(RunsOnce, both(g, m), "a request for %s at %s was executed %d times", m, g.ID, *call.Runs)
			}
		})
	}
	return call
}

// calm ends everything that is wrong, and waits for the acts to end.
func (r *run) calm() {
	r.over = true
	r.trace("world", "all faults stop")
	r.Links = Links{}
	for _, p := range sortedPairs(r.cuts) {
		for r.cut(p.a, p.b) {
			r.Mend(p.a, p.b)
		}
	}
	for _, id := range r.ids {
		g := r.Gateways[id]
		if !g.Alive {
			g.InService = false
		} else {
			g.Resume()
			g.InService = g.drain == nil
		}
	}
	for _, g := range r.elders {
		g.Resume()
		if g.Alive && !r.Gateways[g.ID].Alive { // lest it never hears that it was replaced
			r.StartGateway(g.ID)
		}
	}
	for _, s := range r.running() {
		s.Resume()
	}
	if len(r.live()) == 0 {
		r.newGateway()
	}
	if !r.waits(actBound, func() bool { return r.busy == 0 }) && r.watch.Fault == nil {
		r.blame(FixedPoint, nil, "%d acts do not come to an end", r.busy)
	}
	if len(r.live()) == 0 {
		r.newGateway()
	}
	for _, m := range sorted(r.Supervisors) {
		if s := r.Supervisors[m]; !s.running { // it is gone for good, and its sessions with it
			for _, one := range s.Sessions {
				one.Stop()
			}
		}
	}
	r.Discover() // who is silent may be dead or cut off: only discovery knows
}

// rest waits until everybody is attached and every view agrees, and sees that nothing happens any more.
func (r *run) rest() {
	var what string
	var who []string
	begin := r.Elapsed()
	if !r.waits(attachBound, func() bool { what, who = r.unsettled(); return what == "" }) && r.watch.Fault == nil {
		r.blame(NobodyLost, who, "%v after the last fault %s", attachBound, what)
		return
	}
	r.attached = r.Elapsed() - begin
	if !r.waits(agreeBound, func() bool { what, who = r.disagreement(); return what == "" }) && r.watch.Fault == nil {
		r.blame(OnePlace, who, "%v after everybody is attached %s", agreeBound, what)
		return
	}
	r.agreed = r.Elapsed() - begin - r.attached
	before := r.busyness()
	r.pass(restTime)
	for i, after := range r.busyness() {
		if after != before[i] {
			r.blame(FixedPoint, names(after.who), "with nothing left to do, %+v becomes %+v", before[i], after)
		}
	}
	for _, c := range r.calls {
		if !c.Over {
			r.blame(RunsOnce, both(c.g, c.Member), "a request for %s at %s does not end", c.Member, c.g.ID)
		}
	}
	if what, who = r.unsettled(); what != "" {
		r.blame(OnePlace, who, "at rest %s", what)
	}
	if what, who = r.disagreement(); what != "" {
		r.blame(OnePlace, who, "at rest %s", what)
	}
	r.reach()
}

// doings is what must not grow at rest.
type doings struct {
	who          ring.MemberID // empty: the gateways
	dials, moves int
	told         int
}

func (r *run) busyness() []doings {
	all := []doings{{told: r.watch.told}}
	for _, s := range r.running() {
		all = append(all, doings{who: s.Member, dials: s.Dials, moves: s.Moves})
	}
	return all
}

// reach sees that any supervisor can be reached through any gateway.
func (r *run) reach() {
	all := r.running()
	c := source(r.seed, calls)
	for _, g := range r.live() {
		if s := pick(c, all); s != nil {
			r.expect(g, s.Member, forward.Done)
		}
		r.expect(g, "nobody", forward.Nobody)
	}
	r.pass(10 * time.Second)
}

func (r *run) expect(g *Gateway, m ring.MemberID, want forward.Reason) {
	call := r.call(g, m, false)
	r.After(8*time.Second, func() {
		if call.Reason != want {
			r.blame(RunsOnce, both(g, m), "at rest a request for %s at %s ends with %s, not %s", m, g.ID, call.Reason, want)
		}
	})
}

// crowd lets newcomers arrive at once in a fleet at rest.
func (r *run) crowd() {
	c := rand.New(rand.NewPCG(r.seed, 3))
	before := r.Served()
	for range 2 + c.IntN(12) {
		r.newSupervisor()
	}
	r.pass(15 * time.Second)
	var what string
	var who []string
	if !r.waits(time.Minute, func() bool { what, who = r.unsettled(); return what == "" }) && r.watch.Fault == nil {
		r.blame(NobodyLost, who, "newcomers to a fleet at rest: %s", what)
	}
	after, total := r.Served(), 0
	for _, n := range after {
		total += n
	}
	// One above the even share is possible: how many wait elsewhere while a newcomer is placed is a guess.
	limit := (total+len(after)-1)/len(after) + 1
	for _, g := range r.live() {
		// Without asking the room is a guess.
		if n := after[g.ID]; n > limit && n > before[g.ID] && !r.mix.has(noAsks) {
			r.blame(WithinCap, names(g.ID), "newcomers to a fleet at rest lift %s from %d to %d; %v", g.ID, before[g.ID], n, after)
		}
	}
	for _, s := range r.running() {
		if s.Machine.State() != supervisor.Attached {
			r.blame(NobodyLost, names(s.Member), "%s is %s", s.Member, s.Machine.State())
		}
	}
}

func sortedPairs(m map[pair]int) []pair {
	return slices.SortedFunc(maps.Keys(m), func(x, y pair) int { return cmp.Or(cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b)) })
}
