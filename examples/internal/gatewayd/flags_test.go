// SPDX-License-Identifier: Apache-2.0

package gatewayd_test

import (
	"bytes"
	"encoding/base64"
	"flag"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/examples/internal/gatewayd"
	"github.com/evenring/evenring/examples/internal/tlsflags"
	"github.com/evenring/evenring/examples/internal/wire"
	"github.com/evenring/evenring/ring"
)

func nothing(string) string { return "" }

func parse(args ...string) (gatewayd.Config, error) {
	return gatewayd.Parse(args, nothing, io.Discard, io.Discard)
}

func TestDefaults(t *testing.T) {
	host, err := os.Hostname()
	require.NoError(t, err)
	c, err := parse()
	require.NoError(t, err)
	require.NotNil(t, c.Log)
	c.Log = nil
	require.Equal(t, gatewayd.Config{
		ID: ring.GatewayID(host), Listen: "127.0.0.1:7000", Gossip: "127.0.0.1:7946", Ops: "127.0.0.1:7080", PeerWait: 20 * time.Second,
		DelistGrace: 10 * time.Second,
		Propagation: 3 * time.Second, Window: 10 * time.Second, Confirm: 10 * time.Second, KillAfter: 30 * time.Second,
	}, c)
	require.NoError(t, gatewayd.Config{}.Validate())
}

func TestFlagsAndEnvironment(t *testing.T) {
	env := map[string]string{"EVENRING_ID": "a", "EVENRING_LISTEN": "10.0.0.1:7000", "EVENRING_JOIN": "x:1", "EVENRING_TLS_CA": "ca.pem", "EVENRING_REPORT": "true", "EVENRING_TRANSPORT": "websocket"}
	var stdout, stderr bytes.Buffer
	c, err := gatewayd.Parse([]string{
		"-listen", ":7000", "-endpoint", "10.0.0.1:7000", "-join", "seed-1:7946, seed-2:7946", "-window", "1s", "-log-level", "debug", "-log-format", "json",
		"-tls-cert", "cert.pem", "-tls-key", "key.pem",
	}, func(name string) string { return env[name] }, &stdout, &stderr)
	require.NoError(t, err)
	require.Equal(t, ring.GatewayID("a"), c.ID)
	require.Equal(t, ":7000", c.Listen)
	require.Equal(t, []string{"seed-1:7946", "seed-2:7946"}, c.Join)
	require.Equal(t, time.Second, c.Window)
	require.Equal(t, wire.WebSocket, c.Transport)
	require.Equal(t, tlsflags.Flags{Cert: "cert.pem", Key: "key.pem", CA: "ca.pem"}, c.TLS)
	require.NotNil(t, c.Report)
	c.Log.Debug("hear", "me", 1)
	require.Contains(t, stderr.String(), `"msg":"hear","me":1`)
	require.True(t, c.Log.Enabled(t.Context(), slog.LevelDebug))
	require.Empty(t, stdout.String())
}

func TestHelp(t *testing.T) {
	var stderr bytes.Buffer
	_, err := gatewayd.Parse([]string{"-help"}, nothing, io.Discard, &stderr)
	require.ErrorIs(t, err, flag.ErrHelp)
	for _, text := range []string{"-id name", "$EVENRING_ID", "-gossip-key secrets", "$EVENRING_TLS_CERT", "(default 30s)", "(default INFO)"} {
		require.Contains(t, stderr.String(), text)
	}
}

