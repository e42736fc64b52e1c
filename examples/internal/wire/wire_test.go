// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/forward"
	"github.com/evenring/evenring/redirect/redirectws"
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

func TestMayBeExecuted(t *testing.T) {
	web := func(kind error) error { return fmt.Errorf("redirectws: call at x: %w: %w", kind, io.EOF) }
	for name, row := range map[string]struct {
		err  error
		want bool
	}{
		"an answer":                             {nil, false},
		"grpc: nobody has it":                   {status.Error(codes.NotFound, "x"), false},
		"grpc: it answers none":                 {status.Error(codes.Unimplemented, "x"), false},
		"grpc: a gateway says unavailable":      {status.Error(codes.Unavailable, (&forward.Error{Reason: forward.Away, Member: "m"}).Error()), false},
		"grpc: the connection broke":            {status.Error(codes.Unavailable, "error reading from server: EOF"), true},
		"grpc: lost":                            {status.Error(codes.Unknown, (&forward.Error{Reason: forward.Lost, Member: "m"}).Error()), true},
		"grpc: out of time":                     {status.Error(codes.DeadlineExceeded, "x"), true},
		"websocket: nobody has it":              {&forward.Error{Reason: forward.Nobody, Member: "m"}, false},
		"websocket: unreachable":                {&forward.Error{Reason: forward.Unreachable, Member: "m"}, false},
		"websocket: lost":                       {&forward.Error{Reason: forward.Lost, Member: "m"}, true},
		"websocket: out of time":                {&forward.Error{Reason: forward.Stopped, Member: "m"}, true},
		"websocket: not sent":                   {web(forward.ErrNotSent), false},
		"websocket: the connection broke":       {web(redirect.ErrUncertain), true},
		"websocket: the gateway turned it away": {&redirectws.Error{Status: 403}, false},
		"something else":                        {errors.New("x"), false},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, row.want, MayBeExecuted(row.err)) })
	}
}
