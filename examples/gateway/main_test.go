// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/evenring/evenring/examples/internal/gatewayd"
	"github.com/evenring/evenring/examples/internal/report"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/redirectgrpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds what should happen soon. It is spent only by a test that fails.
const patience = 20 * time.Second

// program is one run of the command.
type program struct {
	t       *testing.T
	signals chan os.Signal
	events  chan report.Event
	code    chan int
	stderr  *bytes.Buffer // to be read once the code has come
}

func start(t *testing.T, args ...string) *program {
	p := &program{
		t: t, signals: make(chan os.Signal, 4), events: make(chan report.Event, 16), code: make(chan int, 1), stderr: new(bytes.Buffer),
	}
	reader, writer := io.Pipe()
	args = append([]string{"-id", "a", "-listen", "127.0.0.1:0", "-gossip", "127.0.0.1:0", "-ops", "127.0.0.1:0", "-report"}, args...)
	go func() {
		p.code <- gatewayd.Main(p.signals, args, func(string) string { return "" }, writer, p.stderr)
		_ = writer.Close()
	}()
	go func() { _ = report.Read(reader, func(e report.Event) { p.events <- e }) }()
	return p
}

func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(patience):
		require.FailNow(t, "nothing came")
		panic("unreachable")
	}
}

// reach waits for the events that lead up to kind, and returns the first of them.
func (p *program) reach(kinds ...report.Kind) report.Event {
	p.t.Helper()
	var first report.Event
	for i, kind := range kinds {
		e := receive(p.t, p.events)
		require.Equal(p.t, kind, e.Kind)
		if i == 0 {
			first = e
		}
	}
	return first
}

// attach is a supervisor that does not obey.
func attach(t *testing.T, addr string) redirect.Stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tr := redirectgrpc.Transport{Credentials: insecure.NewCredentials()}
	_, stream, err := tr.Dial(ctx, addr, redirect.Hello{Member: "edge-1", Generation: 1, CanRedirect: true})
	require.NoError(t, err)
	require.NotNil(t, stream)
	t.Cleanup(func() { _ = stream.Close() })
	return stream
}

func TestOneSignalHandsOver(t *testing.T) {
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			p := start(t)
			p.reach(report.Listening, report.Ready)
			p.signals <- sig
			p.reach(report.Draining, report.Drained)
			require.Zero(t, receive(t, p.code), p.stderr)
		})
	}
}

func TestTwoSignalsStopAtOnce(t *testing.T) {
	p := start(t, "-propagation", "10m", "-kill-after", "20m")
	where := p.reach(report.Listening, report.Ready)
	attach(t, where.Endpoint)
	p.signals <- syscall.SIGTERM
	p.reach(report.Draining)
	p.signals <- syscall.SIGTERM
	require.Equal(t, 1, receive(t, p.code))
	require.Contains(t, p.stderr.String(), "told to stop twice")
}

func TestHangupExpiresCredentials(t *testing.T) {
	p := start(t)
	where := p.reach(report.Listening, report.Ready)
	stream := attach(t, where.Endpoint)
	p.signals <- syscall.SIGHUP
	notice, err := stream.Notice()
	require.NoError(t, err)
	require.Equal(t, redirect.ReasonExpired, notice.Reason)
	p.signals <- syscall.SIGTERM
	p.reach(report.Draining, report.Drained)
	require.Zero(t, receive(t, p.code), p.stderr)
}

func TestBadCommandLines(t *testing.T) {
	for name, row := range map[string]struct {
		args []string
		code int
		says string
	}{
		"help":      {[]string{"-help"}, 0, "Usage of gateway"},
		"a flag":    {[]string{"-window", "soon"}, 2, "-window"},
		"no file":   {[]string{"-tls-cert", "/nowhere", "-tls-key", "/nowhere"}, 2, "-tls-cert"},
		"no such":   {[]string{"-listen", "192.0.2.1:7000"}, 1, "-listen"},
		"no gossip": {[]string{"-gossip", "192.0.2.1:7946", "-listen", "127.0.0.1:0", "-ops", "127.0.0.1:0"}, 1, "-gossip"},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			code := gatewayd.Main(nil, row.args, func(string) string { return "" }, io.Discard, &stderr)
			require.Equal(t, row.code, code, stderr.String())
			require.Contains(t, stderr.String(), row.says)
		})
	}
}
