// SPDX-License-Identifier: Apache-2.0

package child

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/examples/internal/report"
)

// child starts a process in a role, which ends with the test at the latest.
func begin(t *testing.T, role string, args ...string) (p *Process, events <-chan report.Event, dir string) {
	t.Helper()
	dir = t.TempDir()
	all := make(chan report.Event, 16)
	p, err := Start(dir, role, "child", args, func(e report.Event) { all <- e })
	require.NoError(t, err)
	t.Cleanup(p.Kill)
	return p, all, dir
}

// childGateway starts a gateway and waits until it is ready.
func childGateway(t *testing.T) *Process {
	t.Helper()
	p, events, _ := begin(t, "gateway", "-id", "gw-1", "-listen", "127.0.0.1:0", "-gossip", "127.0.0.1:0", "-ops", "127.0.0.1:0", "-report")
	for _, want := range []report.Kind{report.Listening, report.Ready} {
		require.Equal(t, want, next(t, events).Kind)
	}
	return p
}

func next(t *testing.T, events <-chan report.Event) report.Event {
	t.Helper()
	select {
	case e := <-events:
		return e
	case <-time.After(patience):
		require.FailNow(t, "no event")
		return report.Event{}
	}
}

// ended waits for a process and returns how it ended.
func ended(t *testing.T, p *Process) error {
	t.Helper()
	select {
	case <-p.Done:
	case <-time.After(patience):
		require.FailNow(t, "it does not end")
	}
	require.NotNil(t, p.Cmd.ProcessState, "it has been waited for")
	return p.Err
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	return exit.ExitCode()
}

func TestProcessStops(t *testing.T) {
	p := childGateway(t)
	require.NoError(t, p.Stop(patience))
	require.NoError(t, ended(t, p))
	require.NoError(t, p.Signal(syscall.SIGTERM), "one that has ended already")
	require.NoError(t, p.Stop(patience))
}

func TestProcessIsKilled(t *testing.T) {
	p := childGateway(t)
	p.Kill()
	require.ErrorContains(t, ended(t, p), "signal: killed")
	require.ErrorContains(t, p.Stop(patience), "child: signal: killed")
}

func TestProcessThatDoesNotStopIsKilled(t *testing.T) {
	p, events, _ := begin(t, "test-deaf")
	require.Equal(t, report.Ready, next(t, events).Kind)
	require.EqualError(t, p.Stop(50*time.Millisecond), "child did not end within 50ms")
	require.ErrorContains(t, ended(t, p), "signal: killed")
}

func TestProcessEndsWithItsParent(t *testing.T) {
	gateway := childGateway(t)
	supervisor, _, _ := begin(t, "supervisor", "-service", "127.0.0.1:1", "-member", "edge-1")
	for _, p := range []*Process{gateway, supervisor} {
		require.NoError(t, p.Life.Close())
		require.Equal(t, 3, exitCode(t, ended(t, p)))
	}
}

func TestProcessWithABadReport(t *testing.T) {
	p, events, _ := begin(t, "test-babbler")
	require.Equal(t, report.Ready, next(t, events).Kind)
	require.ErrorContains(t, ended(t, p), `"no event"`)
	require.ErrorContains(t, p.Stop(patience), `"no event"`)
}

func TestProcessWithABadCommandLine(t *testing.T) {
	for _, role := range []string{"gateway", "supervisor"} {
		p, _, dir := begin(t, role, "-colour", "red")
		require.Equal(t, 2, exitCode(t, ended(t, p)))
		require.Contains(t, Tail(dir, 100), "-colour")
	}
}

func TestProcessWithoutSuchARole(t *testing.T) {
	p, _, dir := begin(t, "balancer")
	require.Equal(t, 2, exitCode(t, ended(t, p)))
	require.Equal(t, "== child.log\nchild: EVENRING_CHILD_ROLE is \"balancer\"; it is for this program's own use\n", Tail(dir, 1))
}

func TestStartWithoutAPlaceForTheLog(t *testing.T) {
	_, err := Start(filepath.Join(t.TempDir(), "missing"), "gateway", "gw-1", nil, nil)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestTail(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	require.Empty(t, Tail(dir, 2))
	write("b.log", strings.Repeat("early\n", 10)+"late\nlast\n")
	write("a.log", "only\n")
	write("c.log", "")
	write("d.txt", "no log\n")
	require.Equal(t, "== a.log\nonly\n== b.log\nlate\nlast\n== c.log\n\n", Tail(dir, 2))
}
