// SPDX-License-Identifier: Apache-2.0

package redirect_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

var start = time.Unix(1_000_000_000, 0)

// silent stands for a peer link whose questions the test carries.
type silent struct{}

func (silent) Ask(context.Context, placement.Gateway, placement.Question) (placement.Answer, error) {
	panic("the test carries questions")
}

// pair is gateway A, asking or not, and what it knows of B, C, ...
type pair struct {
	*redirect.Admission
	now time.Time
	gen placement.Generation
}

// newPair makes A, which knows gateways B, C, ... with these loads.
func newPair(t *testing.T, asks bool, loads ...int) *pair {
	t.Helper()
	cfg := redirect.Config{Gateway: "A", Incarnation: 10, Endpoint: "peer-A"}
	if asks {
		cfg.Peers = silent{}
	}
	a, err := redirect.NewAdmission(start, cfg)
	require.NoError(t, err)
	p := &pair{Admission: a, now: start, gen: 100}
	a.Serve(start)
	for i, n := range loads {
		p.peer(ring.GatewayID(rune('B'+i)), placement.Ready, 1, n)
	}
	return p
}

// peer lets A hear everything that gateway id has to say of itself: n supervisors, named after it.
func (p *pair) peer(id ring.GatewayID, state placement.State, seq uint64, n int) {
	entries := make([]roster.Entry, n)
	for i := range entries {
		entries[i] = roster.Entry{Member: ring.MemberID(fmt.Sprintf("%s-%d", id, i)), Generation: 1}
	}
	p.hear(id, state, seq, entries...)
}

func (p *pair) hear(id ring.GatewayID, state placement.State, seq uint64, entries ...roster.Entry) {
	attached := 0
	for _, e := range entries {
		if !e.Held {
			attached++
		}
	}
	p.Step(p.now, roster.Received{From: id, Message: roster.Snapshot{
		Origin: roster.Origin{Gateway: id, Endpoint: "peer-" + string(id), State: state,
			Counts: placement.Counts{Incarnation: 20, Sequence: seq, Attached: attached, Held: len(entries) - attached}},
		Page: 0, Pages: 1, Entries: entries,
	}})
}

// hello brings a supervisor with the next generation.
func (p *pair) hello(m ring.MemberID, change ...func(*redirect.Hello)) *redirect.Admitting {
	p.gen++
	h := redirect.Hello{Member: m, Generation: p.gen, CanRedirect: true}
	for _, f := range change {
		f(&h)
	}
	return p.Hello(p.now, h)
}

func stay(h *redirect.Hello) { h.Stay = true }

func (p *pair) stats() redirect.Stats { return p.Stats(p.now) }

// told returns the notices since the last call, by stream.
func (p *pair) told() map[redirect.Key]redirect.Notice {
	all := map[redirect.Key]redirect.Notice{}
	for _, t := range p.Take().Tells {
		all[t.Key] = t.Notice
	}
	return all
}

