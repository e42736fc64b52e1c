// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// nextDial plays one event and returns the dial that it leads to.
func nextDial(t *testing.T, m *Machine, now time.Time, e Event) Dial {
	t.Helper()
	for _, action := range m.Step(now, e) {
		if d, ok := action.(Dial); ok {
			return d
		}
	}
	require.FailNow(t, "nothing is dialled")
	return Dial{}
}

func started(t *testing.T, change func(*Config)) *Machine {
	t.Helper()
	cfg := Config{Member: "s", Service: serviceAddr}
	if change != nil {
		change(&cfg)
	}
	m, err := New(cfg)
	require.NoError(t, err)
	require.Empty(t, nextDial(t, m, epoch, Start{}).Hello.Proof)
	return m
}

func sentTo(m *Machine, g ring.GatewayID, proof string) Answered {
	return Answered{m.next.generation, redirect.Verdict{Outcome: redirect.Redirect, Gateway: g, Endpoint: "at-" + string(g), Incarnation: 1, Proof: []byte(proof)}}
}

func acceptedBy(m *Machine, g ring.GatewayID, proof string) Answered {
	a := sentTo(m, g, proof)
	a.Verdict.Outcome = redirect.Accept
	return a
}

// The proof of a verdict goes to where that verdict leads, and nowhere else.
func TestProofGoesWhereItIsFor(t *testing.T) {
	m := started(t, nil)
	d := nextDial(t, m, epoch, sentTo(m, "B", "to-B"))
	require.Equal(t, "at-B", d.Addr)
	require.Equal(t, "to-B", string(d.Hello.Proof))

	d = nextDial(t, m, epoch, sentTo(m, "C", "to-C"))
	require.Equal(t, "to-C", string(d.Hello.Proof))
	require.Equal(t, 2, d.Hello.Hops)
	m.Step(epoch, acceptedBy(m, "C", "of-C"))
	now := epoch.Add(time.Hour)

	// Home again, as often as it takes; then to whoever it may be, without.
	first := nextDial(t, m, now, Lost{m.stream.generation})
	require.Equal(t, "at-C", first.Addr)
	require.Equal(t, "of-C", string(first.Hello.Proof))
	first.Hello.Proof[0] = 'X'
	m.Step(now, Failed{Generation: m.next.generation})
	at, _ := m.Deadline()
	require.Equal(t, "of-C", string(nextDial(t, m, at, Tick{}).Hello.Proof), "the slices of a hello are the receiver's")
	d = nextDial(t, m, at, Failed{Generation: m.next.generation})
	require.Equal(t, serviceAddr, d.Addr)
	require.Empty(t, d.Hello.Proof)

	// A gateway that makes none: none is shown, not the old one.
	m.Step(at, acceptedBy(m, "D", ""))
	require.Empty(t, nextDial(t, m, at.Add(time.Hour), Lost{m.stream.generation}).Hello.Proof)
}

func TestProofOfANotice(t *testing.T) {
	m := started(t, nil)
	m.Step(epoch, acceptedBy(m, "A", "of-A"))
	now := epoch.Add(time.Hour)
	d := nextDial(t, m, now, Noticed{m.stream.generation, redirect.Notice{Kind: redirect.NoticeMove, Gateway: "B", Endpoint: "at-B", Proof: []byte("to-B")}})
	require.Equal(t, "at-B", d.Addr)
	require.Equal(t, "to-B", string(d.Hello.Proof))
	// Credentials that have run out are renewed at home.
	m = started(t, nil)
	m.Step(epoch, acceptedBy(m, "A", "of-A"))
	d = nextDial(t, m, now, Noticed{m.stream.generation, redirect.Notice{Kind: redirect.NoticeEnd, Reason: redirect.ReasonExpired}})
	require.Equal(t, "of-A", string(d.Hello.Proof))
}

// A proof that comes with a heartbeat takes the place of the one before it; a
// heartbeat without one, or from another start of the gateway, brings nothing.
func TestProofOfAHeartbeat(t *testing.T) {
	beat := func(m *Machine, i placement.Incarnation, proof string) Noticed {
		return Noticed{m.stream.generation, redirect.Notice{Kind: redirect.NoticeHeartbeat, Gateway: "A", Incarnation: i, Proof: []byte(proof)}}
	}
	m := started(t, nil)
	m.Step(epoch, acceptedBy(m, "A", "of-A"))
	now := epoch.Add(time.Hour)
	mine := beat(m, 1, "of-A, renewed")
	require.Empty(t, m.Step(now, mine))
	mine.Notice.Proof[0] = 'X'
	m.Step(now, beat(m, 1, ""))
	require.Equal(t, "of-A, renewed", string(nextDial(t, m, now, Lost{m.stream.generation}).Hello.Proof))

	m = started(t, nil)
	m.Step(epoch, acceptedBy(m, "A", "of-A"))
	require.Equal(t, "of-A", string(nextDial(t, m, now, beat(m, 2, "of another")).Hello.Proof))
}

