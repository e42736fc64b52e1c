// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	for _, row := range []struct {
		text, host string
		port       uint16
	}{
		{"gw-0.gw.example.com:443", "gw-0.gw.example.com", 443},
		{"GW.Example.COM:1", "gw.example.com", 1},
		{"gw.example.com.:443", "gw.example.com", 443},
		{"localhost:65535", "localhost", 65535},
		{"gateway_1:7000", "gateway_1", 7000},
		{"unix:443", "unix", 443}, // a host of that name
		{"1a:443", "1a", 443},
		{"10.0.0.1:7000", "10.0.0.1", 7000},
		{"[::1]:7000", "::1", 7000},
		{"[2001:DB8::1]:7000", "2001:db8::1", 7000},
		{"[::ffff:10.0.0.1]:7000", "10.0.0.1", 7000},
	} {
		e, err := Parse(row.text)
		require.NoError(t, err, row.text)
		require.Equal(t, row.host, e.Host(), row.text)
		require.Equal(t, row.port, e.Port, row.text)
	}
	for _, row := range []struct{ text, want string }{
		{"", "no port"},
		{"gw", "no port"},
		{":443", "no host"},
		{"gw:", `the port is ""`},
		{"gw:0", `the port is "0"`},
		{"gw:65536", `the port is "65536"`},
		{"gw:+1", `the port is "+1"`},
		{"gw:https", `the port is "https"`},
		{"gw:443/path", `the port is "443/path"`},
		{"gw/path:443", `"gw/path" is no host name`},
		{"user@gw:443", `"user@gw" is no host name`},
		{"user:pass@gw:443", "host:port"},
		{"gw?x:443", "is no host name"},
		{"gw#x:443", "is no host name"},
		{"gw%2e:443", "is no host name"},
		{"g w:443", "is no host name"},
		{" gw:443", "is no host name"},
		{"gw\x00:443", "is no host name"},
		{"gẁ:443", "is no host name"},
		{"gw..com:443", "is no host name"},
		{".gw:443", "is no host name"},
		{".:443", "is no host name"},
		{"-gw:443", "is no host name"},
		{"gw-:443", "is no host name"},
		{strings.Repeat("a", 64) + ":443", "is no host name"},
		{strings.Repeat("a.", 127) + "a:443", "is no host name"},
		{"ws://gw:443", "host:port"},
		{"https://gw:443", "host:port"},
		{"dns:///gw:443", "host:port"},
		{"passthrough:///gw:443", "host:port"},
		{"unix:/run/gw.sock", `the port is "/run/gw.sock"`},
		{"unix:///run/gw.sock", `the port is "///run/gw.sock"`},
		{"unix:@gw", `the port is "@gw"`},
		{"::1:443", "host:port"},
		{"[::1]", "host:port"},
		{"[::1:443", "host:port"},
		{"[gw]:443", "is no address"},
		{"[]:443", "is no address"},
		{"[10.0.0.1]:443", "is no IPv6 address"},
		{"[fe80::1%eth0]:443", "zone"},
		{"127.1:443", "is no host name"},
		{"2130706433:443", "is no host name"},
		{"0x7f.0X1:443", "is no host name"},
		{"0x:443", "is no host name"},
		{"010.0.0.1:443", "is no host name"},
	} {
		_, err := Parse(row.text)
		require.ErrorContains(t, err, row.want, "%q", row.text)
	}
}

// FuzzParse: what is let through is one host and one port to everybody else, too.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"gw.example.com.:443", "[::1]:1", "10.0.0.1:7000", "ws://gw:1", "[fe80::1%25x]:1", "unix:1", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Parse(text)
		if err != nil {
			return
		}
		host, port, err := net.SplitHostPort(text)
		require.NoError(t, err)
		n, err := strconv.Atoi(port)
		require.NoError(t, err)
		require.Equal(t, int(e.Port), n)
		require.Empty(t, strings.Trim(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:"))
		require.Equal(t, e.Name != "", !e.Addr.IsValid())
		again, err := Parse(net.JoinHostPort(e.Host(), port))
		require.NoError(t, err)
		require.Equal(t, e, again)
	})
}