func TestPrecedence(t *testing.T) {
	for _, c := range []struct {
		name    string
		drain   bool
		loads   []int
		asks    bool
		hello   func(*redirect.Hello)
		outcome redirect.Outcome
		reason  redirect.Reason
		gateway ring.GatewayID
	}{
		{name: "drain comes before stay", drain: true, loads: []int{0}, hello: stay, outcome: redirect.Redirect, reason: redirect.ReasonDraining, gateway: "B"},
		{name: "draining, and nobody to take it", drain: true, outcome: redirect.Refuse, reason: redirect.ReasonDraining, gateway: "A"},
		{name: "draining, and the client cannot follow", drain: true, loads: []int{0}, hello: func(h *redirect.Hello) { h.CanRedirect = false }, outcome: redirect.Refuse, reason: redirect.ReasonDraining, gateway: "A"},
		{name: "an old client is served", loads: []int{0}, hello: func(h *redirect.Hello) { h.CanRedirect = false }, outcome: redirect.Accept, reason: redirect.ReasonNoRedirect, gateway: "A"},
		{name: "S29: stay is granted whatever the ring says", loads: []int{0, 0, 0}, asks: true, hello: stay, outcome: redirect.Accept, reason: redirect.ReasonStay, gateway: "A"},
		{name: "alone", outcome: redirect.Accept, reason: redirect.ReasonPlaced, gateway: "A"},
		{name: "everybody else is full", loads: []int{3, 3}, outcome: redirect.Accept, reason: redirect.ReasonPlaced, gateway: "A"},
		{name: "all others are to be avoided", loads: []int{0}, hello: func(h *redirect.Hello) { h.Avoid = []ring.GatewayID{"B"} }, outcome: redirect.Accept, reason: redirect.ReasonPlaced, gateway: "A"},
		{name: "S9: nobody at all, itself to be avoided", hello: func(h *redirect.Hello) { h.Avoid = []ring.GatewayID{"A"} }, outcome: redirect.Accept, reason: redirect.ReasonLocal, gateway: "A"},
		{name: "a bad hello", hello: func(h *redirect.Hello) { h.Generation = 0 }, outcome: redirect.Refuse, reason: redirect.ReasonBadHello, gateway: "A"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPair(t, c.asks, c.loads...)
			if c.drain {
				_, err := p.StartDrain(p.now)
				require.NoError(t, err)
			}
			var change []func(*redirect.Hello)
			if c.hello != nil {
				change = append(change, c.hello)
			}
			a := p.hello("m", change...)
			require.True(t, a.Done)
			require.Equal(t, c.outcome, a.Verdict.Outcome, "%+v", a.Verdict)
			require.Equal(t, c.reason, a.Verdict.Reason, "%+v", a.Verdict)
			require.Equal(t, c.gateway, a.Verdict.Gateway)
			require.Equal(t, c.outcome == redirect.Accept, a.Key != 0)
			require.Equal(t, c.outcome == redirect.Refuse, a.Verdict.RetryAfter > 0)
			require.EqualValues(t, 1, p.stats().Verdicts[c.outcome][c.reason])
		})
	}
}

func TestIdentity(t *testing.T) {
	t.Run("S39: a newer generation takes over, and the old stream's end changes nothing", func(t *testing.T) {
		p := newPair(t, false)
		old := p.hello("s", stay)
		now := p.hello("s", stay)
		require.Equal(t, redirect.Accept, now.Verdict.Outcome)
		require.Equal(t, redirect.Notice{Kind: redirect.NoticeEnd, Reason: redirect.ReasonSuperseded, Gateway: "A", Incarnation: 10}, p.told()[old.Key])
		p.Leave(p.now, old.Key, true)
		require.Equal(t, 1, p.stats().Served)
		p.Leave(p.now, now.Key, true)
		p.Leave(p.now, now.Key, true)
		require.Equal(t, 0, p.stats().Served)
		require.Equal(t, 0, p.stats().Live)
	})
	t.Run("an older generation is refused, and told which is newer", func(t *testing.T) {
		p := newPair(t, false)
		p.hello("s", stay)
		late := p.hello("s", stay, func(h *redirect.Hello) { h.Generation = 5 })
		require.Equal(t, redirect.Refuse, late.Verdict.Outcome)
		require.Equal(t, redirect.ReasonStaleGeneration, late.Verdict.Reason)
		require.Equal(t, p.gen-1, late.Verdict.Generation)
		require.Equal(t, 1, p.stats().Served)
	})
	t.Run("and also if the newer one is elsewhere", func(t *testing.T) {
		p := newPair(t, false)
		p.hear("B", placement.Ready, 2, roster.Entry{Member: "s", Generation: 1000})
		require.Equal(t, redirect.ReasonStaleGeneration, p.hello("s").Verdict.Reason)
	})
	t.Run("S41: the ghost of a crashed process does not keep its successor out", func(t *testing.T) {
		p := newPair(t, false) // the newcomer dials A while B still lists the ghost
		p.hear("B", placement.Ready, 2, roster.Entry{Member: "s", Generation: 5})
		s := p.hello("s", stay)
		require.Equal(t, redirect.Accept, s.Verdict.Outcome)
		require.Equal(t, 1, p.stats().Live, "counted once")
		p.hear("B", placement.Ready, 3) // B's late leave
		home, _, ok := p.Roster().Home("s")
		require.True(t, ok)
		require.Equal(t, ring.GatewayID("A"), home)
		require.Equal(t, 1, p.stats().Served)
	})
	t.Run("S41, seen from the ghost's gateway: it is counted no more, and told to end after a while", func(t *testing.T) {
		p := newPair(t, false)
		ghost := p.hello("s", stay)
		p.Take()
		p.hear("B", placement.Ready, 2, roster.Entry{Member: "s", Generation: p.gen + 1})
		require.Equal(t, 0, p.stats().Served)
		require.Equal(t, 1, p.stats().Live)
		require.Empty(t, p.told(), "the supervisor closes it itself, once it has its accept")
		p.now = p.now.Add(redirect.DefaultLinger)
		p.Step(p.now, roster.Tick{})
		require.Equal(t, redirect.ReasonMoved, p.told()[ghost.Key].Reason)
		p.Leave(p.now, ghost.Key, false)
		require.Equal(t, 0, p.stats().Held)
	})
	t.Run("two processes under one ID are named, not served in turns for ever", func(t *testing.T) {
		p := newPair(t, false)
		refused := 0
		for range 10 {
			p.now = p.now.Add(time.Second)
			v := p.hello("s", stay).Verdict
			if v.Outcome == redirect.Refuse {
				require.Equal(t, redirect.ReasonDuplicateMember, v.Reason)
				require.GreaterOrEqual(t, v.RetryAfter, redirect.DefaultHold)
				refused++
			}
		}
		require.Equal(t, 6, refused)
		require.Equal(t, 1, p.stats().Served)
		p.now = p.now.Add(redirect.DefaultHold)
		require.Equal(t, redirect.Accept, p.hello("s", stay).Verdict.Outcome, "after a while it may try again")
	})
	t.Run("credentials expire on every stream, one that lingers too", func(t *testing.T) {
		p := newPair(t, false)
		ghost := p.hello("s", stay)
		child := p.hello("s", func(h *redirect.Hello) { h.Session = "c" })
		p.hear("B", placement.Ready, 2, roster.Entry{Member: "s", Generation: p.gen + 1})
		p.told()
		p.EndAll(redirect.ReasonExpired)
		told := p.told()
		require.Equal(t, redirect.ReasonExpired, told[ghost.Key].Reason)
		require.Equal(t, redirect.ReasonExpired, told[child.Key].Reason)
	})
	t.Run("expired credentials are no rivalry", func(t *testing.T) {
		p := newPair(t, false)
		for range 10 {
			require.Equal(t, redirect.Accept, p.hello("s", stay).Verdict.Outcome)
			p.EndAll(redirect.ReasonExpired)
		}
	})
}

