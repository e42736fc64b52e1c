// SPDX-License-Identifier: Apache-2.0

package redirect_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/internal/sim"
	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/supervisor"
	"github.com/evenring/evenring/ring"
)

// key returns a key that is different for each n.
func key(n byte) []byte { return bytes.Repeat([]byte{n}, 32) }

// newProving makes gateway id, which knows gateways B, C, ... with these loads, and proves stays.
func newProving(t *testing.T, id ring.GatewayID, proofs redirect.Proofs, asks bool, loads ...int) *pair {
	t.Helper()
	cfg := redirect.Config{Gateway: id, Incarnation: 20, Endpoint: "peer-" + string(id), Proofs: proofs}
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

func showing(proof []byte) func(*redirect.Hello) {
	return func(h *redirect.Hello) { h.Stay, h.Hops, h.Proof = true, 1, proof }
}

// S34: the client sets the flag.
func TestS34StayNeedsProof(t *testing.T) {
	proofs := redirect.Proofs{Keys: [][]byte{key(1)}, Required: true}
	sent := func(t *testing.T, m ring.MemberID) []byte { // B's word, from A
		a := newProving(t, "A", proofs, false, 0).hello(m)
		require.Equal(t, redirect.Redirect, a.Verdict.Outcome, "%+v", a.Verdict)
		require.Equal(t, ring.GatewayID("B"), a.Verdict.Gateway)
		return a.Verdict.Proof
	}
	// atB is a gateway B that has more than its share.
	atB := func(t *testing.T, proofs redirect.Proofs) *pair {
		b := newProving(t, "B", proofs, false)
		for i := range 5 {
			require.Equal(t, redirect.Accept, b.hello(ring.MemberID(fmt.Sprint("s", i))).Verdict.Outcome)
		}
		b.peer("A", placement.Ready, 1, 0)
		b.Take()
		return b
	}
	m := ring.MemberID("m")
	for i := 0; ; i++ { // one that A sends to B
		m = ring.MemberID(fmt.Sprint("m", i))
		if v := newProving(t, "A", proofs, false, 0).hello(m).Verdict; v.Outcome == redirect.Redirect {
			break
		}
	}
	t.Run("none", func(t *testing.T) {
		v := atB(t, proofs).hello(m, stay).Verdict
		require.Equal(t, redirect.Redirect, v.Outcome, "placed as a newcomer: %+v", v)
		require.Equal(t, ring.GatewayID("A"), v.Gateway)
		require.NotEmpty(t, v.Proof)
	})
	t.Run("none, within the cap", func(t *testing.T) {
		b := newProving(t, "B", proofs, false)
		v := b.hello(m, stay).Verdict
		require.Equal(t, redirect.Accept, v.Outcome)
		require.Equal(t, redirect.ReasonPlaced, v.Reason, "not for its asking")
	})
	t.Run("valid", func(t *testing.T) {
		b := atB(t, proofs)
		v := b.hello(m, showing(sent(t, m)), func(h *redirect.Hello) { h.Hops = 2 }).Verdict
		require.Equal(t, redirect.Accept, v.Outcome, "above the cap, too: %+v", v)
		require.Equal(t, redirect.ReasonStay, v.Reason)
		require.EqualValues(t, 1, b.stats().OverCap[redirect.ReasonStay])
	})
	t.Run("of another member", func(t *testing.T) {
		b := atB(t, proofs)
		a := b.hello("n", showing(sent(t, m)))
		require.Equal(t, redirect.Refuse, a.Verdict.Outcome)
		require.Equal(t, redirect.ReasonBadProof, a.Verdict.Reason)
		require.Positive(t, a.Verdict.RetryAfter)
		require.Empty(t, a.Verdict.Proof)
		require.Zero(t, a.Key)
		require.EqualValues(t, 1, b.stats().Verdicts[redirect.Refuse][redirect.ReasonBadProof])
	})
	t.Run("forged, and none required", func(t *testing.T) {
		v := atB(t, redirect.Proofs{Keys: proofs.Keys}).hello("n", showing(sent(t, m))).Verdict
		require.Equal(t, redirect.ReasonBadProof, v.Reason)
	})
	t.Run("forged, and not staying", func(t *testing.T) {
		v := atB(t, proofs).hello("n", showing(sent(t, m)), func(h *redirect.Hello) { h.Stay = false }).Verdict
		require.Equal(t, redirect.ReasonBadProof, v.Reason)
	})
	t.Run("forged, by a client that cannot follow", func(t *testing.T) {
		v := atB(t, proofs).hello("n", showing(sent(t, m)), func(h *redirect.Hello) { h.CanRedirect = false }).Verdict
		require.Equal(t, redirect.ReasonBadProof, v.Reason)
	})
	t.Run("draining comes first", func(t *testing.T) {
		b := atB(t, proofs)
		_, err := b.StartDrain(b.now)
		require.NoError(t, err)
		v := b.hello("n", showing(sent(t, m))).Verdict
		require.Equal(t, redirect.ReasonDraining, v.Reason)
		require.Equal(t, redirect.Redirect, v.Outcome)
	})
	t.Run("no keys: nothing is looked at", func(t *testing.T) {
		v := atB(t, redirect.Proofs{}).hello("n", showing(sent(t, m)), func(h *redirect.Hello) { h.Hops = 0 }).Verdict
		require.Equal(t, redirect.ReasonStay, v.Reason)
		require.Empty(t, v.Proof)
	})
	t.Run("none required", func(t *testing.T) {
		v := atB(t, redirect.Proofs{Keys: proofs.Keys}).hello(m, stay).Verdict
		require.Equal(t, redirect.ReasonStay, v.Reason)
		require.NotEmpty(t, v.Proof)
	})
	t.Run("run out", func(t *testing.T) {
		b, proof := atB(t, proofs), sent(t, m)
		b.now = b.now.Add(51 * time.Second)
		b.peer("A", placement.Ready, 2, 0)
		v := b.hello(m, showing(proof)).Verdict
		require.Equal(t, redirect.Redirect, v.Outcome)
	})
	t.Run("a target that could not be reached", func(t *testing.T) {
		c := newProving(t, "C", proofs, false)
		for i := range 5 {
			c.hello(ring.MemberID(fmt.Sprint("s", i)))
		}
		c.peer("A", placement.Ready, 1, 0)
		proof := sent(t, m)
		v := c.hello(m, showing(proof), func(h *redirect.Hello) { h.Hops = 0 }).Verdict
		require.Equal(t, redirect.Redirect, v.Outcome, "it does not say so")
		v = c.hello(m, showing(proof), func(h *redirect.Hello) { h.Hops, h.Avoid = 0, []ring.GatewayID{"B"} }).Verdict
		require.Equal(t, redirect.Accept, v.Outcome)
		require.Equal(t, redirect.ReasonStay, v.Reason)
	})
	t.Run("none, and a place is kept for it", func(t *testing.T) {
		b := newProving(t, "B", proofs, true)
		for i := range 5 {
			b.hello(ring.MemberID(fmt.Sprint("s", i)))
		}
		b.peer("A", placement.Ready, 1, 0)
		require.True(t, b.Asked(b.now, placement.Question{From: "A", Member: m, Insist: true}).Yes)
		v := b.hello(m, stay).Verdict
		require.Equal(t, redirect.Accept, v.Outcome, "the peer link has proved it: %+v", v)
		require.Equal(t, redirect.ReasonStay, v.Reason)
		require.NotEqual(t, redirect.ReasonStay, b.hello("n", stay).Verdict.Reason)
	})
	t.Run("none, at home", func(t *testing.T) {
		b := atB(t, proofs)
		v := b.hello("s0", stay).Verdict
		require.Equal(t, redirect.ReasonStay, v.Reason, "its seat is here: %+v", v)
	})
	t.Run("an old client", func(t *testing.T) {
		b := atB(t, proofs)
		v := b.hello(m, func(h *redirect.Hello) { h.CanRedirect = false }).Verdict
		require.Equal(t, redirect.Accept, v.Outcome)
		require.EqualValues(t, 1, b.stats().Verdicts[redirect.Accept][redirect.ReasonNoRedirect])
		require.EqualValues(t, 1, b.stats().OverCap[redirect.ReasonNoRedirect])
	})
	t.Run("a session", func(t *testing.T) {
		v := atB(t, proofs).hello(m, func(h *redirect.Hello) { h.Session, h.Stay, h.Proof = "x", true, []byte{1, 2} }).Verdict
		require.Equal(t, redirect.Accept, v.Outcome)
		require.Equal(t, redirect.ReasonSession, v.Reason)
		require.Empty(t, v.Proof)
	})
}

// A home takes back whom it has had: at once, after a restart of its own, and,
// while the place is still kept, however long ago the proof was made.
func TestHomeProof(t *testing.T) {
	proofs := redirect.Proofs{Keys: [][]byte{key(1)}, Required: true, Home: time.Minute, Skew: time.Second}
	full := func(a *pair) { // everybody else has room
		a.peer("B", placement.Ready, uint64(a.gen), 0)
		a.peer("C", placement.Ready, uint64(a.gen), 0)
	}
	back := func(a *pair, proof []byte) redirect.Verdict {
		full(a)
		return a.hello("m", stay, func(h *redirect.Hello) { h.Proof = proof }).Verdict
	}
	a := newProving(t, "A", proofs, false)
	for i := range 9 {
		a.hello(ring.MemberID(fmt.Sprint("s", i)))
	}
	p := a.hello("m")
	proof := p.Verdict.Proof
	a.Leave(a.now, p.Key, false)
	require.Equal(t, redirect.ReasonStay, back(a, proof).Reason)

	restarted := newProving(t, "A", proofs, false)
	require.Equal(t, redirect.ReasonStay, back(restarted, proof).Reason)

	elsewhere := newProving(t, "D", proofs, false)
	for i := range 9 {
		elsewhere.hello(ring.MemberID(fmt.Sprint("s", i)))
	}
	require.Equal(t, redirect.Redirect, back(elsewhere, proof).Outcome)

	a.now = a.now.Add(time.Hour)
	require.Equal(t, redirect.ReasonStay, back(a, proof).Reason, "it never left")
	p = a.hello("n")
	a.Leave(a.now, p.Key, true)
	full(a)
	a.now = a.now.Add(2 * time.Minute)
	full(a)
	require.Equal(t, redirect.Redirect, a.hello("n", stay, func(h *redirect.Hello) { h.Proof = p.Verdict.Proof }).Verdict.Outcome,
		"it left, and its proof has run out")
}

// A client cannot be passed on once more by saying that it has not been so yet.
func TestHopsOfAProofAreBelieved(t *testing.T) {
	proofs := redirect.Proofs{Keys: [][]byte{key(1)}}
	member := func(to ring.GatewayID, on *pair) (ring.MemberID, redirect.Verdict) {
		for i := range 100 {
			m := ring.MemberID(fmt.Sprint("m", i))
			if v := on.hello(m).Verdict; v.Outcome == redirect.Redirect && v.Gateway == to {
				return m, v
			}
		}
		t.Fatalf("nobody is sent to %s", to)
		return "", redirect.Verdict{}
	}
	m, first := member("B", newProving(t, "A", proofs, false, 0))
	crowded := func(id ring.GatewayID) *pair {
		g := newProving(t, id, proofs, false)
		for i := range 5 {
			g.hello(ring.MemberID(fmt.Sprint("s", i)))
		}
		g.peer("C", placement.Ready, 1, 0)
		return g
	}
	second := crowded("B").hello(m, showing(first.Proof), func(h *redirect.Hello) { h.Hops = 0 }).Verdict
	require.Equal(t, redirect.Redirect, second.Outcome, "one hop, whatever it says: %+v", second)
	require.Equal(t, redirect.ReasonPassedOn, second.Reason)

	c := newProving(t, "C", proofs, false)
	for i := range 5 {
		c.hello(ring.MemberID(fmt.Sprint("s", i)))
	}
	c.peer("B", placement.Ready, 1, 0)
	for _, claimed := range []int{0, 1, 2} {
		v := c.hello(m, showing(second.Proof), func(h *redirect.Hello) { h.Hops = claimed }).Verdict
		require.Equal(t, redirect.Accept, v.Outcome, "two hops, whatever it says (%d): %+v", claimed, v)
	}
}

// Redirects carry no secrets of another member: what one is told holds for
// nobody else, and names nobody else.
func TestRedirectsCarryNoSecrets(t *testing.T) {
	proofs := redirect.Proofs{Keys: [][]byte{key(1), key(2)}, Required: true}
	a := newProving(t, "A", proofs, false, 3, 3)
	words := map[ring.MemberID][]string{} // all that a member was told, as text
	shown := map[ring.MemberID][][]byte{}
	keys := map[redirect.Key]ring.MemberID{}
	hear := func(m ring.MemberID, proof []byte, word any) {
		words[m] = append(words[m], fmt.Sprintf("%+v", word), string(proof))
		shown[m] = append(shown[m], proof)
	}
	for i := range 30 {
		m := ring.MemberID(fmt.Sprintf("member-%02d", i))
		p := a.hello(m)
		hear(m, p.Verdict.Proof, p.Verdict)
		keys[p.Key] = m
	}
	_, err := a.StartDrain(a.now)
	require.NoError(t, err)
	for _, s := range a.Supervisors() {
		_, err := a.MoveAway(a.now, s.Member)
		require.NoError(t, err)
	}
	moves := 0
	for k, n := range a.told() {
		hear(keys[k], n.Proof, n)
		moves++
	}
	require.Positive(t, moves)

	judges := []*pair{newProving(t, "A", proofs, false), newProving(t, "B", proofs, false), newProving(t, "C", proofs, false)}
	for m := range words {
		for _, text := range words[m] {
			require.NotContains(t, text, string(key(1)))
			require.NotContains(t, text, string(key(2)))
			for other := range words {
				require.False(t, other != m && strings.Contains(text, string(other)), "%s is told of %s", m, other)
			}
		}
		for _, proof := range shown[m] {
			require.NotEmpty(t, proof)
			for _, judge := range judges {
				v := judge.hello("thief", showing(proof)).Verdict
				require.Equal(t, redirect.ReasonBadProof, v.Reason)
			}
		}
	}
}

// provingFleet is a world of gateways that require proofs, under the keys that
// it holds when a gateway starts. Refused counts what was refused for its proof.
type provingFleet struct {
	*sim.World
	keys    [][]byte
	refused int
	stayed  int
}

func newProvingFleet(cfg sim.Config) *provingFleet {
	f := &provingFleet{keys: [][]byte{key(1)}}
	inner := cfg.Gateway
	cfg.Gateway = func(c *redirect.Config) {
		c.Proofs = redirect.Proofs{Keys: f.keys, Required: true, Home: 5 * time.Minute}
		if inner != nil {
			inner(c)
		}
	}
	f.World = sim.New(cfg)
	f.Trace = func(_ time.Duration, _, what string) {
		if strings.Contains(what, redirect.ReasonBadProof.String()) {
			f.refused++
		}
		if strings.Contains(what, "("+redirect.ReasonStay.String()+")") {
			f.stayed++
		}
	}
	return f
}

func (f *provingFleet) start(gateways, supervisors int) {
	for i := range gateways {
		f.StartGateway(ring.GatewayID(fmt.Sprint("gw-", i)))
	}
	f.Run(time.Second)
	for i := range supervisors {
		f.StartSupervisor(ring.MemberID(fmt.Sprint("s", i)))
	}
}

// settle waits until everybody has a stream, and checks what each placement took.
func (f *provingFleet) settle(t *testing.T, seed uint64) {
	t.Helper()
	require.True(t, f.Until(2*time.Minute, f.Settled), "seed %d: not settled", seed)
	require.Zero(t, f.refused, "seed %d", seed)
}

func (f *provingFleet) dials(t *testing.T, seed uint64, most int) {
	t.Helper()
	for m, s := range f.Supervisors {
		require.LessOrEqual(t, s.Dials, most, "seed %d: %s", seed, m)
		s.Dials = 0
	}
}

// With proofs required, a fleet that behaves ends as it would without, and nobody
// needs more than the four dials of a placement, with and without a peer link.
func TestFleetWithProofs(t *testing.T) {
	for seed := range seeds(t, 40) {
		rnd := rand.New(rand.NewPCG(seed, 34))
		n := 2 + rnd.IntN(3)
		f := newProvingFleet(sim.Config{Seed: seed, NoAsks: seed%2 == 1})
		f.start(n, n*(1+rnd.IntN(8))+rnd.IntN(n))
		f.settle(t, seed)
		f.dials(t, seed, 4)
		require.Positive(t, f.stayed, "seed %d", seed)
		trusting := burst(t, sim.Config{Seed: seed, NoAsks: seed%2 == 1}, false, n, len(f.Supervisors))
		require.Equal(t, trusting.Served(), f.Served(), "seed %d: it is as it would be without proofs", seed)

		// A gateway restarts where it was, fast enough: everybody comes back to it.
		f.Run(time.Second)
		victim := f.Gateways[f.GatewayIDs()[rnd.IntN(n)]]
		before := f.Served()[victim.ID]
		victim.Kill()
		f.StartGateway(victim.ID)
		f.settle(t, seed)
		require.Equal(t, before, f.Served()[victim.ID], "seed %d", seed)
		f.dials(t, seed, 1)

		// One dies for good; another drains.
		f.StartGateway("late")
		f.Run(time.Second)
		f.Gateways[f.GatewayIDs()[rnd.IntN(n)]].Kill()
		f.Run(time.Millisecond)
		f.settle(t, seed)
		f.dials(t, seed, 6) // home twice, then a placement
	}
}

// Whoever cannot dial gateways directly, and whoever may not, is served where
// the Service takes it, within the four dials: nobody gets stuck for want of a proof.
func TestUnreachableTargetsWithProofs(t *testing.T) {
	for name, change := range map[string]sim.Config{
		"S31: nobody answers there": {Gateway: func(c *redirect.Config) { c.Endpoint = "beyond-" + c.Endpoint }},
		"S32: it is no peer": {Supervisor: func(c *supervisor.Config) {
			c.Allow = func(ring.GatewayID, string) error { return errors.New("no peer") }
		}},
		"it follows one redirect, they give two": {Supervisor: func(c *supervisor.Config) { c.MaxHops = 1 }},
	} {
		for _, noAsks := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, no asks: %v", name, noAsks), func(t *testing.T) {
				for seed := range seeds(t, 10) {
					cfg := change
					cfg.Seed, cfg.NoAsks = seed, noAsks
					f := newProvingFleet(cfg)
					f.start(4, 30)
					f.settle(t, seed)
					f.dials(t, seed, 4)
				}
			})
		}
	}
}

