// SPDX-License-Identifier: Apache-2.0

package herd_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

type noPeers struct{}

func (noPeers) Ask(context.Context, placement.Gateway, placement.Question) (placement.Answer, error) {
	return placement.Answer{}, errors.New("the test carries questions")
}

// place is a member's place at a target, as a model has it.
type place struct {
	attached bool
	until    time.Time // of the hold; zero: there is none
	kept     time.Time // it is expected by then; zero: nobody has asked
}

func (p place) seated() bool { return p.attached || !p.until.IsZero() }

// model is what is asked of a target, and what it must make of that.
type model struct {
	now       time.Time
	places    map[ring.MemberID]place
	elsewhere map[ring.MemberID]placement.Generation // shown at another gateway
}

// pass lets time pass: what was kept or held ends when it ends, and no sooner.
func (m *model) pass(d time.Duration) {
	m.now = m.now.Add(d)
	for id, p := range m.places {
		if !p.kept.After(m.now) {
			p.kept = time.Time{}
		}
		if !p.until.After(m.now) {
			p.until = time.Time{}
		}
		m.places[id] = p
		if p == (place{}) {
			delete(m.places, id)
		}
	}
}

// next returns when the next place ends, or zero.
func (m *model) next() (at time.Time) {
	for _, p := range m.places {
		for _, t := range []time.Time{p.until, p.kept} {
			if !t.IsZero() && (at.IsZero() || t.Before(at)) {
				at = t
			}
		}
	}
	return at
}

// load is what counts against a question for id: everybody else who has a place. If it has its own, those on hold come back
// like it, and only those count whom somebody has asked for.
func (m *model) load(id ring.MemberID) (n int) {
	for other, p := range m.places {
		if other != id && (!m.places[id].seated() || p.attached || !p.kept.IsZero()) {
			n++
		}
	}
	return n
}

// say takes a yes to the question.
func (m *model) say(q placement.Question) {
	p := m.places[q.Member]
	if p.attached || !p.seated() && m.elsewhere[q.Member] > q.Generation {
		return // it is here, or has found a place since it was asked for
	}
	p.kept = m.now.Add(redirect.DefaultReserve)
	if !p.until.IsZero() && p.until.Before(p.kept) {
		p.until = p.kept
	}
	m.places[q.Member] = p
}

func (m *model) count(in func(place) bool) (n int) {
	for _, p := range m.places {
		if in(p) {
			n++
		}
	}
	return n
}

// network is a target that is asked, gateways that ask it, and the supervisors between them.
type network struct {
	*testing.T
	model
	rnd     *rand.Rand
	seed    uint64
	target  *redirect.Admission
	others  []ring.GatewayID
	members []ring.MemberID
	hellos  map[ring.MemberID]placement.Generation // the newest
	flying  []placement.Question
	streams map[ring.MemberID]redirect.Key
	shown   uint64 // deltas of the first of the others
}

func newNetwork(t *testing.T, seed uint64) *network {
	t.Helper()
	n := &network{T: t, rnd: rand.New(rand.NewPCG(seed, 3)), seed: seed, hellos: make(map[ring.MemberID]placement.Generation), streams: make(map[ring.MemberID]redirect.Key)}
	n.model = model{now: time.Unix(1_000_000_000, 0), places: make(map[ring.MemberID]place), elsewhere: make(map[ring.MemberID]placement.Generation)}
	var err error
	n.target, err = redirect.NewAdmission(n.now, redirect.Config{Gateway: "target", Incarnation: 1, Endpoint: "target:1", Peers: noPeers{}})
	require.NoError(t, err)
	n.target.Serve(n.now)
	for i := range 3 + n.rnd.IntN(4) {
		n.others = append(n.others, ring.GatewayID(fmt.Sprint("other-", i)))
		n.target.Step(n.now, roster.Received{From: n.others[i], Message: roster.Snapshot{Origin: n.origin(n.others[i]), Pages: 1}})
	}
	for i := range 5 + n.rnd.IntN(20) {
		n.members = append(n.members, ring.MemberID(fmt.Sprint("m", i)))
	}
	require.Equal(t, len(n.others)+1, n.target.Stats(n.now).Placeable)
	return n
}

// origin is what one of the others says of itself.
func (n *network) origin(id ring.GatewayID) roster.Origin {
	o := roster.Origin{Gateway: id, Endpoint: string(id) + ":1", State: placement.Ready, Counts: placement.Counts{Incarnation: 1, Sequence: 1}}
	if id == n.others[0] {
		o.Sequence, o.Attached = 1+n.shown, len(n.elsewhere)
	}
	return o
}

// pass lets a random time pass, or just as much as it takes until a place is about to end, or ends.
func (n *network) pass() {
	d := time.Duration(n.rnd.Int64N(int64(redirect.DefaultReserve / 12)))
	if at := n.next(); !at.IsZero() && n.rnd.IntN(4) == 0 {
		d = at.Sub(n.now) - time.Duration(n.rnd.IntN(2))
	}
	n.model.pass(d)
	for _, id := range n.others { // none of them is ever silent
		n.target.Step(n.now, roster.Heard{Gateway: id})
	}
}

// hello raises the member's generation: it dials somebody.
func (n *network) hello(id ring.MemberID) placement.Generation {
	n.hellos[id]++
	return n.hellos[id]
}