func TestHold(t *testing.T) {
	p := newPair(t, false, 1)
	s := p.hello("s", stay)
	p.Leave(p.now, s.Key, false)
	require.Equal(t, 1, p.stats().Held)
	require.Equal(t, 2, p.stats().Live, "a sudden fall does not shrink the cap at once")

	s = p.hello("s")
	require.Equal(t, redirect.Accept, s.Verdict.Outcome, "it belongs where it was")
	require.Equal(t, 0, p.stats().Held, "coming back clears the hold")
	p.Leave(p.now, s.Key, false)
	at, ok := p.Deadline()
	require.True(t, ok)
	require.False(t, at.After(p.now.Add(redirect.DefaultHold)))
	p.now = p.now.Add(redirect.DefaultHold)
	require.Equal(t, 0, p.stats().Held)
	require.Equal(t, 1, p.stats().Live)
}

func TestAsking(t *testing.T) {
	yes := func(g ring.GatewayID, reserved int) placement.Answer {
		return placement.Answer{Gateway: g, Yes: true, State: placement.Ready, Reports: []placement.Report{
			{Gateway: g, Counts: placement.Counts{Incarnation: 20, Sequence: 9, Reserved: reserved}}}}
	}
	t.Run("it asks, and sends who got a yes", func(t *testing.T) {
		p := newPair(t, true, 0)
		p.hello("filler", stay)
		p.hello("filler2", stay)
		a := p.hello("s")
		require.NotNil(t, a.Ask)
		require.False(t, a.Done)
		require.Equal(t, ring.GatewayID("B"), a.Ask.To.ID)
		require.NotEmpty(t, a.Ask.Question.Reports)
		p.Answered(p.now, a, yes("B", 1))
		require.True(t, a.Done)
		require.Equal(t, redirect.Redirect, a.Verdict.Outcome)
		require.Equal(t, "peer-B", a.Verdict.Endpoint)
		require.Equal(t, 2, a.Verdict.Cap)
		require.Equal(t, 3, p.stats().Live)
	})
	t.Run("S1: nobody answers: served here above the cap, and counted with the reason", func(t *testing.T) {
		p := newPair(t, true, 0, 0)
		for i := range 6 {
			p.hello(ring.MemberID(fmt.Sprint("filler", i)), stay)
		}
		before := p.stats().OverCap
		a := p.hello("s")
		for a.Ask != nil {
			p.Unanswered(p.now, a, false)
		}
		require.Equal(t, redirect.Accept, a.Verdict.Outcome)
		require.Equal(t, ring.GatewayID("A"), a.Verdict.Gateway)
		require.EqualValues(t, 2, p.stats().AskFailures)
		require.Equal(t, 1, p.stats().Placeable, "they are suspect now")
		require.Equal(t, before[redirect.ReasonPlaced], p.stats().OverCap[redirect.ReasonPlaced], "alone, the cap is everybody")
	})
	t.Run("S1: enough have failed: served here above the cap, and counted with the reason", func(t *testing.T) {
		p := newPair(t, true, make([]int, placement.DefaultAsks+1)...)
		for i := range placement.DefaultAsks + 4 {
			p.hello(ring.MemberID(fmt.Sprint("filler", i)), stay)
		}
		a := p.hello("s")
		for a.Ask != nil {
			p.Unanswered(p.now, a, false)
		}
		require.Equal(t, redirect.ReasonUnreachable, a.Verdict.Reason)
		require.EqualValues(t, placement.DefaultAsks, p.stats().AskFailures)
		require.EqualValues(t, 1, p.stats().OverCap[redirect.ReasonUnreachable])
	})
	t.Run("late is not lost if something else was heard since", func(t *testing.T) {
		p := newPair(t, true, 0)
		p.hello("filler", stay)
		p.hello("filler2", stay)
		a := p.hello("s")
		p.now = p.now.Add(10 * time.Millisecond)
		p.Step(p.now, roster.Received{Message: roster.Heartbeat{Origin: roster.Origin{ // gossip does not say from whom it came
			Gateway: "B", Endpoint: "peer-B", State: placement.Ready, Counts: placement.Counts{Incarnation: 20, Sequence: 1}}}})
		p.Unanswered(p.now.Add(240*time.Millisecond), a, true)
		require.Equal(t, 2, p.stats().Placeable)
		require.NotNil(t, a.Ask)
		require.Equal(t, ring.GatewayID("B"), a.Ask.To.ID, "a question put twice keeps one place")
	})
	t.Run("a place is kept until it is taken", func(t *testing.T) {
		p := newPair(t, true, 0)
		q := placement.Question{From: "B", Member: "s", Generation: 7, Limit: 1}
		answer := p.Asked(p.now, q)
		require.True(t, answer.Yes)
		require.True(t, p.Asked(p.now, q).Yes, "the same question gets the same answer")
		require.Equal(t, 1, p.stats().Reserved)
		require.False(t, p.Asked(p.now, placement.Question{From: "B", Member: "other", Limit: 1}).Yes)
		require.True(t, p.Asked(p.now, placement.Question{From: "B", Member: "pressing", Limit: 1, Insist: true}).Yes)
		require.Equal(t, redirect.Accept, p.hello("s", stay).Verdict.Outcome)
		s := p.stats()
		require.Equal(t, 1, s.Served)
		require.Equal(t, 1, s.Reserved)
		require.EqualValues(t, 1, s.RedirectsArrived)
	})
	t.Run("S13: until it expires", func(t *testing.T) {
		p := newPair(t, true, 0)
		require.True(t, p.Asked(p.now, placement.Question{From: "B", Member: "s", Limit: 1}).Yes)
		p.now = p.now.Add(redirect.DefaultReserve)
		require.Equal(t, 0, p.stats().Reserved)
		require.EqualValues(t, 1, p.stats().RedirectsExpired)
	})
	t.Run("or until its supervisor shows up elsewhere", func(t *testing.T) {
		p := newPair(t, true, 0)
		require.True(t, p.Asked(p.now, placement.Question{From: "B", Member: "s", Generation: 7, Limit: 1}).Yes)
		p.hear("B", placement.Ready, 2, roster.Entry{Member: "s", Generation: 7})
		require.Equal(t, 1, p.stats().Reserved, "that is where it comes from")
		p.hear("B", placement.Ready, 3, roster.Entry{Member: "s", Generation: 8})
		require.Equal(t, 0, p.stats().Reserved)
		require.EqualValues(t, 1, p.stats().RedirectsElsewhere)
		require.True(t, p.Asked(p.now, placement.Question{From: "B", Member: "s", Generation: 7, Limit: 9}).Yes)
		require.Equal(t, 0, p.stats().Reserved, "and not kept again for a question that comes late")
	})
	t.Run("those on hold at home come back alike: the first ones stay, as many as are asked for", func(t *testing.T) {
		p := newPair(t, true, 0)
		for _, m := range []ring.MemberID{"s1", "s2", "s3"} {
			p.Leave(p.now, p.hello(m, stay).Key, false)
		}
		require.True(t, p.Asked(p.now, placement.Question{From: "B", Member: "s1", Limit: 1}).Yes)
		require.True(t, p.Asked(p.now, placement.Question{From: "B", Member: "s1", Limit: 1}).Yes, "the same question")
		require.False(t, p.Asked(p.now, placement.Question{From: "B", Member: "s2", Limit: 1}).Yes)
		require.True(t, p.Asked(p.now, placement.Question{From: "B", Member: "s2", Limit: 2}).Yes)
		require.Equal(t, 3, p.stats().Live)
		require.Equal(t, redirect.Accept, p.hello("s1", stay).Verdict.Outcome)
		require.False(t, p.Asked(p.now, placement.Question{From: "B", Member: "s3", Limit: 2}).Yes)
		p.now = p.now.Add(redirect.DefaultReserve)
		require.True(t, p.Asked(p.now, placement.Question{From: "B", Member: "s3", Limit: 2}).Yes, "s2 was expected, and did not come")
	})
	t.Run("who waits for its turn counts once", func(t *testing.T) {
		p := newPair(t, true, 30)
		for i := range 30 {
			p.hello(ring.MemberID(fmt.Sprint("B-", i)), func(h *redirect.Hello) { h.Avoid = []ring.GatewayID{"A"} })
		}
		require.Equal(t, 30, p.stats().Live)
		p.hello("new", func(h *redirect.Hello) { h.Avoid = []ring.GatewayID{"A"} })
		require.Equal(t, 31, p.stats().Live)
	})
	t.Run("S45: draining keeps no place, and says so", func(t *testing.T) {
		p := newPair(t, true, 0)
		_, err := p.StartDrain(p.now)
		require.NoError(t, err)
		answer := p.Asked(p.now, placement.Question{From: "B", Member: "s", Limit: 10, Insist: true})
		require.False(t, answer.Yes)
		require.Equal(t, placement.Draining, answer.State)
	})
	t.Run("S38: a supervisor on its way counts once", func(t *testing.T) {
		p := newPair(t, true)
		p.hear("B", placement.Draining, 2, roster.Entry{Member: "s", Generation: 5})
		require.True(t, p.Asked(p.now, placement.Question{From: "B", Member: "s", Generation: 5, Limit: 1}).Yes)
		require.Equal(t, 1, p.stats().Live)
		p.hello("s", stay)
		require.Equal(t, 1, p.stats().Live)
		require.Equal(t, 1, p.stats().Served)
	})
	t.Run("one search at a time, the next when that is done or given up", func(t *testing.T) {
		p := newPair(t, true, 0)
		for i := range 3 {
			p.hello(ring.MemberID(fmt.Sprint("filler", i)), stay)
		}
		first, second, third := p.hello("s1"), p.hello("s2"), p.hello("s3")
		require.NotNil(t, first.Ask)
		require.Nil(t, second.Ask)
		require.False(t, second.Done)
		require.Empty(t, p.Take().Turns)
		p.Cancel(p.now, second)
		p.Cancel(p.now, first)
		require.Equal(t, []*redirect.Admitting{third}, p.Take().Turns)
		require.NotNil(t, third.Ask)
	})
	t.Run("the world goes on while a question is out", func(t *testing.T) {
		p := newPair(t, true, 0)
		p.hello("filler", stay)
		p.hello("filler2", stay)
		a := p.hello("s")
		require.NotNil(t, a.Ask)
		require.Equal(t, redirect.Accept, p.hello("s", stay).Verdict.Outcome, "a newer attempt")
		p.Answered(p.now, a, yes("B", 1))
		require.Equal(t, redirect.ReasonStaleGeneration, a.Verdict.Reason)
	})
}

