// SPDX-License-Identifier: Apache-2.0

package redirect_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// settling is A, which settles and serves so many supervisors, and what it knows of B.
func newSettling(t *testing.T, own, other int) *pair {
	t.Helper()
	p := newPair(t, true, other)
	for i := range own {
		require.Equal(t, redirect.Accept, p.hello(member(i), stay).Verdict.Outcome)
	}
	require.NoError(t, p.StartSettle())
	p.Take()
	return p
}

func member(i int) ring.MemberID { return ring.MemberID(fmt.Sprintf("own-%03d", i)) }

// yes is B's answer when it has so many.
func yes(seq uint64, attached, reserved int) placement.Answer {
	return placement.Answer{Gateway: "B", Yes: true, State: placement.Ready, Reports: []placement.Report{
		{Gateway: "B", Counts: placement.Counts{Incarnation: 20, Sequence: seq, Attached: attached, Reserved: reserved}},
	}}
}

func TestMoveTo(t *testing.T) {
	p := newSettling(t, 6, 0)
	m, err := p.MoveTo(p.now, member(0), "B", 3)
	require.NoError(t, err)
	require.NotNil(t, m.Ask)
	require.Equal(t, ring.GatewayID("B"), m.Ask.To.ID)
	require.Equal(t, 3, m.Ask.Question.Limit)
	require.False(t, m.Ask.Question.Insist)
	p.Answered(p.now, m, yes(2, 0, 1))
	require.True(t, m.Done)
	require.NoError(t, m.Err)
	require.Equal(t, redirect.NoticeMove, m.Notice.Kind)
	require.Equal(t, ring.GatewayID("B"), m.Notice.Gateway)
	require.Equal(t, "peer-B", m.Notice.Endpoint)
	require.Len(t, p.told(), 1)

	sight := p.Sight(p.now, member(0), member(1), "nobody")
	require.Equal(t, []redirect.Whereabouts{{Member: member(0), At: "A"}, {Member: member(1), At: "A"}, {Member: "nobody"}}, sight.Where)
	p.hear("B", placement.Ready, 3, roster.Entry{Member: member(0), Generation: 1000})
	require.Equal(t, ring.GatewayID("B"), p.Sight(p.now, member(0)).Where[0].At)
	require.Equal(t, 5, p.stats().Served)
}

// The limit is never above what this gateway has left, those on their way
// taken off, and one more: whatever limit a plan on older counts came to.
func TestMoveToKeepsTheReceiverBelowTheGiver(t *testing.T) {
	p := newSettling(t, 6, 0)
	for i, want := range []int{5, 4, 3, 2, 1} {
		m, err := p.MoveTo(p.now, member(i), "B", 100)
		require.NoError(t, err)
		require.NotNil(t, m.Ask, "%d", i)
		require.Equal(t, want, m.Ask.Question.Limit)
		p.Answered(p.now, m, yes(uint64(2+i), 0, i+1))
		require.NoError(t, m.Err)
	}
	m, err := p.MoveTo(p.now, member(5), "B", 100)
	require.NoError(t, err)
	require.ErrorIs(t, m.Err, redirect.ErrNoRoom, "the last one stays")
	require.Nil(t, m.Ask)
}

// Supervisors leave while the question is out, and the target has kept a place
// for more than this gateway has now.
func TestMoveToLooksAgainBeforeItTells(t *testing.T) {
	p := newSettling(t, 4, 1)
	m, err := p.MoveTo(p.now, member(0), "B", 2)
	require.NoError(t, err)
	require.Equal(t, 2, m.Ask.Question.Limit)
	p.Leave(p.now, 4, true)
	p.Answered(p.now, m, yes(2, 1, 1))
	require.NoError(t, m.Err, "B, which had 1, has 2 with it, and A has 3 still")
	p.told()

	p = newSettling(t, 3, 1)
	m, err = p.MoveTo(p.now, member(0), "B", 2)
	require.NoError(t, err)
	p.Leave(p.now, 3, true)
	p.Answered(p.now, m, yes(2, 1, 1))
	require.ErrorIs(t, m.Err, redirect.ErrNoRoom, "B would have as many as A has")
	require.Empty(t, p.told())
}

