// SPDX-License-Identifier: Apache-2.0

package handoff_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/handoff"
	"github.com/evenring/evenring/handoff/settle"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// settle settles gateways at once.
func (f *fleet) settle(cfg settle.Config, gateways ...*redirect.Gateway) []settle.Report {
	reports := make([]settle.Report, len(gateways))
	errs := make([]error, len(gateways))
	var settling sync.WaitGroup
	for i, gw := range gateways {
		settling.Go(func() { reports[i], errs[i] = settle.Run(f.ctx, gw, cfg, settle.Hooks{}) })
	}
	settling.Wait()
	require.NoError(f.t, errors.Join(errs...))
	return reports
}

func served(gateways ...*redirect.Gateway) []int {
	counts := make([]int, len(gateways))
	for i, gw := range gateways {
		counts[i] = gw.Stats().Served
	}
	return counts
}

// Three gateways settle at once, over real supervisors: as few moves as it
// takes, nobody is ever without a stream, and a second settle moves nobody.
func TestSettle(t *testing.T) {
	inFleet(t, func(t *testing.T, f *fleet) {
		a := f.start("A")
		gaps := f.supervise(20)
		b := f.start("B")
		f.superviseAs("t", 4)
		c := f.start("C")
		f.pass(second)
		before := served(a, b, c)
		require.Equal(t, []int{20, 4, 0}, before)

		reports := f.settle(settle.Config{}, a, b, c)
		f.pass(second)
		require.Equal(t, []int{8, 8, 8}, served(a, b, c))
		require.Len(t, reports[0].Moved, 12)
		require.Empty(t, reports[1].Moved)
		for i, r := range reports {
			require.Equal(t, settle.Even, r.Ending, "%d", i)
			require.Empty(t, r.Failed)
			require.Zero(t, r.Left)
			require.GreaterOrEqual(t, r.Took, settle.DefaultStable+settle.DefaultLinger)
		}
		require.Equal(t, 20, reports[0].Before.Most-reports[0].Before.Fewest)
		require.Zero(t, reports[0].After.Most-reports[0].After.Fewest)
		require.EqualValues(t, 12, a.Stats().HandoffsMoved)
		require.Empty(t, gaps.all(), "make before break")

		for _, r := range f.settle(settle.Config{}, a, b, c) {
			require.Empty(t, r.Moved)
		}
		f.pass(100 * second)
		require.Equal(t, []int{8, 8, 8}, served(a, b, c))
	})
}

// One at a time, and a drain wins.
func TestSettleAndDrain(t *testing.T) {
	inFleet(t, func(t *testing.T, f *fleet) {
		a := f.start("A")
		gaps := f.supervise(40)
		b := f.start("B")
		f.pass(second)

		drained := make(chan handoff.Report, 1)
		begun := false
		report, err := settle.Run(t.Context(), a, settle.Config{}, settle.Hooks{Observe: func(o settle.Observation) {
			if _, ok := o.Event.(settle.Begin); ok {
				_, err := settle.Run(t.Context(), a, settle.Config{}, settle.Hooks{})
				require.ErrorIs(t, err, redirect.ErrSettling)
			}
			if o.After != settle.Moving || begun {
				return
			}
			if s, ok := o.Event.(settle.Seen); ok && s.Gateways[1].Attached >= 5 {
				begun = true
				f.running.Go(func() {
					r, err := handoff.Drain(f.ctx, a, handoff.Config{}, handoff.Hooks{})
					if err != nil {
						t.Error(err)
					}
					drained <- r
				})
			}
		}})
		require.ErrorIs(t, err, redirect.ErrDraining)
		require.Equal(t, settle.Draining, report.Ending)
		require.NotEmpty(t, report.Moved) // counts travel faster than names
		_, err = settle.Run(t.Context(), a, settle.Config{}, settle.Hooks{})
		require.ErrorIs(t, err, redirect.ErrDraining)

		r := <-drained
		require.Empty(t, r.Left)
		f.pass(second)
		require.Equal(t, []int{0, 40}, served(a, b))
		require.Empty(t, gaps.all())
	})
}