func TestPassOnWithoutAsking(t *testing.T) {
	redirected := func(h *redirect.Hello) { h.Stay, h.Hops = true, 1 }
	for _, c := range []struct {
		name  string
		asks  bool
		hello []func(*redirect.Hello)
		want  redirect.Outcome
	}{
		{name: "full here, room at B", hello: []func(*redirect.Hello){redirected}, want: redirect.Redirect},
		{name: "with a peer link its place was kept", asks: true, hello: []func(*redirect.Hello){redirected}, want: redirect.Accept},
		{name: "not redirected here", hello: []func(*redirect.Hello){stay}, want: redirect.Accept},
		{name: "no hop left", hello: []func(*redirect.Hello){redirected, func(h *redirect.Hello) { h.Hops = 2 }}, want: redirect.Accept},
		{name: "the one who sent it knew a larger cap", hello: []func(*redirect.Hello){redirected, func(h *redirect.Hello) { h.Cap = 9 }}, want: redirect.Accept},
		{name: "B found itself full", hello: []func(*redirect.Hello){redirected, func(h *redirect.Hello) { h.Full = []ring.GatewayID{"B"} }}, want: redirect.Accept},
		{name: "B is to be avoided", hello: []func(*redirect.Hello){redirected, func(h *redirect.Hello) { h.Avoid = []ring.GatewayID{"B"} }}, want: redirect.Accept},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPair(t, c.asks, 0)
			for i := range 4 {
				p.hello(ring.MemberID(fmt.Sprint("filler", i)), stay)
			}
			v := p.hello("s", c.hello...).Verdict
			require.Equal(t, c.want, v.Outcome)
			if c.want == redirect.Redirect {
				require.Equal(t, redirect.ReasonPassedOn, v.Reason)
				require.Equal(t, ring.GatewayID("B"), v.Gateway)
				require.Equal(t, []ring.GatewayID{"A"}, v.Full)
			}
		})
	}
}

