// SPDX-License-Identifier: Apache-2.0

package envflag_test

import (
	"bytes"
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/examples/internal/envflag"
)

func TestParse(t *testing.T) {
	type values struct {
		Name string
		Wait time.Duration
	}
	for name, row := range map[string]struct {
		args []string
		env  map[string]string
		want values
		err  string
	}{
		"defaults":          {want: values{"anna", time.Second}},
		"the flag":          {args: []string{"-log-wait", "2s"}, want: values{"anna", 2 * time.Second}},
		"the variable":      {env: map[string]string{"P_LOG_WAIT": "3s"}, want: values{"anna", 3 * time.Second}},
		"the flag wins":     {args: []string{"-name=bea"}, env: map[string]string{"P_NAME": "carl"}, want: values{"bea", time.Second}},
		"an empty flag too": {args: []string{"-name="}, env: map[string]string{"P_NAME": "carl"}, want: values{"", time.Second}},
		"another prefix":    {env: map[string]string{"NAME": "carl"}, want: values{"anna", time.Second}},
		"a bad flag":        {args: []string{"-log-wait", "soon"}, err: "-log-wait"},
		"a bad variable":    {env: map[string]string{"P_LOG_WAIT": "soon"}, err: `invalid value "soon" for $P_LOG_WAIT (flag -log-wait)`},
		"an unknown flag":   {args: []string{"-colour"}, err: "-colour"},
		"no flag at all":    {args: []string{"start"}, err: `"start" is no flag`},
	} {
		t.Run(name, func(t *testing.T) {
			var got values
			var output bytes.Buffer
			fs := flag.NewFlagSet("test", flag.ContinueOnError)
			fs.SetOutput(&output)
			fs.StringVar(&got.Name, "name", "anna", "`name` of somebody")
			fs.DurationVar(&got.Wait, "log-wait", time.Second, "a `time`")
			err := envflag.Parse(fs, "P_", row.args, func(name string) string { return row.env[name] })
			require.Empty(t, output.String())
			if row.err != "" {
				require.ErrorContains(t, err, row.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, row.want, got)
		})
	}
}

func TestHelp(t *testing.T) {
	var output bytes.Buffer
	fs := flag.NewFlagSet("test", flag.ContinueOnError)
	fs.SetOutput(&output)
	fs.String("log-level", "info", "least `level` that is logged")
	err := envflag.Parse(fs, "P_", []string{"-help"}, func(string) string { return "" })
	require.ErrorIs(t, err, flag.ErrHelp)
	require.Equal(t, "Usage of test:\n  -log-level level\n    \tleast level that is logged [$P_LOG_LEVEL] (default \"info\")\n", output.String())
}
