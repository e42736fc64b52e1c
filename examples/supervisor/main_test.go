// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/evenring/evenring/examples/internal/supervisord"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestExitCodes(t *testing.T) {
	stopped, stop := context.WithCancel(context.Background())
	stop()
	for name, row := range map[string]struct {
		args   []string
		code   int
		stderr string
	}{
		"stopped":          {args: []string{"-member", "m", "-service", "127.0.0.1:1"}},
		"help":             {args: []string{"-help"}, stderr: "EVENRING_SERVICE"},
		"bad command line": {args: []string{"-sessions", "-1"}, code: 2, stderr: "flag -sessions"},
		"bad address":      {args: []string{"-member", "m", "-ops", "nowhere"}, code: 1, stderr: "flag -ops"},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			code := supervisord.Main(stopped, row.args, func(string) string { return "" }, io.Discard, &stderr)
			require.Equal(t, row.code, code, stderr.String())
			require.Contains(t, stderr.String(), row.stderr)
		})
	}
}