func TestMoveToEnds(t *testing.T) {
	p := newSettling(t, 6, 0)
	_, err := p.MoveTo(p.now, "nobody", "B", 3)
	require.ErrorIs(t, err, redirect.ErrNotHere)
	old := p.hello("old", stay, func(h *redirect.Hello) { h.CanRedirect = false })
	require.Equal(t, redirect.Accept, old.Verdict.Outcome)
	_, err = p.MoveTo(p.now, "old", "B", 3)
	require.ErrorIs(t, err, redirect.ErrNotMovable)
	for _, to := range []ring.GatewayID{"A", "C", ""} {
		m, err := p.MoveTo(p.now, member(0), to, 3)
		require.NoError(t, err)
		require.ErrorIs(t, m.Err, redirect.ErrNoRoom, "%q", to)
	}

	m, err := p.MoveTo(p.now, member(0), "B", 3)
	require.NoError(t, err)
	p.Answered(p.now, m, placement.Answer{Gateway: "B", State: placement.Ready})
	require.ErrorIs(t, m.Err, redirect.ErrNoRoom, "a no")

	m, err = p.MoveTo(p.now, member(0), "B", 3)
	require.NoError(t, err)
	other := yes(2, 0, 1)
	other.Gateway = "X"
	p.Answered(p.now, m, other)
	require.ErrorIs(t, m.Err, redirect.ErrNoRoom, "somebody else's yes")

	m, err = p.MoveTo(p.now, member(0), "B", 3)
	require.NoError(t, err)
	p.Leave(p.now, 1, true)
	p.Answered(p.now, m, yes(3, 0, 1))
	require.ErrorIs(t, m.Err, redirect.ErrNotHere, "it has left meanwhile")

	m, err = p.MoveTo(p.now, member(1), "B", 3)
	require.NoError(t, err)
	p.Cancel(p.now, m)
	require.True(t, m.Done)

	m, err = p.MoveTo(p.now, member(1), "B", 3)
	require.NoError(t, err)
	require.Equal(t, 3, m.Ask.Question.Limit, "none of these is on its way")
	_, err = p.StartDrain(p.now)
	require.NoError(t, err)
	p.Answered(p.now, m, yes(4, 0, 1))
	require.ErrorIs(t, m.Err, redirect.ErrDraining, "a drain wins")
	_, err = p.MoveTo(p.now, member(1), "B", 3)
	require.ErrorIs(t, err, redirect.ErrDraining)
	require.True(t, p.Sight(p.now).Over)
	require.Empty(t, p.told())

	p = newSettling(t, 6, 0)
	m, err = p.MoveTo(p.now, member(0), "B", 3)
	require.NoError(t, err)
	p.Unanswered(p.now, m, false)
	require.ErrorIs(t, m.Err, redirect.ErrNoRoom)
	m, err = p.MoveTo(p.now, member(0), "B", 3)
	require.NoError(t, err)
	require.ErrorIs(t, m.Err, redirect.ErrNoRoom, "it is suspect now")
}

func TestStartSettle(t *testing.T) {
	p := newPair(t, false, 0)
	require.ErrorIs(t, p.StartSettle(), redirect.ErrNoPeers)
	p = newSettling(t, 1, 0)
	require.ErrorIs(t, p.StartSettle(), redirect.ErrSettling)
	p.StopSettle()
	require.NoError(t, p.StartSettle())
	_, err := p.StartDrain(p.now)
	require.NoError(t, err)
	require.ErrorIs(t, p.StartSettle(), redirect.ErrDraining)
	p.StopDrain(p.now)
	require.NoError(t, p.StartSettle(), "the drain has ended the one before")
}

// Where a supervisor came from is remembered over reconnections to this gateway.
func TestWhereASupervisorCameFrom(t *testing.T) {
	p := newPair(t, true, 0)
	from := func(home ring.GatewayID) func(*redirect.Hello) {
		return func(h *redirect.Hello) { h.Stay, h.Home = true, home }
	}
	p.hello("moved", from("B"))
	p.hello("new", stay)
	p.hello("moved", from("A"))
	p.hello("new", from("A"))
	held := p.hello("held", from("C"))
	p.Leave(p.now, held.Key, false)
	p.hello("held", from("A"))
	all := map[ring.MemberID]ring.GatewayID{}
	for _, s := range p.Supervisors() {
		all[s.Member] = s.From
	}
	require.Equal(t, map[ring.MemberID]ring.GatewayID{"moved": "B", "new": "", "held": "C"}, all)
	p.hello("moved", stay)
	require.Empty(t, p.Supervisors()[1].From, "a process that remembers nothing")
}

// A hold counts as being here: the supervisor is expected back.
func TestSightOfOneOnHold(t *testing.T) {
	p := newSettling(t, 2, 0)
	p.Leave(p.now, 1, false)
	require.Equal(t, ring.GatewayID("A"), p.Sight(p.now, member(0)).Where[0].At)
	p.now = p.now.Add(time.Minute)
	p.Step(p.now, roster.Tick{})
	require.Empty(t, p.Sight(p.now, member(0)).Where[0].At)
}

// The target may begin to stop, or be lost, after it has said yes; and a yes
// that comes when the place has expired is none.
func TestMoveToHeedsWhatHappenedMeanwhile(t *testing.T) {
	for _, c := range []struct {
		name  string
		after func(p *pair)
		want  error
	}{
		{"nothing", func(*pair) {}, nil},
		{"the target drains", func(p *pair) { p.peer("B", placement.Draining, 3, 0) }, redirect.ErrNoRoom},
		{"just in time", func(p *pair) { p.now = p.now.Add(redirect.DefaultReserve - 1) }, nil},
		{"the place has expired", func(p *pair) { p.now = p.now.Add(redirect.DefaultReserve) }, redirect.ErrNoRoom},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newSettling(t, 6, 0)
			m, err := p.MoveTo(p.now, member(0), "B", 3)
			require.NoError(t, err)
			c.after(p)
			p.Answered(p.now, m, yes(2, 0, 1))
			require.True(t, m.Done)
			require.ErrorIs(t, m.Err, c.want)
		})
	}
}
