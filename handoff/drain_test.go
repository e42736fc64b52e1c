// SPDX-License-Identifier: Apache-2.0

package handoff_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/handoff"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

const second = time.Second

// A drain with room elsewhere: everybody moves, nobody is ever without a
// stream, and the others end even.
func TestDrain(t *testing.T) {
	inFleet(t, func(t *testing.T, f *fleet) {
		a := f.start("A")
		gaps := f.supervise(13)
		require.Equal(t, 13, a.Stats().Served)
		b, c := f.start("B"), f.start("C")
		f.pass(second)

		var states []handoff.State
		report, err := handoff.Drain(t.Context(), a, handoff.Config{}, handoff.Hooks{
			Observe: func(o handoff.Observation) {
				if o.Before != o.After {
					states = append(states, o.After)
				}
			},
		})
		require.NoError(t, err)
		require.Len(t, report.Moved, 13)
		require.Equal(t, 13, report.Served())
		require.Equal(t, 13, report.Orders, "each was asked once")
		require.Greater(t, report.Took, handoff.DefaultPropagation)
		require.Less(t, report.Took, handoff.DefaultPropagation+handoff.DefaultWindow+handoff.DefaultLinger)
		require.Equal(t, []handoff.State{handoff.Announced, handoff.Handing, handoff.Done}, states, "there is nothing to close")

		f.pass(second)
		require.Empty(t, gaps.all(), "make before break")
		require.Zero(t, a.Stats().Served)
		served := []int{b.Stats().Served, c.Stats().Served}
		slices.Sort(served)
		require.Equal(t, []int{6, 7}, served)
		require.EqualValues(t, 13, a.Stats().HandoffsMoved)
		require.True(t, a.Stats().Draining)
	})
}

func TestDrainS35(t *testing.T) {
	t.Run("two at once", func(t *testing.T) {
		inFleet(t, func(t *testing.T, f *fleet) {
			a, b := f.start("A"), f.start("B")
			gaps := f.supervise(10)
			c := f.start("C")
			f.pass(second)
			reports := f.drain(handoff.Config{}, a, b)
			require.Len(t, reports[0].Moved, 5)
			require.Len(t, reports[1].Moved, 5)
			for _, move := range slices.Concat(reports[0].Moved, reports[1].Moved) {
				require.Equal(t, ring.GatewayID("C"), move.To, "%s", move.Member)
			}
			f.pass(second)
			require.Equal(t, 10, c.Stats().Served)
			require.Empty(t, gaps.all())
		})
	})
	t.Run("all", func(t *testing.T) {
		inFleet(t, func(t *testing.T, f *fleet) {
			a, b := f.start("A"), f.start("B")
			gaps := f.supervise(10)
			f.pass(second)
			reports := f.drain(handoff.Config{}, a, b)
			for _, report := range reports {
				require.Empty(t, report.Moved)
				require.Len(t, report.Left, 5)
				for _, left := range report.Left {
					require.Equal(t, handoff.Nowhere, left.Cause)
				}
			}
			f.pass(10 * second)
			require.Zero(t, a.Stats().Served+b.Stats().Served)
			refused := a.Stats().Verdicts[redirect.Refuse][redirect.ReasonDraining] + b.Stats().Verdicts[redirect.Refuse][redirect.ReasonDraining]
			require.Greater(t, refused, uint64(10), "they come back")
			require.Less(t, refused, uint64(10*12), "and wait between two tries")
			require.Len(t, gaps.all(), 10)
		})
	})
}

// drain drains gateways at once.
func (f *fleet) drain(cfg handoff.Config, gateways ...*redirect.Gateway) []handoff.Report {
	reports := make([]handoff.Report, len(gateways))
	errs := make([]error, len(gateways))
	var draining sync.WaitGroup
	for i, gw := range gateways {
		draining.Go(func() { reports[i], errs[i] = handoff.Drain(f.ctx, gw, cfg, handoff.Hooks{}) })
	}
	draining.Wait()
	require.NoError(f.t, errors.Join(errs...))
	return reports
}