func TestSettleIsAborted(t *testing.T) {
	inFleet(t, func(t *testing.T, f *fleet) {
		a := f.start("A")
		f.supervise(40)
		b := f.start("B")
		f.pass(second)
		ctx, abort := context.WithCancelCause(t.Context())
		mistake := errors.New("pressed the wrong button")
		report, err := settle.Run(ctx, a, settle.Config{}, settle.Hooks{Observe: func(o settle.Observation) {
			if s, ok := o.Event.(settle.Seen); ok && s.Gateways[1].Attached == 4 {
				abort(mistake)
			}
		}})
		require.ErrorIs(t, err, mistake)
		require.Equal(t, settle.Aborted, report.Ending)
		require.NotEmpty(t, report.Moved) // counts travel faster than names
		require.Less(t, len(report.Moved), 20)
		f.pass(time.Minute)
		require.Equal(t, len(report.Moved)+len(report.Failed), b.Stats().Served, "who was told still moved; nobody else did")
		require.Equal(t, 40, a.Stats().Served+b.Stats().Served)

		_, err = settle.Run(ctx, a, settle.Config{}, settle.Hooks{})
		require.ErrorIs(t, err, mistake)
		f.settle(settle.Config{}, a, b)
		f.pass(second)
		require.Equal(t, []int{20, 20}, served(a, b))
	})
}

// A fleet that does not come to rest is left alone, and the error says why.
func TestSettleGivesUp(t *testing.T) {
	inFleet(t, func(t *testing.T, f *fleet) {
		a := f.start("A")
		f.supervise(4)
		b := f.start("B")
		f.pass(second)
		_, err := b.StartDrain(func(redirect.Departure) {})
		require.NoError(t, err)
		began := time.Now()
		report, err := settle.Run(t.Context(), a, settle.Config{}, settle.Hooks{})
		require.ErrorIs(t, err, settle.ErrUnstable)
		require.EqualError(t, err, `settle: the fleet is not stable: gateway "B" is draining`)
		require.Equal(t, settle.Unstable, report.Ending)
		require.Equal(t, settle.DefaultPatience, time.Since(began))
		require.Equal(t, []int{4, 0}, served(a, b))
	})
}

func TestSettleNeedsPeersAndAValidConfig(t *testing.T) {
	gw, err := redirect.NewGateway(redirect.Config{Gateway: "A", Incarnation: 1}, redirect.Hooks{})
	require.NoError(t, err)
	_, err = settle.Run(t.Context(), gw, settle.Config{}, settle.Hooks{})
	require.ErrorIs(t, err, redirect.ErrNoPeers)
	_, err = settle.Run(t.Context(), gw, settle.Config{Budget: -1}, settle.Hooks{})
	require.ErrorContains(t, err, "Config.Budget is -1")
}

// Some supervisors say nothing, and are told once.
func TestSettleS18(t *testing.T) {
	inFleet(t, func(t *testing.T, f *fleet) {
		a := f.start("A")
		var silent []*redirect.Attachment
		for _, m := range []ring.MemberID{"a-1", "a-2", "a-3"} {
			silent = append(silent, f.attach(a, redirect.Hello{Member: m, CanRedirect: true}))
		}
		f.supervise(17)
		b := f.start("B")
		f.pass(second)
		reports := f.settle(settle.Config{}, a, b)
		require.Equal(t, settle.Stuck, reports[0].Ending)
		require.Len(t, reports[0].Moved, 7)
		require.Equal(t, []settle.Failure{
			{Member: "a-1", To: "B", Cause: settle.Silent}, {Member: "a-2", To: "B", Cause: settle.Silent}, {Member: "a-3", To: "B", Cause: settle.Silent},
		}, reports[0].Failed)
		require.EqualValues(t, 3, a.Stats().HandoffsLeftBehind)
		for _, s := range silent {
			require.Equal(t, redirect.NoticeMove, (<-s.Notices()).Kind)
			require.Empty(t, s.Notices(), "told once")
		}
	})
}
