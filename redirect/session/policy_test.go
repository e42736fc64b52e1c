// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/supervisor"
)

// S32: a session follows nobody to where its policy does not let it, and says whom and where.
func TestS32Policy(t *testing.T) {
	policy := supervisor.Policy{Suffixes: []string{".gw.example.com"}}
	begin := func() *Machine {
		m, err := New(Config{Session: "c", Member: "s", Service: serviceAddr, Allow: policy.Allow})
		require.NoError(t, err)
		m.Step(epoch, HomeChanged{supervisor.Home{Gateway: "A"}})
		require.Equal(t, serviceAddr, m.Step(epoch, Start{})[0].(Dial).Addr)
		return m
	}
	sent := func(endpoint string) Answered {
		return Answered{1, redirect.Verdict{Outcome: redirect.Redirect, Gateway: "B", Endpoint: endpoint, Incarnation: 1}}
	}
	m := begin()
	d := m.Step(epoch, sent("ws://b.gw.example.com:443"))[0].(Dial)
	require.Equal(t, serviceAddr, d.Addr)
	require.EqualError(t, d.Passed, `session: not sent to "B" at "ws://b.gw.example.com:443": it is not of the form "host:port"`)
	m = begin()
	require.Equal(t, "b.gw.example.com:443", m.Step(epoch, sent("b.gw.example.com:443"))[0].(Dial).Addr)

	m = begin()
	m.Step(epoch, Answered{1, redirect.Verdict{Outcome: redirect.Accept, Gateway: "A", Incarnation: 1}})
	m.Step(epoch, Noticed{1, redirect.Notice{Kind: redirect.NoticeMove, Gateway: "B", Endpoint: "evil.org:443"}})
	_, planned := m.Deadline()
	require.False(t, planned, "it stays where it is")
}