// A target that is no good: the Service learns of it, and sees that this stay
// does not come out of nowhere.
func TestProofOfATargetThatIsNoGood(t *testing.T) {
	m := started(t, nil)
	nextDial(t, m, epoch, sentTo(m, "B", "to-B"))
	d := nextDial(t, m, epoch, Failed{Generation: m.next.generation})
	require.Equal(t, serviceAddr, d.Addr)
	require.True(t, d.Hello.Stay)
	require.Equal(t, []ring.GatewayID{"B"}, d.Hello.Avoid)
	require.Equal(t, "to-B", string(d.Hello.Proof))

	m = started(t, func(c *Config) { c.Allow = func(ring.GatewayID, string) error { return errors.New("no peer") } })
	d = nextDial(t, m, epoch, sentTo(m, "B", "to-B"))
	require.Equal(t, serviceAddr, d.Addr)
	require.Equal(t, []ring.GatewayID{"B"}, d.Hello.Avoid)
	require.Equal(t, "to-B", string(d.Hello.Proof))
}

// Refused for its proof, it comes back without.
func TestBadProofIsForgotten(t *testing.T) {
	bad := func(m *Machine) Answered {
		return Answered{m.next.generation, redirect.Verdict{Outcome: redirect.Refuse, Reason: redirect.ReasonBadProof, RetryAfter: time.Second}}
	}
	m := started(t, nil)
	m.Step(epoch, acceptedBy(m, "A", "of-A"))
	now := epoch.Add(time.Hour)
	require.NotEmpty(t, nextDial(t, m, now, Lost{m.stream.generation}).Hello.Proof)
	m.Step(now, bad(m))
	require.Equal(t, Waiting, m.State())
	require.Empty(t, m.homeProof)
	at, _ := m.Deadline()
	require.GreaterOrEqual(t, at.Sub(now), time.Second)
	d := nextDial(t, m, at, Tick{})
	require.Equal(t, serviceAddr, d.Addr)
	require.Empty(t, d.Hello.Proof)
	require.False(t, d.Hello.Stay)

	// A target's does not cost it the proof of home.
	m = started(t, nil)
	m.Step(epoch, acceptedBy(m, "A", "of-A"))
	nextDial(t, m, now, Noticed{m.stream.generation, redirect.Notice{Kind: redirect.NoticeMove, Gateway: "B", Endpoint: "at-B", Proof: []byte("to-B")}})
	m.Step(now, bad(m))
	require.Equal(t, Moving, m.State())
	at, _ = m.Deadline()
	require.Empty(t, nextDial(t, m, at, Tick{}).Hello.Proof)
	require.Equal(t, "of-A", string(m.homeProof))
}

// S32: no gateway may send a supervisor off by what it says of itself, either.
func TestS32HomeMustBeAllowed(t *testing.T) {
	policy := Policy{Hosts: []string{"good"}}
	restrict := func(c *Config) { c.Allow = policy.Allow }
	m := started(t, restrict)
	m.Step(epoch, Answered{1, redirect.Verdict{Outcome: redirect.Accept, Gateway: "A", Endpoint: "evil:443", Incarnation: 1, Proof: []byte("of-A")}})
	require.Equal(t, Home{Gateway: "A", Incarnation: 1}, m.Home(), "it can only be reached through the Service")
	now := epoch.Add(time.Hour)
	require.Empty(t, m.Step(now, Lost{m.stream.generation}))
	at, _ := m.Deadline()
	d := nextDial(t, m, at, Tick{})
	require.Equal(t, serviceAddr, d.Addr)
	require.EqualError(t, d.Passed, `supervisor: no way back to "A" at "evil:443": the policy does not have evil`)
	require.Empty(t, d.Hello.Proof)

	// The address that it was dialled at, and one that is allowed, are in order.
	for _, endpoint := range []string{serviceAddr, "good:1", ""} {
		m = started(t, restrict)
		m.Step(epoch, Answered{1, redirect.Verdict{Outcome: redirect.Accept, Gateway: "A", Endpoint: endpoint}})
		require.Equal(t, endpoint, m.Home().Endpoint)
	}
}

// S32: by redirect and by notice, the policy has the last word, and says whom and where.
func TestS32Policy(t *testing.T) {
	policy := Policy{Suffixes: []string{".gw.example.com"}}
	m := started(t, func(c *Config) { c.Allow = policy.Allow })
	verdict := redirect.Verdict{Outcome: redirect.Redirect, Gateway: "B", Endpoint: "gw.example.com.evil.org:443"}
	d := nextDial(t, m, epoch, Answered{1, verdict})
	require.Equal(t, serviceAddr, d.Addr)
	require.EqualError(t, d.Passed, `supervisor: not sent to "B" at "gw.example.com.evil.org:443": the policy does not have gw.example.com.evil.org`)

	m.Step(epoch, acceptedBy(m, "A", ""))
	now := epoch.Add(time.Hour)
	m.Step(now, Noticed{m.stream.generation, redirect.Notice{Kind: redirect.NoticeMove, Gateway: "C", Endpoint: "http://c.gw.example.com:443"}})
	at, _ := m.Deadline()
	d = nextDial(t, m, at, Tick{})
	require.Equal(t, serviceAddr, d.Addr)
	require.ErrorContains(t, d.Passed, `supervisor: not sent to "C" at "http://c.gw.example.com:443"`)

	m = started(t, func(c *Config) { c.Allow = policy.Allow })
	verdict.Endpoint = "b.gw.example.com:443"
	d = nextDial(t, m, epoch, Answered{1, verdict})
	require.Equal(t, verdict.Endpoint, d.Addr)
}
