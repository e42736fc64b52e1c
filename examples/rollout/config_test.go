// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"flag"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/examples/internal/wire"
)

func TestParseFlagsDefaults(t *testing.T) {
	c, err := parseFlags(nil, io.Discard)
	require.NoError(t, err)
	require.Equal(t, config{
		gateways: 3, supervisors: 12, sessions: 2, surge: true, timeout: 2 * time.Minute,
		steps:       []string{"start", "restart-supervisors", "token-refresh", "rolling", "crash", "scale-up"},
		propagation: 300 * time.Millisecond, window: 2 * time.Second,
	}, c)
}

func TestParseFlagsTakesAll(t *testing.T) {
	c, err := parseFlags([]string{
		"-gateways", "5", "-supervisors", "500", "-sessions", "0", "-steps", "rolling", "-surge=false", "-json",
		"-seed", "7", "-timeout", "3m", "-propagation", "10s", "-window", "1m", "-transport", "websocket", "-echo", "50", "-echo-every", "5ms",
	}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, config{
		gateways: 5, supervisors: 500, sessions: 0, json: true, seed: 7, timeout: 3 * time.Minute,
		steps: []string{"start", "rolling"}, propagation: 10 * time.Second, window: time.Minute,
		transport: wire.WebSocket, echo: 50, echoEvery: 5 * time.Millisecond,
	}, c)
}

// allSteps are those of -steps all.
var allSteps = []string{"start", "restart-supervisors", "token-refresh", "rolling", "crash", "scale-up"}

func TestParseFlagsFor(t *testing.T) {
	c, err := parseFlags([]string{"-steps", "chaos"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, time.Minute, c.chaosFor)
	require.True(t, c.chaos())
	c, err = parseFlags([]string{"-steps", "rolling,chaos", "-for", "30m"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, 30*time.Minute, c.chaosFor)
	require.Equal(t, 2*time.Minute, c.timeout, "for the rest")
	c, err = parseFlags(nil, io.Discard)
	require.NoError(t, err)
	require.False(t, c.chaos())
}

func TestParseFlagsSteps(t *testing.T) {
	for _, row := range []struct {
		args []string
		want []string
	}{
		{[]string{"-steps", "start"}, []string{"start"}},
		{[]string{"-steps", "rolling"}, []string{"start", "rolling"}},
		{[]string{"-steps", "scale-up,rolling,start"}, []string{"start", "rolling", "scale-up"}},
		{[]string{"-steps", "crash,crash"}, []string{"start", "crash"}},
		{[]string{"-steps", "crash,all"}, allSteps},
		{[]string{"-steps", "chaos"}, []string{"start", "chaos"}},
		{[]string{"-steps", "chaos,all"}, stepNames()},
		{[]string{"-gateways", "1"}, []string{"start", "restart-supervisors", "token-refresh", "rolling", "scale-up"}},
		{[]string{"-gateways", "1", "-steps", "rolling"}, []string{"start", "rolling"}},
		{[]string{"-gateways", "2"}, allSteps},
	} {
		c, err := parseFlags(row.args, io.Discard)
		require.NoError(t, err, "%v", row.args)
		require.Equal(t, row.want, c.steps, "%v", row.args)
	}
}

func TestParseFlagsFaults(t *testing.T) {
	for _, row := range []struct {
		args []string
		want []string
	}{
		{[]string{"-gateways", "0"}, []string{"-gateways is 0"}},
		{[]string{"-gateways", "few"}, []string{"-gateways"}},
		{[]string{"-supervisors", "0"}, []string{"-supervisors is 0"}},
		{[]string{"-sessions", "-1"}, []string{"-sessions is -1"}},
		{[]string{"-steps", "roll"}, []string{"-steps", `"roll"`, "restart-supervisors, token-refresh"}},
		{[]string{"-steps", ""}, []string{"-steps", `""`}},
		{[]string{"-steps", "start, rolling"}, []string{"-steps", `" rolling"`}},
		{[]string{"-steps", "crash", "-gateways", "1"}, []string{"-steps", "crash needs at least 2 -gateways"}},
		{[]string{"-steps", "all,crash", "-gateways", "1"}, []string{"-steps", "crash needs at least 2 -gateways"}},
		{[]string{"-surge=perhaps"}, []string{"-surge"}},
		{[]string{"-json=perhaps"}, []string{"-json"}},
		{[]string{"-seed", "-1"}, []string{"-seed"}},
		{[]string{"-timeout", "0s"}, []string{"-timeout is 0s"}},
		{[]string{"-timeout", "2"}, []string{"-timeout"}},
		{[]string{"-steps", "chaos", "-for", "0s"}, []string{"-for is 0s"}},
		{[]string{"-steps", "chaos", "-for", "-5m"}, []string{"-for is -5m"}},
		{[]string{"-steps", "chaos", "-for", "long"}, []string{"-for"}},
		{[]string{"-for", "5m"}, []string{"-for is of use with -steps chaos only"}},
		{[]string{"-steps", "all", "-for", "1m"}, []string{"-for is of use with -steps chaos only"}},
		{[]string{"-steps", "chaos", "-gateways", "2"}, []string{"chaos needs at least 3 -gateways"}},
		{[]string{"-propagation", "0s"}, []string{"-propagation is 0s"}},
		{[]string{"-window", "-1s"}, []string{"-window is -1s"}},
		{[]string{"-transport", "pigeon"}, []string{"-transport", "grpc and websocket"}},
		{[]string{"-echo", "-1"}, []string{"-echo is -1"}},
		{[]string{"-echo", "13"}, []string{"-echo is 13", "-supervisors, 12"}},
		{[]string{"-echo-every", "-1s"}, []string{"-echo-every is -1s"}},
		{[]string{"-colour"}, []string{"-colour"}},
		{[]string{"-json", "true"}, []string{"unexpected argument", `"true"`}},
		{ // all at once
			[]string{"-gateways", "0", "-supervisors", "0", "-sessions", "-1", "-steps", "x", "-timeout", "0s", "-propagation", "0s", "-window", "0s", "y"},
			[]string{"-gateways", "-supervisors", "-sessions", "-steps", "-timeout", "-propagation", "-window", `"y"`},
		},
	} {
		_, err := parseFlags(row.args, io.Discard)
		require.Error(t, err, "%v", row.args)
		for _, want := range row.want {
			require.ErrorContains(t, err, want, "%v", row.args)
		}
	}
}

func TestParseFlagsHelp(t *testing.T) {
	var usage bytes.Buffer
	_, err := parseFlags([]string{"-help"}, &usage)
	require.ErrorIs(t, err, flag.ErrHelp)
	for _, name := range []string{
		"-gateways", "-supervisors", "-sessions", "-steps", "-surge", "-json", "-seed", "-timeout", "-propagation", "-window", "-transport", "-echo", "-echo-every", "-for",
	} {
		require.Contains(t, usage.String(), "  "+name)
	}
	require.Contains(t, usage.String(), "restart-supervisors")
}
