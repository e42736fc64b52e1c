// SPDX-License-Identifier: Apache-2.0

package roster

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/ring"
)

// copyOf returns one roster's copy of one gateway's record.
func copyOf(t *testing.T, r *Roster, id ring.GatewayID) Copy {
	t.Helper()
	for c := range r.Copies() {
		if c.Gateway == id {
			return c
		}
	}
	require.FailNow(t, "no copy", "of %s", id)
	return Copy{}
}

func TestDigestsAgreeOnceTheMessagesHaveArrived(t *testing.T) {
	f := newFleet(t, "a", "b", "c")
	f.settle()
	none, _ := f.nodes["a"].Digest()
	require.Zero(t, none, "nobody is served")

	f.now = at(time.Minute)
	f.step("a", Attached{"m", 5})
	f.step("b", Held{"n", 6})
	digest, since := f.nodes["a"].Digest()
	require.NotEqual(t, none, digest)
	require.Equal(t, f.now, since)
	other, _ := f.nodes["b"].Digest()
	require.NotEqual(t, digest, other)

	f.settle()
	digest, _ = f.nodes["a"].Digest()
	for id, r := range f.nodes {
		d, since := r.Digest()
		require.Equal(t, digest, d, id)
		require.False(t, since.Before(at(time.Minute)), id)
		copies := slices.Collect(r.Copies())
		require.Equal(t, []ring.GatewayID{"a", "b", "c"}, []ring.GatewayID{copies[0].Gateway, copies[1].Gateway, copies[2].Gateway})
		for _, c := range copies {
			own := copyOf(t, f.nodes[c.Gateway], c.Gateway)
			c.ChangedAt, own.ChangedAt = time.Time{}, time.Time{}
			require.Equal(t, own, c, "%s's copy", id)
		}
		require.Equal(t, 1, copies[0].Attached)
		require.Equal(t, 1, copies[1].Held)
		require.Zero(t, copies[2].ChangedAt)
	}
}

// Counts, heartbeats and reservations are no change of who serves whom.
func TestDigestKeepsItsTimeWhileNoMemberChanges(t *testing.T) {
	f := newFleet(t, "a", "b")
	f.step("a", Attached{"m", 5})
	f.settle()
	digest, since := f.nodes["b"].Digest()

	f.now = f.now.Add(time.Hour)
	f.step("a", Attached{"m", 5})
	f.step("a", Reserved{Count: 3})
	f.settle()
	again, still := f.nodes["b"].Digest()
	require.Equal(t, digest, again)
	require.Equal(t, since, still)
	require.Equal(t, since, copyOf(t, f.nodes["b"], "a").ChangedAt)
}

func TestDigestTellsWhatDiffers(t *testing.T) {
	digest := func(play func(f *fleet)) uint64 {
		f := newFleet(t, "a", "b")
		play(f)
		f.settle()
		d, _ := f.nodes["b"].Digest()
		return d
	}
	base := digest(func(f *fleet) { f.step("a", Attached{"m", 5}) })
	for name, play := range map[string]func(f *fleet){
		"another member":     func(f *fleet) { f.step("a", Attached{"n", 5}) },
		"another generation": func(f *fleet) { f.step("a", Attached{"m", 6}) },
		"held":               func(f *fleet) { f.step("a", Held{"m", 5}) },
		"another gateway":    func(f *fleet) { f.step("b", Attached{"m", 5}) },
		"one more":           func(f *fleet) { f.step("a", Attached{"m", 5}); f.step("a", Attached{"n", 5}) },
		"another start":      func(f *fleet) { f.start("a", 2); f.step("a", Attached{"m", 5}) },
	} {
		require.NotEqual(t, base, digest(play), name)
	}
	require.Equal(t, base, digest(func(f *fleet) {
		f.step("a", Attached{"n", 5})
		f.step("a", Attached{"m", 5})
		f.step("a", Left{"n", 5})
	}), "how it came about does not matter")
}

// A gateway that starts anew, or is purged, takes its members along.
func TestDigestNoticesARecordThatGoes(t *testing.T) {
	f := newFleet(t, "a", "b")
	f.step("a", Attached{"m", 5})
	f.settle()
	f.now = f.now.Add(time.Second)
	left := f.now
	f.step("b", Departed{Gateway: "a", Incarnation: 1})
	digest, since := f.nodes["b"].Digest()
	require.Zero(t, digest)
	require.Equal(t, left, since)
}

func TestCopySaysHowFarBehindItIs(t *testing.T) {
	f := newFleet(t, "a", "b")
	f.settle()
	f.cut = func(from, _ ring.GatewayID) bool { return from == "a" }
	f.step("a", Attached{"m", 5})
	f.settle()
	f.cut = nil
	require.Equal(t, uint64(1), copyOf(t, f.nodes["a"], "a").Sequence)
	f.nodes["b"].Step(f.now, Received{Message: f.nodes["a"].beat()})
	c := copyOf(t, f.nodes["b"], "a")
	require.Equal(t, uint64(0), c.Sequence)
	require.Equal(t, uint64(1), c.Told)
}