// Keys are changed one gateway at a time, in three steps, and nobody is refused.
func TestKeyRotation(t *testing.T) {
	rotate := func(seed uint64, steps [][][]byte) *provingFleet {
		f := newProvingFleet(sim.Config{Seed: seed, NoAsks: seed%2 == 1})
		f.start(3, 20)
		for _, keys := range steps {
			f.keys = keys
			for _, id := range f.GatewayIDs() {
				f.Run(5 * time.Second)
				f.Gateways[id].Kill() // everybody comes back to it with the proof that it had
				f.StartGateway(id)
				f.Run(30 * time.Second)
				f.StartSupervisor(ring.MemberID(fmt.Sprint("new-", f.Now().Unix()))) // and some are new
			}
			f.Run(6 * time.Minute) // Home and Skew
		}
		return f
	}
	for seed := range seeds(t, 6) {
		f := rotate(seed, [][][]byte{{key(1), key(2)}, {key(2), key(1)}, {key(2)}})
		f.settle(t, seed)
		require.Len(t, f.Supervisors, 29)
		require.Positive(t, f.stayed)
	}
	f := rotate(1, [][][]byte{{key(2)}})
	require.Positive(t, f.refused, "in one step it cannot be done")
	require.True(t, f.Until(time.Minute, f.Settled), "nor does it lose anybody")
}
