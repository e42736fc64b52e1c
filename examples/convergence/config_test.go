// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"flag"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseFlags(t *testing.T) {
	c, err := parseFlags(nil, io.Discard)
	require.NoError(t, err)
	require.Equal(t, config{
		gateways: 16, supervisors: 20_000, hosts: 4, rounds: 5, within: 5 * time.Second, timeout: 20 * time.Minute,
	}, c)
	c, err = parseFlags([]string{
		"-gateways", "3", "-supervisors", "60", "-hosts", "2", "-rounds", "1", "-within", "1s", "-json", "-timeout", "1m",
	}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, config{gateways: 3, supervisors: 60, hosts: 2, rounds: 1, within: time.Second, json: true, timeout: time.Minute}, c)
}

func TestParseFlagsFaults(t *testing.T) {
	for _, row := range []struct {
		args []string
		want []string
	}{
		{[]string{"-gateways", "0"}, []string{"-gateways is 0"}},
		{[]string{"-gateways", "few"}, []string{"-gateways"}},
		{[]string{"-supervisors", "-1"}, []string{"-supervisors is -1"}},
		{[]string{"-hosts", "0"}, []string{"-hosts is 0"}},
		{[]string{"-hosts", "5", "-supervisors", "4"}, []string{"-hosts is 5", "4 -supervisors"}},
		{[]string{"-rounds", "0"}, []string{"-rounds is 0"}},
		{[]string{"-within", "0s"}, []string{"-within is 0s"}},
		{[]string{"-timeout", "-1s"}, []string{"-timeout is -1s"}},
		{[]string{"-json", "true"}, []string{`unexpected argument "true"`}},
		{[]string{"-colour"}, []string{"-colour"}},
		{ // all at once
			[]string{"-gateways", "0", "-supervisors", "0", "-hosts", "0", "-rounds", "0", "-within", "0s", "-timeout", "0s", "x"},
			[]string{"-gateways", "-supervisors", "-hosts", "-rounds", "-within", "-timeout", `"x"`},
		},
	} {
		_, err := parseFlags(row.args, io.Discard)
		for _, want := range row.want {
			require.ErrorContains(t, err, want, "%v", row.args)
		}
	}
	var usage bytes.Buffer
	_, err := parseFlags([]string{"-help"}, &usage)
	require.ErrorIs(t, err, flag.ErrHelp)
	require.Contains(t, usage.String(), "-within")
}

func TestFits(t *testing.T) {
	c := config{gateways: 16, supervisors: 20_000, hosts: 4}
	require.NoError(t, c.fits(5_200))
	require.ErrorContains(t, c.fits(5_199), "-hosts is 4; each would open 5200 files, and may open 5199")
	c.hosts = 100
	require.ErrorContains(t, c.fits(2_899), "-gateways is 16; each would open up to 2900 files")
	require.Positive(t, openFiles())
}
