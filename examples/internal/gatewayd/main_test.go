// SPDX-License-Identifier: Apache-2.0

package gatewayd_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/evenring/evenring/examples/internal/gatewayd"
	"github.com/evenring/evenring/examples/internal/report"
	"github.com/evenring/evenring/examples/internal/tlsflags"
	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/redirectgrpc"
	"github.com/evenring/evenring/ring"
)

func TestMain(m *testing.M) {
	// Like in package gossip: a probe that is under way outlives the mesh for a moment.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/hashicorp/memberlist.(*Memberlist).probeNode"))
}

// patience bounds what should happen soon. It is spent only by a test that fails.
const patience = 20 * time.Second

// running is a gateway that a test has started.
type running struct {
	*gatewayd.Server
	t      *testing.T
	events chan report.Event
	where  report.Event // the one of kind Listening
	log    *logBook
	cancel context.CancelCauseFunc
	ended  chan error
}

// start runs a gateway on free ports, and returns once it listens. It is stopped with the test.
func start(t *testing.T, cfg gatewayd.Config) *running {
	t.Helper()
	r := &running{t: t, events: make(chan report.Event, 16), log: new(logBook), ended: make(chan error, 1)}
	reader, writer := io.Pipe()
	cfg.Listen, cfg.Gossip, cfg.Ops = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	cfg.Report = report.NewWriter(writer)
	cfg.Log = slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	server, err := gatewayd.New(cfg)
	require.NoError(t, err)
	r.Server = server
	ctx, cancel := context.WithCancelCause(context.Background())
	r.cancel = cancel
	var tasks sync.WaitGroup
	tasks.Go(func() {
		err := report.Read(reader, func(e report.Event) { r.events <- e })
		require.NoError(t, err)
	})
	tasks.Go(func() {
		r.ended <- server.Run(ctx)
		_ = writer.Close()
	})
	t.Cleanup(func() {
		cancel(nil)
		tasks.Wait()
		if t.Failed() {
			t.Logf("log of %s:\n%s", cfg.ID, r.log)
		}
	})
	r.where = r.event(report.Listening)
	return r
}

// ready runs a gateway until it is ready.
func ready(t *testing.T, cfg gatewayd.Config) *running {
	t.Helper()
	r := start(t, cfg)
	r.event(report.Ready)
	return r
}

// event returns the next event, which must be of this kind.
func (r *running) event(want report.Kind) report.Event {
	r.t.Helper()
	select {
	case e := <-r.events:
		require.Equal(r.t, want, e.Kind)
		return e
	case <-time.After(patience):
		require.FailNow(r.t, "no event", want)
		panic("unreachable")
	}
}

// end returns what Run has returned.
func (r *running) end() error {
	r.t.Helper()
	select {
	case err := <-r.ended:
		return err
	case <-time.After(patience):
		require.FailNow(r.t, "it does not end")
		panic("unreachable")
	}
}

// get reads one of the operator's pages.
func (r *running) get(path string) (int, string) {
	r.t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	response, err := client.Get("http://" + r.where.Ops + path)
	require.NoError(r.t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(r.t, err)
	return response.StatusCode, string(body)
}

// shows waits until a page contains text.
func (r *running) shows(path, text string) {
	r.t.Helper()
	require.Eventually(r.t, func() bool { _, body := r.get(path); return strings.Contains(body, text) },
		patience, 10*time.Millisecond, "%s does not show %q", path, text)
}

// dialler opens streams as a supervisor does.
type dialler struct {
	t         *testing.T
	transport redirect.Transport
}

func plain(t *testing.T) dialler {
	return dialler{t, redirectgrpc.Transport{Credentials: insecure.NewCredentials()}}
}

func secure(t *testing.T, f tlsflags.Flags) dialler {
	t.Helper()
	cfg, err := f.Client()
	require.NoError(t, err)
	if cfg == nil {
		return plain(t)
	}
	return dialler{t, redirectgrpc.Transport{Credentials: credentials.NewTLS(cfg)}}
}

func (d dialler) try(addr string, h redirect.Hello) (redirect.Verdict, redirect.Stream, error) {
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	if h.Generation == 0 {
		h.Generation = placement.Generation(time.Now().UnixNano())
	}
	verdict, stream, err := d.transport.Dial(ctx, addr, h)
	if stream != nil {
		d.t.Cleanup(func() { _ = stream.Close() })
	}
	return verdict, stream, err
}

// dial returns the verdict on a hello, and the stream if it was accepted.
func (d dialler) dial(addr string, h redirect.Hello) (redirect.Verdict, redirect.Stream) {
	d.t.Helper()
	verdict, stream, err := d.try(addr, h)
	require.NoError(d.t, err)
	return verdict, stream
}

// attach is a supervisor that follows one redirect.
func (d dialler) attach(addr string, member ring.MemberID) (redirect.Verdict, redirect.Stream) {
	d.t.Helper()
	h := redirect.Hello{Member: member, CanRedirect: true}
	verdict, stream := d.dial(addr, h)
	if verdict.Outcome == redirect.Redirect {
		h.Stay, h.Hops, h.Cap = true, 1, verdict.Cap
		verdict, stream = d.dial(verdict.Endpoint, h)
	}
	require.Equal(d.t, redirect.Accept, verdict.Outcome, "%+v", verdict)
	return verdict, stream
}

// told returns the next notice that is no heartbeat.
func told(t *testing.T, s redirect.Stream) redirect.Notice {
	t.Helper()
	notices := make(chan redirect.Notice, 1)
	failed := make(chan error, 1)
	go func() {
		for {
			n, err := s.Notice()
			if err != nil {
				failed <- err
				return
			}
			if n.Kind != redirect.NoticeHeartbeat {
				notices <- n
				return
			}
		}
	}()
	select {
	case n := <-notices:
		return n
	case err := <-failed:
		require.NoError(t, err)
	case <-time.After(patience):
		require.FailNow(t, "nothing was said")
	}
	panic("unreachable")
}

// quick drains as fast as its supervisors go.
func quick(id ring.GatewayID) gatewayd.Config {
	return gatewayd.Config{ID: id, Propagation: time.Millisecond, Window: 10 * time.Millisecond, Confirm: patience}
}

// fleet starts gateways that know each other.
func fleet(t *testing.T, configs ...gatewayd.Config) []*running {
	t.Helper()
	all := make([]*running, len(configs))
	for i, cfg := range configs {
		if i > 0 {
			cfg.Join = []string{all[0].where.Gossip}
		}
		all[i] = ready(t, cfg)
	}
	for _, r := range all {
		r.shows("/fleet", fmt.Sprintf(" %d of %d gateways placeable", len(all), len(all)))
	}
	return all
}

// logBook keeps a log.
type logBook struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *logBook) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(line)
}

func (b *logBook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// line returns the first line that contains all the words.
func (b *logBook) line(words ...string) (found string, ok bool) {
	for line := range strings.Lines(b.String()) {
		all := true
		for _, word := range words {
			all = all && strings.Contains(line, word)
		}
		if all {
			return line, true
		}
	}
	return "", false
}