func TestDrainS46(t *testing.T) {
	inFleet(t, func(t *testing.T, f *fleet) {
		a := f.start("A")
		cfg := handoff.Config{Window: 120 * second, KillAfter: 60 * second}
		_, err := handoff.Drain(t.Context(), a, cfg, handoff.Hooks{})
		require.ErrorContains(t, err, "Window 2m0s")
		require.False(t, a.Stats().Draining, "nothing has begun")

		f.attach(a, redirect.Hello{Member: "silent", CanRedirect: true})
		cfg.Shrink = true
		report, err := handoff.Drain(t.Context(), a, cfg, handoff.Hooks{})
		require.NoError(t, err)
		require.Equal(t, []handoff.LeftBehind{{Member: "silent", Cause: handoff.Nowhere}}, report.Left)
		require.LessOrEqual(t, report.Took, 60*second-handoff.DefaultMargin/2)
	})
}

// S49: the deadline passes while a supervisor is on its way. It ends at its
// target, is told to move once, and who was left is told to go.
func TestDrainS49(t *testing.T) {
	inFleet(t, func(t *testing.T, f *fleet) {
		a, c := f.start("A"), f.start("C")
		slow := f.attach(a, redirect.Hello{Member: "slow", CanRedirect: true})
		old := f.attach(a, redirect.Hello{Member: "old"})
		f.pass(second)

		cfg := handoff.Config{Propagation: second, Window: 4 * second, Confirm: 5 * second}
		report, err := handoff.Drain(t.Context(), a, cfg, handoff.Hooks{})
		require.NoError(t, err)
		require.Equal(t, []handoff.LeftBehind{
			{Member: "old", Cause: handoff.Immovable}, {Member: "slow", Cause: handoff.Silent},
		}, report.Left)
		require.Equal(t, 10*second+handoff.DefaultMargin/2, report.Took, "their streams do not end")
		require.EqualValues(t, 2, a.Stats().HandoffsLeftBehind)

		move := <-slow.Notices()
		require.Equal(t, redirect.NoticeMove, move.Kind)
		require.Equal(t, ring.GatewayID("C"), move.Gateway)
		for _, attachment := range []*redirect.Attachment{slow, old} {
			end := <-attachment.Notices()
			require.Equal(t, redirect.NoticeEnd, end.Kind)
			require.Equal(t, redirect.ReasonDraining, end.Reason)
			_, open := <-attachment.Notices()
			require.False(t, open)
		}

		f.pass(2 * second)
		verdict, attachment := c.Admit(f.ctx, redirect.Hello{Member: "slow", Generation: 2, Stay: true, CanRedirect: true})
		require.Equal(t, redirect.Accept, verdict.Outcome)
		f.pass(30 * second)
		require.Equal(t, 1, c.Stats().Served)
		require.Empty(t, attachment.Notices(), "no second move")
		slow.Leave(true)
		old.Leave(true)
		require.Zero(t, a.Stats().Served)
	})
}

func TestDrainS51(t *testing.T) {
	inFleet(t, func(t *testing.T, f *fleet) {
		a := f.start("A")
		gaps := f.supervise(10)
		b := f.start("B")
		f.pass(second)

		ctx, abort := context.WithCancelCause(t.Context())
		mistake := errors.New("pressed the wrong button")
		moved := 0
		report, err := handoff.Drain(ctx, a, handoff.Config{}, handoff.Hooks{Observe: func(o handoff.Observation) {
			if _, ok := o.Event.(handoff.Moved); !ok {
				return
			}
			if moved++; moved == 1 {
				_, err := handoff.Drain(t.Context(), a, handoff.Config{}, handoff.Hooks{})
				require.ErrorIs(t, err, redirect.ErrDraining)
			}
			if moved == 4 {
				abort(mistake)
			}
		}})
		require.ErrorIs(t, err, mistake)
		require.True(t, report.Aborted)
		require.Len(t, report.Moved, 4)
		require.Len(t, report.Left, 6)

		f.pass(60 * second)
		require.Equal(t, 6, a.Stats().Served)
		require.Equal(t, 4, b.Stats().Served)
		require.False(t, a.Stats().Draining)
		require.Zero(t, a.Stats().HandoffsLeftBehind)
		require.Empty(t, gaps.all())
		for _, g := range b.Gateways() {
			require.True(t, g.Placeable(), "%+v", g)
		}

		report, err = handoff.Drain(t.Context(), a, handoff.Config{}, handoff.Hooks{})
		require.NoError(t, err)
		require.Len(t, report.Moved, 6)
	})
}

