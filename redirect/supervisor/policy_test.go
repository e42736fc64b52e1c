// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPolicy(t *testing.T) {
	p := Policy{
		Hosts:    []string{"gw.example.com", "Edge.Example.NET.", "192.0.2.7", "::1"},
		Suffixes: []string{".gw.example.com", ".Pods.Example.com."},
		Prefixes: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("2001:db8::/32")},
		Ports:    []uint16{443, 7000},
	}
	require.NoError(t, p.Validate())
	for _, endpoint := range []string{
		"gw.example.com:443", "GW.Example.com.:7000", "edge.example.net:443",
		"gw-0.gw.example.com:443", "a.b.gw.example.com:443", "X.PODS.example.COM.:443",
		"192.0.2.7:443", "[::1]:443", "[0:0:0:0:0:0:0:1]:443", "[::ffff:192.0.2.7]:443",
		"10.1.255.255:443", "[2001:db8:1::2]:443", "[::ffff:10.1.0.1]:443",
	} {
		require.NoError(t, p.Allow("gw-0", endpoint), endpoint)
	}
	for _, row := range []struct{ endpoint, want string }{
		{"evilgw.example.com:443", "the policy does not have evilgw.example.com"},
		{"gw-0.evilgw.example.com:443", "does not have"},
		{"pods.example.com:443", "does not have"},
		{"gw.example.com.evil.org:443", "does not have"},
		{"10.2.0.1:443", "the policy does not have 10.2.0.1"},
		{"[2001:db9::1]:443", "the policy does not have 2001:db9::1"},
		{"192.0.2.8:443", "does not have"},
		{"gw.example.com:80", "the policy does not have port 80"},
		{"gw.example.com", "no port"},
		{"gw.example.com@evil.org:443", "is no host name"},
		{"gw.example.com/:443", "is no host name"},
		{"evil.org#.gw.example.com:443", "is no host name"},
		{"ws://gw.example.com:443", "host:port"},
		{"http://gw.example.com:443", "host:port"},
		{"dns:///gw.example.com:443", "host:port"},
		{"unix:/run/gw.example.com", "the port is"},
		{"passthrough:///gw.example.com:443", "host:port"},
		{"10.1.1:443", "is no host name"},
		{"", "no port"},
	} {
		err := p.Allow("gw-0", row.endpoint)
		require.ErrorContains(t, err, row.want, row.endpoint)
		require.ErrorContains(t, err, `gateway "gw-0" at "`+row.endpoint+`" is not allowed`)
		var named *NotAllowedError
		require.ErrorAs(t, err, &named)
		require.ErrorIs(t, err, named.Cause)
	}
	require.ErrorContains(t, Policy{}.Allow("gw", "gw:1"), "does not have gw", "the zero policy allows nothing")
	require.ErrorContains(t, Policy{Ports: []uint16{1}}.Allow("gw", "gw:1"), "does not have gw")
	require.NoError(t, Policy{Hosts: []string{"gw"}}.Allow("gw", "gw:1"), "any port")
	require.NoError(t, Policy{Prefixes: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}}.Allow("gw", "1.2.3.4:1"))
	require.Error(t, Policy{Prefixes: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}}.Allow("gw", "name:1"), "names are not resolved")
	require.Error(t, Policy{Suffixes: []string{"gw"}, Hosts: []string{""}}.Allow("gw", "a.gw:1"), "what is not valid allows nothing")
}

func TestPolicyValidate(t *testing.T) {
	require.NoError(t, Policy{}.Validate())
	err := Policy{
		Hosts:    []string{"gw", "gw:443", "https://gw", "", "[::1]", "*.gw"},
		Suffixes: []string{"gw.example.com", ".", "*.gw", ".1"},
		Prefixes: []netip.Prefix{{}, netip.MustParsePrefix("10.0.0.1/8"), netip.MustParsePrefix("::ffff:10.0.0.0/104")},
		Ports:    []uint16{443, 0},
	}.Validate()
	for _, fault := range []string{
		`Policy.Hosts[1]: "gw:443"`, `Policy.Hosts[2]: "https://gw"`, `Policy.Hosts[3]: ""`, `Policy.Hosts[4]: "[::1]"`, `Policy.Hosts[5]: "*.gw"`,
		`Policy.Suffixes[0] is "gw.example.com"`, `Policy.Suffixes[1] is "."`, `Policy.Suffixes[2] is "*.gw"`, `Policy.Suffixes[3] is ".1"`,
		"Policy.Prefixes[0] is not set", "Policy.Prefixes[1] is 10.0.0.1/8; did you mean 10.0.0.0/8?", "Policy.Prefixes[2] is ::ffff:10.0.0.0/104; write it as IPv4",
		"Policy.Ports contains 0",
	} {
		require.ErrorContains(t, err, fault)
	}
	require.NotContains(t, err.Error(), "Hosts[0]")
}
