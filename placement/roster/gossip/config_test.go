// SPDX-License-Identifier: Apache-2.0

package gossip_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement/roster/gossip"
	"github.com/evenring/evenring/ring"
)

func TestConfigValidate(t *testing.T) {
	t.Parallel()
	valid := gossip.Config{Gateway: "gw-0", Incarnation: 1}
	require.NoError(t, valid.Validate())
	for _, row := range []struct {
		field  string
		change func(*gossip.Config)
	}{
		{"Gateway", func(c *gossip.Config) { c.Gateway = "" }},
		{"Gateway", func(c *gossip.Config) { c.Gateway = ring.GatewayID(strings.Repeat("g", 256)) }},
		{"Incarnation", func(c *gossip.Config) { c.Incarnation = 0 }},
		{"Bind", func(c *gossip.Config) { c.Bind = "localhost" }},
		{"Bind", func(c *gossip.Config) { c.Bind = "localhost:http" }},
		{"Bind", func(c *gossip.Config) { c.Bind = "localhost:65536" }},
		{"Advertise", func(c *gossip.Config) { c.Bind = "[::]:7946" }},
		{"Advertise", func(c *gossip.Config) { c.Advertise = "gw-0" }},
		{"Advertise", func(c *gossip.Config) { c.Advertise = ":7946" }},
		{"Advertise", func(c *gossip.Config) { c.Advertise = "0.0.0.0:7946" }},
		{"Seeds[1]", func(c *gossip.Config) { c.Seeds = []string{"gw-0:7946", "gw-1"} }},
		{"Seeds[0]", func(c *gossip.Config) { c.Seeds = []string{"gw-1:0"} }},
		{"Seeds[0]", func(c *gossip.Config) { c.Seeds = []string{":7946"} }},
		{"Key", func(c *gossip.Config) { c.Key = make([]byte, 15) }},
		{"AcceptKeys[1]", func(c *gossip.Config) { c.Key, c.AcceptKeys = make([]byte, 16), [][]byte{make([]byte, 32), nil} }},
		{"AcceptKeys[0] has 15", func(c *gossip.Config) { c.Key, c.AcceptKeys = make([]byte, 16), [][]byte{make([]byte, 15)} }},
		{"Key has 0", func(c *gossip.Config) { c.AcceptKeys = [][]byte{make([]byte, 16)} }},
		{"Label", func(c *gossip.Config) { c.Label = strings.Repeat("l", 256) }},
		{"Probe", func(c *gossip.Config) { c.Probe = time.Millisecond }},
		{"Probe", func(c *gossip.Config) { c.Probe = -time.Second }},
		{"Backlog", func(c *gossip.Config) { c.Backlog = -1 }},
	} {
		c := valid
		row.change(&c)
		require.ErrorContains(t, c.Validate(), "gossip: Config."+row.field, "%+v", c)
		_, err := gossip.Join(t.Context(), c, nil)
		require.Error(t, err, "%+v", c)
	}

	err := gossip.Config{Key: make([]byte, 1), Probe: 1}.Validate()
	for _, field := range []string{"Gateway", "Incarnation", "Key", "Probe"} {
		require.ErrorContains(t, err, "Config."+field)
	}
}

func TestJoinFailsOverTheAddress(t *testing.T) {
	t.Parallel()
	first := start(t, newGateway(t, "gw-0"), nil)
	for field, change := range map[string]func(*gossip.Config){
		"in use":           func(c *gossip.Config) { c.Bind = first.Mesh.Addr() },
		"Config.Bind":      func(c *gossip.Config) { c.Bind = "no-such-host.invalid:0" },
		"Config.Advertise": func(c *gossip.Config) { c.Advertise = "no-such-host.invalid:0" },
	} {
		c := gossip.Config{Gateway: "gw-1", Incarnation: 1, Bind: "127.0.0.1:0"}
		change(&c)
		_, err := gossip.Join(t.Context(), c, first)
		require.ErrorContains(t, err, field)
	}
}

func TestNamesInAddresses(t *testing.T) {
	t.Parallel()
	c := gossip.Config{Gateway: "gw-0", Incarnation: 1, Bind: "localhost:0", Advertise: "localhost:4711"}
	mesh, err := gossip.Join(t.Context(), c, start(t, newGateway(t, "gw-1"), nil))
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:4711", mesh.Addr())
	require.NoError(t, mesh.Close())
	require.NoError(t, mesh.Close())
}

func TestBindEveryInterface(t *testing.T) {
	t.Parallel()
	c := gossip.Config{Gateway: "gw-0", Incarnation: 1, Bind: ":0"}
	mesh, err := gossip.Join(t.Context(), c, start(t, newGateway(t, "gw-1"), nil))
	if err != nil {
		require.ErrorContains(t, err, "set Config.Advertise", "this host has no address for others")
		return
	}
	defer mesh.Close()
	addr, err := netip.ParseAddrPort(mesh.Addr())
	require.NoError(t, err)
	require.True(t, addr.Addr().Is4(), "it listens nowhere else: %v", addr)
	require.False(t, addr.Addr().IsLoopback(), "others cannot dial %v", addr)
}