// Only to one that has room: C has, B has not, whoever comes first on the walk.
func TestPassOnGoesWhereThereIsRoom(t *testing.T) {
	for i := range 50 {
		p := newPair(t, false, 7, 2)
		for k := range 9 {
			p.hello(ring.MemberID(fmt.Sprint("filler", k)), stay)
		}
		v := p.hello(ring.MemberID(fmt.Sprint("s", i)), func(h *redirect.Hello) { h.Stay, h.Hops = true, 1 }).Verdict
		require.Equal(t, redirect.Redirect, v.Outcome)
		require.Equal(t, ring.GatewayID("C"), v.Gateway)
	}
}

func TestPromisesCountWithoutAsking(t *testing.T) {
	p := newPair(t, false, 0)
	to := map[ring.GatewayID]int{}
	for i := range 4 {
		to[p.hello(ring.MemberID(fmt.Sprint("s", i))).Verdict.Gateway]++
	}
	require.Equal(t, map[ring.GatewayID]int{"A": 2, "B": 2}, to)
	require.Equal(t, 4, p.stats().Live)
	p.now = p.now.Add(redirect.DefaultReserve)
	require.Equal(t, 2, p.stats().Live, "those who never came are forgotten")
}

func TestSessions(t *testing.T) {
	child := func(h *redirect.Hello) { h.Session = "c" }
	t.Run("served where the supervisor is", func(t *testing.T) {
		p := newPair(t, true, 1)
		p.hello("s", stay)
		require.Equal(t, redirect.ReasonSession, p.hello("s", child).Verdict.Reason)
		s := p.stats()
		require.Equal(t, 1, s.Served, "sessions do not count for the cap")
		require.Equal(t, []int{1, 1, 0}, []int{s.Sessions, s.MostSessions, s.MisplacedSessions})
	})
	t.Run("sent to where it is", func(t *testing.T) {
		p := newPair(t, true, 1)
		v := p.hello("B-0", child).Verdict
		require.Equal(t, redirect.Redirect, v.Outcome)
		require.Equal(t, "peer-B", v.Endpoint)
	})
	t.Run("S66: it comes before its supervisor is known: served, and misplaced until it is", func(t *testing.T) {
		p := newPair(t, true, 1)
		require.Equal(t, redirect.Accept, p.hello("s", child, stay).Verdict.Outcome)
		require.Equal(t, 1, p.stats().MisplacedSessions)
		require.Equal(t, 0, p.stats().MostSessions)
		p.hello("s", stay)
		require.Equal(t, 0, p.stats().MisplacedSessions)
		require.Equal(t, 1, p.stats().MostSessions)
	})
	t.Run("a newer stream of one session takes over, an older one is refused", func(t *testing.T) {
		p := newPair(t, false)
		p.hello("s", stay)
		old := p.hello("s", child)
		p.hello("s", child)
		require.Equal(t, redirect.ReasonSuperseded, p.told()[old.Key].Reason)
		require.Equal(t, 1, p.stats().MostSessions)
		require.Equal(t, redirect.Refuse, p.hello("s", child, func(h *redirect.Hello) { h.Generation = 3 }).Verdict.Outcome)
		p.Leave(p.now, old.Key, false)
		require.Equal(t, 1, p.stats().MostSessions)
	})
	t.Run("a gateway that drains keeps those whose supervisor it still has, and sends the others after theirs", func(t *testing.T) {
		p := newPair(t, true, 1)
		p.hello("s", stay)
		_, err := p.StartDrain(p.now)
		require.NoError(t, err)
		require.Equal(t, redirect.Accept, p.hello("s", child, stay).Verdict.Outcome)
		require.Equal(t, "peer-B", p.hello("B-0", child, stay).Verdict.Endpoint)
		require.Equal(t, redirect.Refuse, p.hello("nobody", child, stay).Verdict.Outcome)
	})
}

