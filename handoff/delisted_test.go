// SPDX-License-Identifier: Apache-2.0

package handoff_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/handoff"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// list gives every gateway discovery's list.
func (f *fleet) list(ids ...ring.GatewayID) {
	for _, gw := range f.all() {
		gw.Step(roster.Discovered{Gateways: ids})
	}
	f.pass(second)
}

// S62: A, which discovery has dropped, learns it and drains; the others stop
// dialling it, and whoever comes to it all the same is sent on. Nobody is
// without a stream. Once listed again it serves again.
func TestS62(t *testing.T) {
	inFleet(t, func(t *testing.T, f *fleet) {
		a, b, c := f.start("A"), f.start("B"), f.start("C")
		f.list("A", "B", "C")
		gaps := f.supervise(12)
		require.Equal(t, 4, a.Stats().Served)
		old := f.attach(a, redirect.Hello{Member: "old"})
		f.pass(second)

		f.list("B", "C")
		require.True(t, a.Delisted())
		for _, gw := range f.all() {
			require.Equal(t, 2, gw.Stats().Placeable, "%s gives A nobody", gw.ID())
		}
		report, err := handoff.Drain(t.Context(), a, handoff.Config{Keep: true}, handoff.Hooks{})
		require.NoError(t, err)
		require.Len(t, report.Moved, 4)
		require.Equal(t, []handoff.LeftBehind{{Member: "old", Cause: handoff.Immovable}}, report.Left)
		f.pass(second)
		require.Empty(t, gaps.all(), "make before break")
		require.Empty(t, old.Notices(), "nothing is closed")
		require.Equal(t, []int{1, 6, 6}, []int{a.Stats().Served, b.Stats().Served, c.Stats().Served})

		more := f.superviseAs("m", 6) // a third of them through A
		f.pass(second)
		require.Empty(t, more.all())
		require.Equal(t, []int{1, 9, 9}, []int{a.Stats().Served, b.Stats().Served, c.Stats().Served})

		f.list("A", "B", "C")
		require.False(t, a.Delisted())
		require.True(t, a.Stats().Draining, "until its program says otherwise")
		a.StopDrain()
		f.pass(second)
		f.superviseAs("n", 2)
		f.pass(second)
		require.Equal(t, []int{3, 9, 9}, []int{a.Stats().Served, b.Stats().Served, c.Stats().Served})
	})
}

// Listed again while it hands over: those who have moved stay moved, nobody else is asked to.
func TestS62ListedAgain(t *testing.T) {
	inFleet(t, func(t *testing.T, f *fleet) {
		a, b := f.start("A"), f.start("B")
		f.list("A", "B")
		gaps := f.supervise(20)
		f.list("B")
		again := errors.New("listed again")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(8*second, func() { a.Step(roster.Discovered{Gateways: []ring.GatewayID{"A", "B"}}); cancel(again) })
		report, err := handoff.Drain(ctx, a, handoff.Config{Keep: true}, handoff.Hooks{})
		require.ErrorIs(t, err, again)
		require.NotEmpty(t, report.Moved) // about half, for the order of what happens in one instant is open
		require.NotEmpty(t, report.Left)
		require.Equal(t, 10, len(report.Moved)+len(report.Closed)+len(report.Left))
		f.pass(60 * second)
		require.Empty(t, gaps.all())
		require.Equal(t, []int{len(report.Left), 20 - len(report.Left)}, []int{a.Stats().Served, b.Stats().Served})
		require.Equal(t, roster.ReasonServing, a.Ready().Supervisors.Reason)
	})
}