func TestBadFlagsNameTheFlag(t *testing.T) {
	for name, row := range map[string]struct {
		args []string
		want []string
	}{
		"a duration":               {[]string{"-window", "soon"}, []string{"-window"}},
		"an address":               {[]string{"-listen", "here"}, []string{"-listen"}},
		"no host to dial":          {[]string{"-listen", ":7000"}, []string{"-endpoint", "-listen :7000"}},
		"every interface":          {[]string{"-listen", "[::]:7000"}, []string{"-endpoint", "-listen [::]:7000"}},
		"an endpoint without port": {[]string{"-endpoint", "10.0.0.1:0"}, []string{"-endpoint"}},
		"an endpoint without host": {[]string{"-endpoint", ":7000"}, []string{"-endpoint"}},
		"an endpoint of words":     {[]string{"-endpoint", "over there"}, []string{"-endpoint"}},
		"a seed":                   {[]string{"-join", "seed-1:7946,seed-2"}, []string{"-join", "Seeds[1]"}},
		"gossip":                   {[]string{"-gossip", "here"}, []string{"-gossip"}},
		"gossip to advertise":      {[]string{"-gossip-advertise", ":7946"}, []string{"-gossip-advertise"}},
		"the operator's address":   {[]string{"-ops", "here"}, []string{"-ops"}},
		"a wait":                   {[]string{"-peer-wait", "-1s"}, []string{"-peer-wait"}},
		"a grace":                  {[]string{"-delist-grace", "-1s"}, []string{"-delist-grace"}},
		"S46":                      {[]string{"-window", "120s", "-kill-after", "60s"}, []string{"-window", "-kill-after", "2m0s", "1m0s"}},
		"a drain back in time":     {[]string{"-propagation", "-1s"}, []string{"-propagation"}},
		"a log level":              {[]string{"-log-level", "loud"}, []string{"-log-level"}},
		"a log format":             {[]string{"-log-format", "xml"}, []string{"-log-format"}},
		"several at once":          {[]string{"-ops", "here", "-log-format", "xml", "-peer-wait", "-1s"}, []string{"-ops", "-log-format", "-peer-wait"}},
		"a transport":              {[]string{"-transport", "pigeon"}, []string{"-transport", "grpc and websocket"}},
		"no flag":                  {[]string{"-colour", "red"}, []string{"-colour"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(row.args...)
			for _, text := range row.want {
				require.ErrorContains(t, err, text)
			}
		})
	}
	_, err := gatewayd.New(gatewayd.Config{TLS: tlsflags.Flags{CA: "/nowhere"}})
	require.ErrorContains(t, err, "-tls-ca")
	_, err = gatewayd.New(gatewayd.Config{Transport: 7})
	require.ErrorContains(t, err, "-transport")
}

func TestGossipKey(t *testing.T) {
	key := []byte("0123456789abcdef")
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte(base64.StdEncoding.EncodeToString(key)+"\n"), 0o600))
	short := filepath.Join(t.TempDir(), "short")
	require.NoError(t, os.WriteFile(short, []byte("c2hvcnQ="), 0o600))
	for name, text := range map[string]string{
		"hex": "30313233343536373839616263646566", "base64": "MDEyMzQ1Njc4OWFiY2RlZg==", "file": file,
	} {
		t.Run(name, func(t *testing.T) {
			c, err := parse("-gossip-key", text)
			require.NoError(t, err)
			require.Equal(t, key, c.GossipKey)
		})
	}
	second, third := "30313233343536373839616263646567", "MDEyMzQ1Njc4OWFiY2RlZmdoaWprbG1u"
	list := filepath.Join(t.TempDir(), "list")
	require.NoError(t, os.WriteFile(list, []byte("30313233343536373839616263646566\n"+second+"\n\n"+third+"\n"), 0o600))
	for name, text := range map[string]string{"commas": "MDEyMzQ1Njc4OWFiY2RlZg==, " + second + "," + third, "lines": list} {
		t.Run(name, func(t *testing.T) {
			c, err := parse("-gossip-key", text)
			require.NoError(t, err)
			require.Equal(t, key, c.GossipKey)
			require.Equal(t, [][]byte{[]byte("0123456789abcdeg"), []byte("0123456789abcdefghijklmn")}, c.GossipAccept)
		})
	}
	empty := filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.WriteFile(empty, []byte("\n"), 0o600))
	for name, text := range map[string]string{
		"short": "c2hvcnQ=", "no file": "/secret/nowhere", "a file too short": short, "an empty file": empty,
		"one of two short": "MDEyMzQ1Njc4OWFiY2RlZg==,c2hvcnQ=",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse("-gossip-key", text)
			require.ErrorContains(t, err, "-gossip-key")
			require.NotContains(t, err.Error(), text) // it may be the secret, mistyped
		})
	}
}
