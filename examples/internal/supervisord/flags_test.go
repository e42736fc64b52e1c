// SPDX-License-Identifier: Apache-2.0

package supervisord

import (
	"bytes"
	"flag"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/examples/internal/report"
	"github.com/evenring/evenring/examples/internal/tlsflags/tlstest"
	"github.com/evenring/evenring/examples/internal/wire"
	"github.com/evenring/evenring/ring"
)

func environment(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func TestParse(t *testing.T) {
	for name, row := range map[string]struct {
		args []string
		env  map[string]string
		want Config // Report and Log left out
	}{
		"one": {
			args: []string{"-member", "m"},
			want: Config{Service: "127.0.0.1:7000", Members: []ring.MemberID{"m"}, Sessions: 2},
		},
		"all": {
			args: []string{"-service", "gw:1", "-member", "a,b", "-member", "c", "-prefix", "edge-", "-first", "9", "-count", "3", "-sessions", "0", "-ops", ":7090"},
			want: Config{Service: "gw:1", Members: []ring.MemberID{"a", "b", "c", "edge-9", "edge-10", "edge-11"}, Ops: ":7090"},
		},
		"from the environment": {
			env:  map[string]string{"EVENRING_SERVICE": "gw:2", "EVENRING_MEMBER": "a, b", "EVENRING_SESSIONS": "5"},
			want: Config{Service: "gw:2", Members: []ring.MemberID{"a", "b"}, Sessions: 5},
		},
		"over WebSocket": {
			args: []string{"-member", "m", "-transport", "websocket"},
			env:  map[string]string{"EVENRING_TRANSPORT": "grpc"},
			want: Config{Service: "127.0.0.1:7000", Members: []ring.MemberID{"m"}, Sessions: 2, Transport: wire.WebSocket},
		},
		"the flag wins": {
			args: []string{"-service", "gw:1", "-member", "a"},
			env:  map[string]string{"EVENRING_SERVICE": "gw:2", "EVENRING_MEMBER": "b", "EVENRING_OPS": ":1"},
			want: Config{Service: "gw:1", Members: []ring.MemberID{"a"}, Sessions: 2, Ops: ":1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := Parse(row.args, environment(row.env), io.Discard, io.Discard)
			require.NoError(t, err)
			require.NotNil(t, cfg.Log)
			require.Nil(t, cfg.Report)
			cfg.Log = nil
			require.Equal(t, row.want, cfg)
		})
	}
}

func TestBadFlagsAreNamed(t *testing.T) {
	for _, row := range []struct {
		args []string
		env  map[string]string
		want string
	}{
		{args: nil, want: "-member"},
		{args: []string{"-colour"}, want: "-colour"},
		{args: []string{"-member", "m", "start"}, want: `"start"`},
		{args: []string{"-member", "m,"}, want: "-member"},
		{args: []string{"-member", "m", "-member", "m"}, want: "-member"},
		{args: []string{"-member", "m1", "-prefix", "m"}, want: "-prefix"},
		{args: []string{"-member", "m", "-service", ""}, want: "-service"},
		{args: []string{"-prefix", "m", "-first", "-1"}, want: "-first"},
		{args: []string{"-prefix", "m", "-count", "0"}, want: "-count"},
		{args: []string{"-member", "m", "-sessions", "-1"}, want: "-sessions"},
		{args: []string{"-member", "m", "-sessions", "few"}, want: "-sessions"},
		{args: []string{"-member", "m", "-log-level", "loud"}, want: "-log-level"},
		{args: []string{"-member", "m", "-tls-cert", "only.pem"}, want: "-tls-cert"},
		{args: []string{"-member", "m", "-transport", "carrier-pigeon"}, want: "-transport"},
		{args: []string{"-member", "m"}, env: map[string]string{"EVENRING_TRANSPORT": "x"}, want: "EVENRING_TRANSPORT (flag -transport)"},
		{args: []string{"-member", "m"}, env: map[string]string{"EVENRING_COUNT": "few"}, want: "EVENRING_COUNT (flag -count)"},
	} {
		_, err := Parse(row.args, environment(row.env), io.Discard, io.Discard)
		require.ErrorContains(t, err, row.want, "%q", row.args)
	}
}

func TestHelp(t *testing.T) {
	var usage bytes.Buffer
	_, err := Parse([]string{"-help"}, environment(nil), io.Discard, &usage)
	require.ErrorIs(t, err, flag.ErrHelp)
	for _, want := range []string{"-member name", "EVENRING_MEMBER", "EVENRING_LOG_LEVEL", "EVENRING_TLS_CA"} {
		require.Contains(t, usage.String(), want)
	}
}

func TestWhereOutputGoes(t *testing.T) {
	var out, logs bytes.Buffer
	cfg, err := Parse([]string{"-member", "m", "-report", "-log-level", "warn"}, environment(nil), &out, &logs)
	require.NoError(t, err)
	cfg.Report.Write(report.Event{Kind: report.Lost, Member: "m"})
	cfg.Log.Info("quiet")
	require.Contains(t, out.String(), `"event":"lost"`)
	require.Empty(t, logs.String())
	cfg.Log.Warn("loud")
	require.Contains(t, logs.String(), "loud")
}

func TestMutualTLS(t *testing.T) {
	everyTransport(t, mutualTLS)
}

func mutualTLS(t *testing.T, kind wire.Kind) {
	ours := tlstest.NewAuthority(t)
	server, err := ours.Issue(t, "gateway").Server()
	require.NoError(t, err)
	gw := alone(t, gateOptions{transport: kind, tls: server})

	files := ours.Issue(t, "edge-1")
	cfg, err := Parse([]string{
		"-service", gw.addr, "-member", "edge-1", "-sessions", "1", "-transport", kind.String(),
		"-tls-cert", files.Cert, "-tls-key", files.Key, "-tls-ca", files.CA,
	}, environment(nil), io.Discard, io.Discard)
	require.NoError(t, err)
	seen, _ := start(t, cfg)
	eventually(t, func() bool { return seen.settled(1, 1) })
}
