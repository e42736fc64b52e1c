// SPDX-License-Identifier: Apache-2.0

package roster

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// ask makes r answer a request, and returns what it says at once.
func ask(r *Roster, now time.Time, from ring.GatewayID, have uint64) []Action {
	return r.Step(now, Received{From: from, Message: SnapshotRequest{
		From: from, Gateway: r.self.id, Incarnation: r.self.incarnation, Have: have,
	}})
}

// given returns the pages among actions, by who gets them.
func given(actions []Action) map[ring.GatewayID][]Snapshot {
	got := make(map[ring.GatewayID][]Snapshot)
	for _, a := range actions {
		if send, ok := a.(Send); ok {
			if page, ok := send.Message.(Snapshot); ok {
				got[send.To] = append(got[send.To], page)
			}
		}
	}
	return got
}

// onPages returns the members on all pages, each of which is there once.
func onPages(t *testing.T, pages []Snapshot) map[ring.MemberID]Entry {
	t.Helper()
	got, digest, entries := make(map[ring.MemberID]Entry), uint64(0), 0
	for i, page := range pages {
		require.Equal(t, i, page.Page)
		require.Equal(t, len(pages), page.Pages)
		require.Equal(t, pages[0].Origin, page.Origin)
		for _, e := range page.Entries {
			got[e.Member] = e
			entries++
			digest += fingerprint(e.Member.Hash(), e.Generation, e.Held)
		}
	}
	require.Len(t, got, entries)
	require.Equal(t, pages[0].Digest, digest)
	return got
}

func (c *cut) members() (n int) {
	for _, page := range c.pages {
		n += len(page)
	}
	return n
}

// However large the record is, a step puts no more than a slice of it on
// pages, and one more member if that one changes.
func TestS63CutInSlices(t *testing.T) {
	const members = 100_000
	r := newFleet(t, "a").nodes["a"]
	for i := range members {
		r.Step(epoch, Attached{ring.MemberID(fmt.Sprintf("supervisor-%d", i)), 1})
	}
	r.Step(epoch, Tick{})
	now, before, steps := epoch, 0, 0
	actions := ask(r, now, "b", 0)
	for ; len(given(actions)) == 0; steps++ {
		grown := r.cut.members() - before
		require.LessOrEqual(t, grown, sliceMembers)
		before += grown

		// A supervisor that attaches in between waits for nothing.
		require.Empty(t, given(r.Step(now, Attached{ring.MemberID(fmt.Sprintf("supervisor-%d", members-1-steps)), 2})))
		require.Equal(t, before+1, r.cut.members())
		before++

		due, ok := r.Deadline()
		require.True(t, ok)
		require.Equal(t, now.Add(slicePause), due)
		now = due
		actions = r.Step(now, Tick{})
	}
	require.Equal(t, (members-steps)/sliceMembers, steps)
	pages := given(actions)["b"]
	require.Equal(t, uint64(members), pages[0].Sequence)
	got := onPages(t, pages)
	require.Len(t, got, members)
	for _, e := range got {
		require.Equal(t, placement.Generation(1), e.Generation, "as it was when the cut began")
	}
	require.Nil(t, r.cut.pages, "they are old")
}

// Whatever changes while the record is cut, whoever asks gets the record as it
// was at one number, which is no lower than his; and with what is told besides, copies
// come to the record as it is.
func TestCutWhileChanging(t *testing.T) {
	t.Parallel()
	eachSeed(t, 2000, func(t *testing.T, seed uint64) {
		c := newChaos(t, seed, 2)
		c.loss, c.twice = 0, 0
		c.slice = 1 + c.rng.IntN(4)
		a := c.nodes["gw-0"]
		a.slice = c.slice
		own := c.truth["gw-0"].members
		history := map[uint64]map[ring.MemberID]Entry{0: {}}
		asked := make(map[ring.GatewayID]uint64)
		look := func(actions []Action) {
			for id, pages := range given(actions) {
				have, waits := asked[id]
				if id == "gw-1" {
					continue
				}
				require.True(t, waits, "%s has not asked", id)
				require.GreaterOrEqual(t, pages[0].Sequence, have)
				delete(asked, id)
				if want, got := history[pages[0].Sequence], onPages(t, pages); !maps.Equal(want, got) {
					require.Equal(t, want, got, "at %d", pages[0].Sequence)
				}
			}
		}
		change := func() {
			m := c.names[c.rng.IntN(len(c.names))]
			e, served := own[m]
			var ev Event
			switch what := c.rng.IntN(6); {
			case what == 0 && served:
				delete(own, m)
				ev = Left{m, e.Generation}
			case what == 1 && served:
				own[m] = Entry{m, e.Generation, true}
				ev = Held{m, e.Generation}
			case what == 2 && served && !e.Held:
				ev = Attached{m, e.Generation} // as before
			case what == 3:
				c.truth["gw-0"].reserved++
				ev = Reserved{c.truth["gw-0"].reserved}
			default:
				c.generation++
				own[m] = Entry{Member: m, Generation: c.generation}
				ev = Attached{m, c.generation}
			}
			actions := c.do("gw-0", ev)
			history[a.self.have] = maps.Clone(own)
			look(actions)
		}
		for range c.rng.IntN(60) {
			change()
		}
		for range 100 {
			switch c.rng.IntN(4) {
			case 0:
				id := []ring.GatewayID{"x", "y", "z"}[c.rng.IntN(3)]
				if _, again := asked[id]; !again {
					asked[id] = uint64(c.rng.IntN(2)) * a.self.have
				}
				look(ask(a, c.now, id, asked[id]))
			case 1:
				if due, _ := a.Deadline(); due.After(c.now) {
					c.now = due
				}
				look(c.step("gw-0", Tick{}))
			default:
				change()
			}
		}
		c.actions["gw-0"] = nil
		c.flow()
		look(c.actions["gw-0"])
		require.Empty(t, asked, "everybody is answered")
		c.agree("once the changes have ended")
		audit(t, a)
	})
}

// Who has been superseded gives its record to nobody any more.
func TestCutSuperseded(t *testing.T) {
	f := newFleet(t, "a")
	a := f.nodes["a"]
	a.slice = 1
	for _, m := range []ring.MemberID{"s", "t", "u"} {
		f.step("a", Attached{m, 1})
	}
	require.Empty(t, given(ask(a, f.now, "b", 0)))
	f.step("a", Received{Message: Heartbeat{Origin: Origin{Gateway: "a", Counts: placement.Counts{Incarnation: 2}}}})
	f.step("a", Left{"t", 1})
	f.run(time.Minute)
	require.Empty(t, given(ask(a, f.now, "b", 0)))
	require.Empty(t, given(f.actions["a"]))
	require.Zero(t, a.Stats().SnapshotsSent)
	require.Nil(t, a.cut.pages)
	audit(t, a)
}