func TestDrain(t *testing.T) {
	p := newPair(t, false, 0)
	s1, s2 := p.hello("s1", stay), p.hello("s2", stay, func(h *redirect.Hello) { h.CanRedirect = false })
	all, err := p.StartDrain(p.now)
	require.NoError(t, err)
	require.Equal(t, []redirect.Supervisor{{Member: "s1", Generation: 101, Movable: true}, {Member: "s2", Generation: 102}}, all)
	_, err = p.StartDrain(p.now)
	require.ErrorIs(t, err, redirect.ErrDraining, "S51")
	p.Take()

	a, err := p.MoveAway(p.now, "s1")
	require.NoError(t, err)
	require.True(t, a.Done)
	require.NoError(t, a.Err)
	require.Equal(t, redirect.Notice{Kind: redirect.NoticeMove, Reason: redirect.ReasonDraining, Gateway: "B", Endpoint: "peer-B", Incarnation: 20, Cap: 2}, p.told()[s1.Key])

	p.Leave(p.now, s1.Key, true)
	require.Equal(t, []redirect.Departure{{Member: "s1", Clean: true}}, p.Take().Departures)
	p.hear("B", placement.Ready, 2, roster.Entry{Member: "s1", Generation: 200})
	require.Equal(t, []redirect.Departure{{Member: "s1", To: "B"}}, p.Take().Departures, "where it went is learnt later")

	_, err = p.MoveAway(p.now, "s1")
	require.ErrorIs(t, err, redirect.ErrNotHere)
	_, err = p.MoveAway(p.now, "s2")
	require.ErrorIs(t, err, redirect.ErrNotMovable)
	require.True(t, p.End("s2", redirect.ReasonStopped))
	require.Equal(t, redirect.ReasonStopped, p.told()[s2.Key].Reason)
	require.False(t, p.End("s1", redirect.ReasonStopped))

	p.StopDrain(p.now)
	require.Equal(t, redirect.Accept, p.hello("s3", stay).Verdict.Outcome, "S51: placeable again")

	alone := newPair(t, false)
	alone.hello("s1", stay)
	_, err = alone.StartDrain(alone.now)
	require.NoError(t, err)
	a, err = alone.MoveAway(alone.now, "s1")
	require.NoError(t, err)
	require.ErrorIs(t, a.Err, redirect.ErrNowhere, "S35")
}

