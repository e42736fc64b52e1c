// SPDX-License-Identifier: Apache-2.0

package redirect_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lan connects gateways in memory: questions and roster messages.
type lan struct {
	mu       sync.Mutex
	gateways map[ring.GatewayID]*redirect.Gateway
	deaf     map[ring.GatewayID]bool // takes questions and never answers
}

func newLAN() *lan {
	return &lan{gateways: map[ring.GatewayID]*redirect.Gateway{}, deaf: map[ring.GatewayID]bool{}}
}

func (l *lan) find(id ring.GatewayID) (*redirect.Gateway, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gateways[id], l.deaf[id]
}

func (l *lan) Ask(ctx context.Context, to placement.Gateway, q placement.Question) (placement.Answer, error) {
	g, deaf := l.find(to.ID)
	switch {
	case g == nil:
		return placement.Answer{}, errors.New("refused")
	case deaf:
		<-ctx.Done()
		return placement.Answer{}, ctx.Err()
	}
	return g.Asked(q), nil
}

// end is one gateway's roster transport.
type end struct {
	lan  *lan
	from ring.GatewayID
}

func (e end) Send(to ring.GatewayID, message []byte) error {
	m, err := roster.Decode(message)
	if err != nil {
		return err
	}
	e.lan.mu.Lock()
	var all []*redirect.Gateway
	for id, g := range e.lan.gateways {
		if id != e.from && (to == "" || to == id) {
			all = append(all, g)
		}
	}
	e.lan.mu.Unlock()
	for _, g := range all {
		g.Step(roster.Received{From: e.from, Message: m})
	}
	return nil
}

// start runs a gateway until the test's bubble is over.
func (l *lan) start(t *testing.T, id ring.GatewayID, hooks redirect.Hooks) *redirect.Gateway {
	t.Helper()
	g, err := redirect.NewGateway(redirect.Config{
		Gateway: id, Incarnation: placement.Incarnation(time.Now().UnixNano()), Endpoint: "peer-" + string(id), Peers: l,
	}, hooks)
	require.NoError(t, err)
	l.mu.Lock()
	others := make([]*redirect.Gateway, 0, len(l.gateways))
	for _, o := range l.gateways {
		others = append(others, o)
	}
	l.gateways[id] = g
	l.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); g.Run(ctx, end{l, id}) }()
	t.Cleanup(func() { cancel(); <-done })
	for _, o := range others {
		g.Step(roster.LinkUp{Gateway: o.ID()})
		o.Step(roster.LinkUp{Gateway: id})
	}
	synctest.Wait()
	return g
}

// pass lets time go by in a bubble.
func pass(d time.Duration) { <-time.After(d) }

func TestGatewayPlacesOverTheFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLAN()
		var seen []redirect.Observation
		a := l.start(t, "A", redirect.Hooks{Verdict: func(o redirect.Observation) { seen = append(seen, o) }})
		b := l.start(t, "B", redirect.Hooks{})
		require.True(t, a.Ready().Supervisors.OK)
		require.Len(t, a.Gateways(), 2)

		gen := placement.Generation(1)
		for i := range 10 { // all come to A; who is sent on goes
			h := redirect.Hello{Member: ring.MemberID(fmt.Sprint("s", i)), Generation: gen, CanRedirect: true}
			v, at := a.Admit(t.Context(), h)
			require.Equal(t, v.Outcome == redirect.Accept, at != nil)
			if v.Outcome == redirect.Redirect {
				h.Stay, h.Hops, h.Generation = true, 1, gen+1
				v, at = b.Admit(t.Context(), h)
				require.Equal(t, redirect.Accept, v.Outcome)
				require.NotNil(t, at)
			}
		}
		pass(time.Second)
		require.Len(t, seen, 10)
		require.Equal(t, 5, a.Stats().Served)
		require.Equal(t, 5, b.Stats().Served)
		require.Equal(t, 10, a.Stats().Live)
		require.Len(t, b.Supervisors(), 5)
		require.Contains(t, a.Explain("s11").String(), "11 live")
	})
}

func TestGatewayGivesUpOnADeafOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLAN()
		a := l.start(t, "A", redirect.Hooks{})
		l.start(t, "B", redirect.Hooks{})
		pass(time.Second)
		l.mu.Lock()
		l.deaf["B"] = true
		l.mu.Unlock()

		began := time.Now()
		for i := range 4 {
			v, at := a.Admit(t.Context(), redirect.Hello{Member: ring.MemberID(fmt.Sprint("s", i)), Generation: 1, CanRedirect: true})
			require.Equal(t, redirect.Accept, v.Outcome)
			require.NotNil(t, at)
		}
		require.Equal(t, redirect.DefaultAskTimeout, time.Since(began), "asked once, suspect from then on")
		require.Equal(t, 1, a.Stats().Placeable)
	})
}

func TestGatewayLetsWaitersGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLAN()
		a := l.start(t, "A", redirect.Hooks{})
		l.start(t, "B", redirect.Hooks{})
		l.mu.Lock()
		l.deaf["B"] = true
		l.mu.Unlock()
		admit := func(ctx context.Context, n int) (verdicts []redirect.Verdict) {
			var mu sync.Mutex
			var all sync.WaitGroup
			for i := range n {
				all.Go(func() {
					v, at := a.Admit(ctx, redirect.Hello{Member: ring.MemberID(fmt.Sprint("s", i)), Generation: 1, CanRedirect: true})
					if at != nil {
						at.Leave(true)
					}
					mu.Lock()
					defer mu.Unlock()
					verdicts = append(verdicts, v)
				})
			}
			all.Wait()
			return verdicts
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		none := 0
		for _, v := range admit(ctx, 8) {
			if v.Outcome == redirect.None {
				none++
			}
		}
		require.Positive(t, none, "those that waited behind the deaf one's question got no verdict")
		require.Equal(t, 2, a.Stats().Placeable, "a caller that goes away says nothing of the target")
		for _, v := range admit(t.Context(), 8) {
			require.NotEqual(t, redirect.None, v.Outcome, "nobody is stuck behind those who went")
		}
	})
}

func TestAttachmentNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLAN().start(t, "A", redirect.Hooks{})
		hello := redirect.Hello{Member: "s", Generation: 1, Stay: true, CanRedirect: true}
		_, old := g.Admit(t.Context(), hello)
		hello.Generation++
		_, at := g.Admit(t.Context(), hello)
		n, ok := <-old.Notices()
		require.True(t, ok)
		require.Equal(t, redirect.ReasonSuperseded, n.Reason)
		_, ok = <-old.Notices()
		require.False(t, ok, "nothing follows an end")

		g.EndAll(redirect.ReasonExpired)
		require.Equal(t, redirect.ReasonExpired, (<-at.Notices()).Reason)
		old.Leave(false)
		old.Leave(false)
		at.Leave(false)
		require.Equal(t, 1, g.Stats().Held)
		pass(redirect.DefaultHold + time.Second)
		require.Equal(t, 0, g.Stats().Live, "Run lets the hold run out")
	})
}

func TestSlowStreamLosesTheOldestNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLAN()
		a := l.start(t, "A", redirect.Hooks{})
		l.start(t, "B", redirect.Hooks{})
		_, at := a.Admit(t.Context(), redirect.Hello{Member: "s", Generation: 1, Stay: true, CanRedirect: true})
		for range 20 {
			_, err := a.MoveAway(t.Context(), "s")
			require.NoError(t, err)
		}
		require.True(t, a.End("s", redirect.ReasonStopped))
		var last redirect.Notice
		n := 0
		for last = range at.Notices() {
			n++
		}
		require.Equal(t, redirect.NoticeEnd, last.Kind)
		require.Equal(t, 4, n)
	})
}

func TestConflictingGateways(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLAN()
		var conflicts []roster.Conflict
		a := l.start(t, "A", redirect.Hooks{Conflict: func(c roster.Conflict) { conflicts = append(conflicts, c) }})
		a.Step(roster.Received{From: "A", Message: roster.Heartbeat{Origin: roster.Origin{
			Gateway: "A", Endpoint: "elsewhere", State: placement.Ready, Counts: placement.Counts{Incarnation: a.Incarnation() + 1}}}})
		require.Len(t, conflicts, 1)
		require.False(t, a.Ready().Supervisors.OK)
	})
}
