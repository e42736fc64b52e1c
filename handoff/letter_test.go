// SPDX-License-Identifier: Apache-2.0

package handoff_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/handoff"
	"github.com/evenring/evenring/internal/sim"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// While a drain is announced, nothing is closed and nobody is told to move, and whoever
// comes, even to stay, is sent elsewhere.
func TestAnnouncement(t *testing.T) {
	inFleet(t, func(t *testing.T, f *fleet) {
		a := f.start("A")
		s := f.attach(a, redirect.Hello{Member: "s", CanRedirect: true})
		b := f.start("B")
		f.pass(second)
		f.running.Go(func() {
			_, err := handoff.Drain(f.ctx, a, handoff.Config{}, handoff.Hooks{})
			if err != nil && f.ctx.Err() == nil {
				t.Error(err)
			}
		})
		f.pass(handoff.DefaultPropagation - second)
		require.Empty(t, s.Notices())
		require.Equal(t, 1, a.Stats().Served)
		for _, stays := range []bool{false, true} {
			verdict, _ := a.Admit(t.Context(), redirect.Hello{Member: "new", Generation: 1, CanRedirect: true, Stay: stays})
			require.Equal(t, redirect.Redirect, verdict.Outcome)
			require.Equal(t, redirect.ReasonDraining, verdict.Reason)
			require.Equal(t, ring.GatewayID("B"), verdict.Gateway)
		}
		require.Equal(t, 1, b.Stats().Placeable, "the peers know")
	})
}

// The last gateway drains: everybody is named, nobody is sent in circles, and
// all of them find the next gateway that starts.
func TestDrainOfTheLastGateway(t *testing.T) {
	inFleet(t, func(t *testing.T, f *fleet) {
		a := f.start("A")
		f.supervise(8)
		report := f.drain(handoff.Config{}, a)[0]
		require.Empty(t, report.Moved)
		require.Len(t, report.Left, 8)
		for _, left := range report.Left {
			require.Equal(t, handoff.Nowhere, left.Cause)
		}
		f.pass(10 * second)
		require.Zero(t, a.Stats().Served)
		b := f.start("B")
		f.pass(time.Minute)
		require.Equal(t, 8, b.Stats().Served)
	})
}

// Those for whom there was no target are offered again, and go to the gateway
// that starts in the middle of the drain.
func TestFailuresAreOfferedAgain(t *testing.T) {
	inFleet(t, func(t *testing.T, f *fleet) {
		a := f.start("A")
		gaps := f.supervise(8)
		f.running.Go(func() {
			f.pass(handoff.DefaultPropagation + handoff.DefaultWindow - second)
			f.start("B")
		})
		report := f.drain(handoff.Config{}, a)[0]
		require.Len(t, report.Moved, 8)
		require.Greater(t, report.Orders, 8)
		require.Empty(t, report.Left)
		require.Empty(t, gaps.all())
	})
}

// A stream may end before its supervisor has arrived: that it did arrive is
// still found out as long as the drain lasts.
func TestLateConfirmation(t *testing.T) {
	inFleet(t, func(t *testing.T, f *fleet) {
		a, c := f.start("A"), f.start("C")
		var all []ring.MemberID
		for _, m := range []ring.MemberID{"clean", "unclean"} {
			s := f.attach(a, redirect.Hello{Member: m, CanRedirect: true})
			all = append(all, m)
			f.running.Go(func() {
				<-s.Notices()
				s.Leave(m == "clean")
				f.pass(second)
				c.Admit(f.ctx, redirect.Hello{Member: m, Generation: 2, Stay: true, CanRedirect: true})
			})
		}
		f.pass(second)
		report := f.drain(handoff.Config{}, a)[0]
		require.Empty(t, report.Closed)
		require.Len(t, report.Moved, len(all))
		for i, m := range report.Moved {
			require.Equal(t, handoff.Move{Member: all[i], To: "C"}, m)
		}
		require.Equal(t, 2, c.Stats().Served)
	})
}

// S50: a child session keeps its stream through the drain, for its requests;
// its supervisor is found at the old gateway until the new one has it, and at
// the new one after that.
func TestS50(t *testing.T) {
	inFleet(t, func(t *testing.T, f *fleet) {
		a := f.start("A")
		s := f.attach(a, redirect.Hello{Member: "s", CanRedirect: true, Answers: true})
		child := f.attach(a, redirect.Hello{Member: "s", Session: "1"})
		b := f.start("B")
		f.pass(second)
		s.Carry(answers("A"))
		where := func() string {
			for _, gw := range []*redirect.Gateway{a, b} {
				if reply, err := gw.Deliver(t.Context(), redirect.Request{Member: "s"}); err == nil {
					return string(reply)
				}
			}
			return "nowhere"
		}
		f.running.Go(func() {
			for notice := range s.Notices() {
				if notice.Kind != redirect.NoticeMove {
					return
				}
				require.Equal(t, "A", where(), "told to move, and not accepted yet")
				verdict, next := b.Admit(f.ctx, redirect.Hello{Member: "s", Generation: 2, Stay: true, CanRedirect: true, Answers: true})
				require.Equal(t, redirect.Accept, verdict.Outcome)
				next.Carry(answers("B"))
				require.Equal(t, "A", where(), "both have it")
				s.Leave(true)
				require.Equal(t, "B", where())
			}
		})
		report := f.drain(handoff.Config{}, a)[0]
		require.Equal(t, []handoff.Move{{Member: "s", To: "B"}}, report.Moved)
		require.Equal(t, "B", where())
		require.Empty(t, child.Notices(), "a session follows by itself")
		require.Equal(t, 1, a.Stats().Sessions)
	})
}

func answers(with string) redirect.Carry {
	return func(context.Context, []byte) ([]byte, error) { return []byte(with), nil }
}

// S35: two drain at once and do not even hear of each other's drain. Whom one
// asks says that it drains, so that all go to C.
func TestS35Unheard(t *testing.T) {
	for seed := range uint64(20) {
		w := sim.New(sim.Config{Seed: seed})
		a, b := w.StartGateway("A"), w.StartGateway("B")
		for i := range 20 {
			w.StartAt(ring.MemberID(rune('a'+i)), []*sim.Gateway{a, b}[i%2])
		}
		require.True(t, w.Until(time.Minute, w.Settled))
		w.StartGateway("C")
		w.Run(second)
		w.Mute = true
		require.NoError(t, a.Drain(handoff.Config{}))
		require.NoError(t, b.Drain(handoff.Config{}))
		w.Run(18 * second)
		for m, s := range w.Supervisors {
			require.Equal(t, ring.GatewayID("C"), s.Machine.Home().Gateway, "seed %d: %s", seed, m)
			require.Equal(t, 1, s.Moves, "seed %d: %s", seed, m)
		}
	}
}
