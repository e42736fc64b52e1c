// SPDX-License-Identifier: Apache-2.0

package supervisord

import (
	"io"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/redirect/supervisor"
)

func TestAllowTarget(t *testing.T) {
	cfg, err := Parse([]string{"-member", "m"}, environment(nil), io.Discard, io.Discard)
	require.NoError(t, err)
	require.Nil(t, cfg.Targets)
	require.Nil(t, cfg.allow())

	cfg, err = Parse([]string{"-member", "m", "-allow-target", "gw.example.com, .pods.example.com", "-allow-target", "10.1.0.0/16", "-allow-target", "::1,:7000,192.0.2.1"},
		environment(nil), io.Discard, io.Discard)
	require.NoError(t, err)
	require.Equal(t, &supervisor.Policy{
		Hosts: []string{"gw.example.com", "::1", "192.0.2.1"}, Suffixes: []string{".pods.example.com"},
		Prefixes: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}, Ports: []uint16{7000},
	}, cfg.Targets)
	require.NoError(t, cfg.allow()("gw-0", "gw-0.pods.example.com:7000"))
	require.ErrorContains(t, cfg.allow()("gw-0", "gw-0.pods.example.com:7001"), "port 7001")

	cfg, err = Parse([]string{"-member", "m"}, environment(map[string]string{"EVENRING_ALLOW_TARGET": ".example.com"}), io.Discard, io.Discard)
	require.NoError(t, err)
	require.Equal(t, []string{".example.com"}, cfg.Targets.Suffixes)

	for _, bad := range []string{"10.1.0.0/99", ":seven", "ws://gw", "gw:443", "*.gw", "10.1.0.1/16", ""} {
		_, err := Parse([]string{"-member", "m", "-allow-target", bad}, environment(nil), io.Discard, io.Discard)
		require.ErrorContains(t, err, "-allow-target", bad)
	}
}

// S32: whoever is sent to a host that is not allowed is served where the Service takes it, its sessions beside it.
func TestS32TargetsNotAllowed(t *testing.T) {
	fleet := newGates()
	a, b := fleet.start(t, "a", gateOptions{}), fleet.start(t, "b", gateOptions{})
	fleet.meet(t)
	cfg := Config{Service: a.addr, Members: members(6), Sessions: 1, Targets: &supervisor.Policy{Hosts: []string{"gw.example.com"}}}
	seen, _ := start(t, cfg)
	eventually(t, func() bool { return seen.settled(6, 6) })
	require.Equal(t, 6, a.Stats().Served)
	require.Zero(t, b.Stats().Served)
}