// A supervisor whose stream broke during the drain and that shows up elsewhere leaves once and arrives once.
func TestDepartureIsToldOnce(t *testing.T) {
	p := newPair(t, false, 0)
	s := p.hello("s", stay)
	_, err := p.StartDrain(p.now)
	require.NoError(t, err)
	p.Leave(p.now, s.Key, false)
	p.hear("B", placement.Ready, 2, roster.Entry{Member: "s", Generation: 200})
	require.Equal(t, []redirect.Departure{{Member: "s"}, {Member: "s", To: "B"}}, p.Take().Departures)
}

// A hand-over whose supervisor has gone while it waited for its turn asks nobody.
func TestMoveAwayOfSomebodyWhoHasGone(t *testing.T) {
	p := newPair(t, true, 0)
	s1, s2 := p.hello("s1", stay), p.hello("s2", stay)
	first, err := p.MoveAway(p.now, "s1")
	require.NoError(t, err)
	second, err := p.MoveAway(p.now, "s2")
	require.NoError(t, err)
	require.False(t, second.Done)
	p.Leave(p.now, s2.Key, true)
	p.Leave(p.now, s1.Key, true)
	p.Unanswered(p.now, first, false)
	require.ErrorIs(t, first.Err, redirect.ErrNotHere)
	require.True(t, second.Done)
	require.ErrorIs(t, second.Err, redirect.ErrNotHere)
	require.Nil(t, second.Ask)
}

