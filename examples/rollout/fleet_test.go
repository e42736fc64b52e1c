// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/examples/internal/child"
)

// testFleet is a fleet in which nothing runs yet. Whatever does is ended with
// the test, and must be.
func testFleet(t *testing.T, cfg config) *fleet {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	f, err := newFleet(cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = f.close(true)
		for _, p := range f.all() {
			require.NotNil(t, p.Cmd.ProcessState, "%s has not ended", p.Name)
		}
	})
	return f
}

// all returns every process that is to run.
func (f *fleet) all() []*child.Process {
	supervisors, gateways := f.processes()
	return append(supervisors, gateways...)
}

// ended waits for a process and returns how it ended.
func ended(t *testing.T, p *child.Process) error {
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

func quick() config {
	return config{gateways: 2, supervisors: 2, sessions: 1, surge: true, propagation: time.Millisecond, window: 10 * time.Millisecond}
}

func TestFleetGrowsServesAndEnds(t *testing.T) {
	f := testFleet(t, quick())
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	require.Empty(t, f.seed())
	_, err := f.startGateways(ctx, 2)
	require.NoError(t, err)
	require.Equal(t, f.gateways["gw-1"].gossip, f.seed())
	g, err := f.startGateway(ctx)
	require.NoError(t, err)
	require.Equal(t, "gw-3", g.id)
	require.Equal(t, []string{"gw-1", "gw-2", "gw-3"}, f.ids())
	require.Equal(t, 3, f.balance.ready())

	require.NoError(t, f.startSupervisors(hosts+4))
	require.Len(t, f.hosts, hosts)
	names := make(map[string]bool)
	for _, h := range f.hosts {
		require.LessOrEqual(t, len(h.members), 2)
		for _, name := range h.members {
			names[name] = true
		}
	}
	require.Len(t, names, hosts+4)
	settled := func() bool { f := f.board.read(); return f.lost+f.missing+f.misplaced == 0 }
	require.NoError(t, f.poll(ctx, "not all are served", settled))

	first := f.gateways["gw-1"].Process
	require.NoError(t, f.stopGateway(ctx, "gw-1"))
	require.NoError(t, ended(t, first))
	require.Equal(t, []string{"gw-2", "gw-3"}, f.ids())
	require.Equal(t, f.gateways["gw-2"].gossip, f.seed())
	require.NoError(t, f.poll(ctx, "not all are served", settled))
	now := f.board.read()
	require.Zero(t, now.served["gw-1"])

	all := f.all()
	require.NoError(t, f.close(false))
	for _, p := range all {
		require.NoError(t, ended(t, p), p.Name)
	}
	require.NoDirExists(t, f.dir)
}

func TestFleetGatewayThatEndsAtOnce(t *testing.T) {
	cfg := quick()
	cfg.window = -time.Second
	f := testFleet(t, cfg)
	_, err := f.startGateways(t.Context(), 2)
	require.ErrorContains(t, err, "gw-1 ended at once: exit status 2")
	require.Contains(t, child.Tail(f.dir, 100), "-window")
	require.ErrorContains(t, f.close(false), "gw-1: exit status 2")
	require.DirExists(t, f.dir, "the logs tell why")
}

func TestFleetHasNoTimeForAGateway(t *testing.T) {
	f := testFleet(t, quick())
	errOver := errors.New("time is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errOver)
	_, err := f.startGateway(ctx)
	require.ErrorIs(t, err, errOver)
	require.ErrorContains(t, err, "gw-1")
}

func TestFleetSupervisorsThatEndAtOnce(t *testing.T) {
	cfg := quick()
	cfg.sessions = -1
	f := testFleet(t, cfg)
	require.NoError(t, f.startSupervisors(2))
	for _, p := range f.all() {
		require.Equal(t, 2, exitCode(t, ended(t, p)))
	}
	err := f.close(false)
	require.ErrorContains(t, err, "host-edge-1: exit status 2")
	require.ErrorContains(t, err, "host-edge-2: exit status 2")
}

func TestFleetStartsNobody(t *testing.T) {
	f := testFleet(t, quick())
	require.NoError(t, f.startSupervisors(0))
	require.Empty(t, f.hosts)
}

func TestFleetKeepsLogsIfToldTo(t *testing.T) {
	f := testFleet(t, quick())
	require.NoError(t, f.close(true))
	require.DirExists(t, f.dir)
	require.NoError(t, os.RemoveAll(f.dir))
}
