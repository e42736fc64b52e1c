// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"flag"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFlag(t *testing.T) {
	for _, row := range []struct {
		args []string
		want Kind
		err  string
	}{
		{nil, GRPC, ""},
		{[]string{"-transport", "grpc"}, GRPC, ""},
		{[]string{"-transport", "websocket"}, WebSocket, ""},
		{[]string{"-transport", "WebSocket"}, GRPC, `-transport: "WebSocket" is no transport; there are grpc and websocket`},
		{[]string{"-transport", ""}, GRPC, "-transport"},
	} {
		fs := flag.NewFlagSet("test", flag.ContinueOnError)
		fs.SetOutput(io.Discard)
		kind := Register(fs)
		err := fs.Parse(row.args)
		if row.err != "" {
			require.ErrorContains(t, err, row.err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, row.want, *kind)
	}
}

func TestKindText(t *testing.T) {
	for kind := range kindCount {
		text, err := kind.MarshalText()
		require.NoError(t, err)
		again := kindCount
		require.NoError(t, again.UnmarshalText(text))
		require.Equal(t, kind, again)
		require.NoError(t, kind.Validate())
	}
	require.ErrorContains(t, kindCount.Validate(), "-transport: there is no transport 2")
}