// S53: discovery fails -> nobody is sent anywhere, nothing is closed, the view is called stale.
func TestStaleViewMovesNobodyS53(t *testing.T) {
	for _, asks := range []bool{false, true} {
		p := newPair(t, asks, 0)
		for i := range 5 {
			p.hello(ring.MemberID(fmt.Sprint("filler", i)), stay)
		}
		p.Step(p.now, roster.DiscoveryFailed{Err: errors.New("no list")})
		require.True(t, p.stats().Stale)
		a := p.hello("s")
		require.Equal(t, redirect.Accept, a.Verdict.Outcome)
		require.Equal(t, redirect.ReasonLocal, a.Verdict.Reason)
		require.Empty(t, p.told())
		p.Step(p.now, roster.Discovered{Gateways: []ring.GatewayID{"A", "B"}})
		require.False(t, p.stats().Stale)
		require.NotEqual(t, redirect.Accept, p.hello("s2").Verdict.Outcome)
	}
}

func TestExplainTellsTheAge(t *testing.T) {
	p := newPair(t, false, 1)
	p.now = p.now.Add(8 * time.Second)
	require.Equal(t, 8*time.Second, p.Explain(p.now, "s").Decision.Age)
}

func TestConfigNamesEveryFault(t *testing.T) {
	err := redirect.Config{Asks: -1, MaxHops: -1, Hold: -1, Reserve: -1, AskTimeout: -1, Linger: -1, RetryAfter: -1}.Validate()
	for _, field := range []string{"Gateway", "Incarnation", "Asks", "MaxHops", "Hold", "Reserve", "AskTimeout", "Linger", "RetryAfter"} {
		require.ErrorContains(t, err, "Config."+field)
	}
	_, err = redirect.NewAdmission(start, redirect.Config{})
	require.Error(t, err)
	require.NoError(t, redirect.Config{Gateway: "A", Incarnation: 1}.Validate())
}

func TestHelloNamesEveryFault(t *testing.T) {
	err := redirect.Hello{Hops: -1, Cap: -1}.Validate()
	for _, field := range []string{"Member", "Generation", "Hops", "Cap"} {
		require.ErrorContains(t, err, "Hello."+field)
	}
	require.ErrorContains(t, redirect.Hello{Member: "m", Generation: 1 << 63}.Validate(), "Hello.Generation")
	err = redirect.Hello{Member: "\xff", Session: "\xff"}.Validate()
	require.ErrorContains(t, err, "Hello.Member")
	require.ErrorContains(t, err, "Hello.Session")
	require.NoError(t, redirect.Hello{Member: "m", Session: "s"}.Validate())
}

func TestWordsAreStable(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range redirect.Reasons() {
		require.NotEmpty(t, r.String())
		require.False(t, seen[r.String()], r)
		seen[r.String()] = true
		require.Equal(t, r, redirect.ParseReason(r.String()))
	}
	require.Equal(t, redirect.ReasonUnknown, redirect.ParseReason("from a newer peer"))
	require.Equal(t, "unknown", redirect.Reason(200).String())
	for _, o := range redirect.Outcomes() {
		require.Equal(t, o, redirect.ParseOutcome(o.String()))
	}
	require.Equal(t, redirect.None, redirect.ParseOutcome("from a newer peer"))
	require.Equal(t, "none", redirect.Outcome(99).String())
	for _, k := range []redirect.NoticeKind{redirect.NoticeMove, redirect.NoticeEnd, redirect.NoticeHeartbeat} {
		require.Equal(t, k, redirect.ParseNoticeKind(k.String()))
	}
	require.Equal(t, redirect.NoticeNone, redirect.ParseNoticeKind("from a newer peer"))
	require.Equal(t, "none", redirect.NoticeKind(99).String())
	require.Equal(t, redirect.None, redirect.Verdict{}.Outcome, "the zero verdict admits nobody")
}