// ask lets the question arrive, and returns the answer.
func (n *network) ask(q placement.Question) placement.Answer {
	load := n.load(q.Member)
	answer := n.target.Asked(n.now, q)
	require.Equal(n, q.Insist || load < q.Limit, answer.Yes, "seed %d: %d others count against a limit of %d, insist %v", n.seed, load, q.Limit, q.Insist)
	if answer.Yes {
		n.say(q)
	}
	return answer
}

// arrive lets the member come, as one who was sent.
func (n *network) arrive(id ring.MemberID) {
	generation := n.hello(id)
	p := n.target.Hello(n.now, redirect.Hello{Member: id, Generation: generation, Stay: true, Hops: 1, CanRedirect: true})
	require.True(n, p.Done)
	if p.Verdict.Outcome == redirect.Accept { // otherwise two processes are taken to share its ID
		n.places[id] = place{attached: true}
		n.streams[id] = p.Key
	}
}

// leave ends a stream.
func (n *network) leave(id ring.MemberID, clean bool) {
	n.target.Leave(n.now, n.streams[id], clean)
	delete(n.streams, id)
	p := n.places[id]
	switch {
	case !p.attached: // it was shown elsewhere before
	case clean:
		delete(n.places, id)
	default:
		n.places[id] = place{until: n.now.Add(redirect.DefaultHold)}
	}
}

// show lets the first of the others say that it serves the member.
func (n *network) show(id ring.MemberID) {
	generation := n.hello(id)
	n.elsewhere[id] = generation
	n.shown++
	o := n.origin(n.others[0])
	n.target.Step(n.now, roster.Received{From: n.others[0], Message: roster.Delta{
		Origin: o, From: o.Sequence - 1, Changes: []roster.Change{{Member: id, Generation: generation, Op: roster.OpAttached}},
	}})
	delete(n.places, id)
}

// agree holds the target's own figures against the model.
func (n *network) agree() {
	s := n.target.Stats(n.now)
	require.Equal(n, n.count(func(p place) bool { return p.attached }), s.Served, "seed %d: attached", n.seed)
	require.Equal(n, n.count(func(p place) bool { return !p.until.IsZero() }), s.Held, "seed %d: on hold", n.seed)
	require.Equal(n, n.count(func(p place) bool { return !p.seated() }), s.Reserved, "seed %d: kept", n.seed)
}

// Several gateways ask one target. Questions wait in the network for any time, even longer than a
// place is kept; they overtake each other and come once, twice or never, and their supervisors come
// in time, too late, elsewhere or not at all. Whatever the order: the target says yes exactly if its load is
// below the limit that the question names, so that no plain yes leaves it above that. A place counts from the yes for as
// long as it is kept, to the nanosecond; and a no that names another limit means it.
func TestNoYesAboveTheLimit(t *testing.T) {
	happened := map[string]int{"yes": 0, "no": 0, "insisted above the limit": 0, "named another limit": 0, "asked twice": 0, "came too late": 0, "shown elsewhere": 0, "asked for who is elsewhere": 0, "asked for who is on hold": 0}
	for seed := range uint64(seeds(t, 150)) {
		n := newNetwork(t, seed)
		limit := 1 + n.rnd.IntN(8)
		for range 200 {
			n.pass()
			id := n.members[n.rnd.IntN(len(n.members))]
			switch n.rnd.IntN(8) {
			case 0, 1: // a question sets out
				n.flying = append(n.flying, placement.Question{
					From: n.others[n.rnd.IntN(len(n.others))], Member: id, Generation: n.hello(id), Limit: 1 + n.rnd.IntN(limit), Insist: n.rnd.IntN(20) == 0,
				})
			case 2, 3, 4: // one arrives, and perhaps once more later
				if len(n.flying) == 0 {
					continue
				}
				i := n.rnd.IntN(len(n.flying))
				q := n.flying[i]
				if n.rnd.IntN(4) > 0 {
					n.flying = slices.Delete(n.flying, i, i+1)
				}
				p := n.places[q.Member]
				switch answer := n.ask(q); {
				case !answer.Yes:
					happened["no"]++
					if answer.Limit > 0 {
						happened["named another limit"]++
						require.Greater(t, answer.Limit, n.load(q.Member), "seed %d", seed)
						q.Limit = answer.Limit
						require.True(t, n.ask(q).Yes, "seed %d: it has named the limit itself", seed)
					}
				case q.Insist && n.load(q.Member) >= q.Limit:
					happened["insisted above the limit"]++
				default:
					happened["yes"]++
				}
				switch {
				case !p.until.IsZero():
					happened["asked for who is on hold"]++
				case !p.kept.IsZero():
					happened["asked twice"]++
				case !p.attached && n.elsewhere[q.Member] > q.Generation:
					happened["asked for who is elsewhere"]++
				}
			case 5: // one comes
				if _, ok := n.places[id]; !ok && n.hellos[id] > 0 {
					happened["came too late"]++
				}
				n.arrive(id)
			case 6: // or another gateway shows it, or a question is lost
				if n.rnd.IntN(3) == 0 {
					happened["shown elsewhere"]++
					n.show(id)
				} else if len(n.flying) > 0 {
					n.flying = n.flying[1:]
				}
			case 7:
				if attached := slices.Sorted(maps.Keys(n.streams)); len(attached) > 0 {
					n.leave(attached[n.rnd.IntN(len(attached))], n.rnd.IntN(3) > 0)
				}
			}
			n.agree()
			n.target.Take()
		}
	}
	for what, times := range happened {
		require.Positive(t, times, "%q never happened: the test tests little", what)
	}
	t.Log(happened)
}