func TestDrainIsOverBeforeItBegins(t *testing.T) {
	inFleet(t, func(t *testing.T, f *fleet) {
		a := f.start("A")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := handoff.Drain(ctx, a, handoff.Config{}, handoff.Hooks{
			Observe: func(handoff.Observation) { t.Error("it has begun") },
		})
		require.ErrorIs(t, err, context.Canceled)
		require.False(t, a.Stats().Draining)
	})
}

func TestNoMoreThanInFlightOrdersAtOnce(t *testing.T) {
	inFleet(t, func(t *testing.T, f *fleet) {
		a := f.start("A")
		f.supervise(20)
		f.start("B")
		f.pass(second)
		f.ask = func(ctx context.Context) error {
			select {
			case <-time.After(200 * time.Millisecond):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		underWay, most := 0, 0
		report, err := handoff.Drain(t.Context(), a, handoff.Config{Window: 1, InFlight: 3}, handoff.Hooks{
			Observe: func(o handoff.Observation) {
				if _, ok := o.Event.(handoff.Ordered); ok {
					underWay--
				}
				for _, action := range o.Actions {
					if _, ok := action.(handoff.Order); ok {
						underWay++
					}
				}
				most = max(most, underWay)
			},
		})
		require.NoError(t, err)
		require.Len(t, report.Moved, 20)
		require.Equal(t, 3, most)
		require.Zero(t, underWay)
	})
}

// A target that does not answer becomes suspect, and nobody is sent to it.
func TestNobodyIsSentToADeadGateway(t *testing.T) {
	inFleet(t, func(t *testing.T, f *fleet) {
		a := f.start("A")
		f.supervise(5)
		f.start("B")
		f.pass(second)
		f.ask = func(context.Context) error { return errUnreachable }
		report, err := handoff.Drain(t.Context(), a, handoff.Config{}, handoff.Hooks{})
		require.NoError(t, err)
		require.Empty(t, report.Moved)
		require.Len(t, report.Left, 5)
		require.Greater(t, report.Orders, 5, "they were offered again")
	})
}

// An abort does not wait for its turn behind a question, and the gateway is
// ready again only once nobody can be told to leave it any more.
func TestAbortDuringAnOrder(t *testing.T) {
	inFleet(t, func(t *testing.T, f *fleet) {
		a := f.start("A")
		s := f.attach(a, redirect.Hello{Member: "s", CanRedirect: true})
		f.start("B")
		f.pass(second)
		ctx, abort := context.WithCancel(t.Context())
		f.ask = func(ctx context.Context) error {
			abort()
			<-ctx.Done()
			<-time.After(second) // a slow one
			if !a.Stats().Draining {
				t.Error("ready with an order under way")
			}
			return ctx.Err()
		}
		report, err := handoff.Drain(ctx, a, handoff.Config{}, handoff.Hooks{})
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, []handoff.LeftBehind{{Member: "s", Cause: handoff.Nowhere}}, report.Left)
		f.pass(60 * second)
		require.Empty(t, s.Notices())
		require.Equal(t, 1, a.Stats().Served)
	})
}

// What has happened counts before an abort and before what is due, whichever
// is noticed first.
func TestWhatHasHappenedComesFirst(t *testing.T) {
	for range 20 {
		inFleet(t, func(t *testing.T, f *fleet) {
			a := f.start("A")
			s := f.attach(a, redirect.Hello{Member: "s", CanRedirect: true})
			ctx, abort := context.WithCancel(t.Context())
			report, err := handoff.Drain(ctx, a, handoff.Config{}, handoff.Hooks{Observe: func(o handoff.Observation) {
				if _, ok := o.Event.(handoff.Begin); ok {
					s.Leave(true)
					abort()
				}
			}})
			require.ErrorIs(t, err, context.Canceled)
			require.Equal(t, []ring.MemberID{"s"}, report.Closed)
		})
		inFleet(t, func(t *testing.T, f *fleet) {
			a := f.start("A")
			s := f.attach(a, redirect.Hello{Member: "s", CanRedirect: true})
			report, err := handoff.Drain(t.Context(), a, handoff.Config{}, handoff.Hooks{Observe: func(o handoff.Observation) {
				if _, ok := o.Event.(handoff.Begin); ok {
					f.pass(60 * second) // a hook that blocks, past every deadline
					s.Leave(true)
				}
			}})
			require.NoError(t, err)
			require.Equal(t, []ring.MemberID{"s"}, report.Closed)
		})
	}
}

// The last one leaves while it is being placed: that is not waited for.
func TestOrderUnderWayForNobody(t *testing.T) {
	inFleet(t, func(t *testing.T, f *fleet) {
		f.askTime = 60 * second
		a := f.start("A")
		s := f.attach(a, redirect.Hello{Member: "s", CanRedirect: true})
		f.start("B")
		f.pass(second)
		began := time.Now()
		f.ask = func(ctx context.Context) error {
			s.Leave(true)
			<-ctx.Done()
			return ctx.Err()
		}
		report, err := handoff.Drain(t.Context(), a, handoff.Config{Window: 1}, handoff.Hooks{})
		require.NoError(t, err)
		require.Equal(t, []ring.MemberID{"s"}, report.Closed)
		require.Equal(t, handoff.DefaultPropagation+handoff.DefaultLinger, time.Since(began).Round(time.Millisecond))
	})
}

// An order is given up at the deadline, and the drain does not return while
// one is under way.
func TestOrderUnderWayAtTheDeadline(t *testing.T) {
	inFleet(t, func(t *testing.T, f *fleet) {
		f.askTime = 60 * second
		a := f.start("A")
		f.attach(a, redirect.Hello{Member: "s", CanRedirect: true})
		f.start("B")
		f.pass(second)
		began := time.Now()
		var gaveUp, returned time.Duration
		f.ask = func(ctx context.Context) error {
			<-ctx.Done()
			gaveUp = time.Since(began)
			<-time.After(5 * second)
			returned = time.Since(began)
			return ctx.Err()
		}
		_, err := handoff.Drain(t.Context(), a, handoff.Config{}, handoff.Hooks{})
		require.NoError(t, err)
		require.Equal(t, 23*second, gaveUp)
		require.Equal(t, 28*second, returned)
	})
}

// Invariant 8 over the real thing: some supervisors close, some say nothing,
// some cannot move.
func TestDrainInvariant8(t *testing.T) {
	inFleet(t, func(t *testing.T, f *fleet) {
		a := f.start("A")
		f.supervise(6)
		old := f.attach(a, redirect.Hello{Member: "old"})
		silent := f.attach(a, redirect.Hello{Member: "silent", CanRedirect: true})
		leaver := f.attach(a, redirect.Hello{Member: "leaver", CanRedirect: true})
		f.running.Go(func() {
			<-leaver.Notices()
			leaver.Leave(true)
		})
		broken := f.attach(a, redirect.Hello{Member: "broken", CanRedirect: true})
		f.start("B")
		f.start("C")
		f.running.Go(func() {
			<-time.After(4 * second)
			broken.Leave(false)
		})
		for _, attachment := range []*redirect.Attachment{old, silent} {
			f.running.Go(func() {
				for range attachment.Notices() { // until told to end
				}
				attachment.Leave(true)
			})
		}
		f.pass(second)
		report, err := handoff.Drain(t.Context(), a, handoff.Config{}, handoff.Hooks{})
		require.NoError(t, err)
		require.Equal(t, 10, report.Served())
		require.Len(t, report.Moved, 6)
		require.Equal(t, []ring.MemberID{"broken", "leaver"}, report.Closed)
		require.Equal(t, []handoff.LeftBehind{
			{Member: "old", Cause: handoff.Immovable}, {Member: "silent", Cause: handoff.Silent},
		}, report.Left)
		require.Equal(t, 23*second, report.Took, "streams that end are waited for no longer")
		synctest.Wait()
		stats := a.Stats()
		require.Zero(t, stats.Served)
		require.Equal(t, []uint64{6, 2, 2}, []uint64{stats.HandoffsMoved, stats.HandoffsClosed, stats.HandoffsLeftBehind})
	})
}
