// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/evenring/evenring/examples/internal/child"
)

// programVariable makes the test binary the program itself.
const programVariable = "EVENRING_CONVERGENCE_TEST_PROGRAM"

// generous is a bound that only a hang should meet.
const generous = time.Minute

// The test binary is what the fleet's processes run: this program, in whatever role it is told.
func TestMain(m *testing.M) {
	if os.Getenv(child.RoleVariable) != "" || os.Getenv(programVariable) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

// program prepares this program as a process of its own. It ends with the test at the latest.
func program(t *testing.T, args ...string) (cmd *exec.Cmd, stdout, stderr *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd = exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), programVariable+"=1", "TMPDIR="+t.TempDir())
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	return cmd, stdout, stderr
}

func status(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	if err == nil {
		return 0
	}
	require.ErrorAs(t, err, &exit)
	return exit.ExitCode()
}

// Everybody comes back at once, twice, and all gateways agree with the supervisors.
func TestProgram(t *testing.T) {
	cmd, stdout, stderr := program(t, "-gateways", "3", "-supervisors", "60", "-hosts", "2", "-rounds", "2", "-within", generous.String(), "-json")
	require.NoError(t, cmd.Run(), "%s%s", stdout, stderr)

	decoder := json.NewDecoder(stdout)
	decoder.DisallowUnknownFields()
	for round := range 3 {
		var res result
		require.NoError(t, decoder.Decode(&res))
		require.Equal(t, round, res.Round)
		require.True(t, res.OK, "%+v", res)
		require.Equal(t, []int{3, 60, 2}, []int{res.Gateways, res.Supervisors, res.Hosts})
		require.Positive(t, res.BurstMS)
		require.Positive(t, res.Lag.Max, "some gateway is told by another")
		for _, s := range []spans{res.Agree, res.Lag} {
			require.LessOrEqual(t, s.P50, s.P99)
			require.LessOrEqual(t, s.P99, s.Max)
			require.Less(t, s.Max, millis(generous))
		}
		require.Len(t, res.Each, 3)
		for _, s := range res.Each {
			require.Positive(t, s.MessagesSent, "%+v", s)
			require.Positive(t, s.MessagesReceived, "%+v", s)
			require.Positive(t, s.BytesSent, "%+v", s)
			require.Positive(t, s.BytesReceived, "%+v", s)
			require.Positive(t, s.Streams, "%+v", s)
		}
		require.Positive(t, res.CPU.Gateways)
		require.Positive(t, res.CPU.Hosts)
	}
	var sum summary
	require.NoError(t, decoder.Decode(&sum))
	require.False(t, decoder.More())
	require.True(t, sum.OK)
	require.Equal(t, 3, sum.Rounds)
	require.Len(t, sum.Gateways, 3)
	require.Contains(t, stderr.String(), "The rosters agreed and were right after every burst: ")
	left, err := os.ReadDir(tempDir(cmd))
	require.NoError(t, err)
	require.Empty(t, left, "a good run keeps no logs")
}

// tempDir is where the program puts its logs.
func tempDir(cmd *exec.Cmd) string {
	last := cmd.Env[len(cmd.Env)-1]
	return last[len("TMPDIR="):]
}

// A bound that nothing can meet is not met, and the figures are told all the same.
func TestProgramTooLate(t *testing.T) {
	cmd, stdout, stderr := program(t, "-gateways", "2", "-supervisors", "4", "-hosts", "1", "-rounds", "1", "-within", "1ns")
	require.Equal(t, 1, status(t, cmd.Run()), "%s%s", stdout, stderr)
	require.Regexp(t, `FAILED (start  |burst 1)  all attached after .*
.*
       all agreed only after [\d.]+ ms, not within 1ns
`, stdout)
	require.Contains(t, stdout.String(), "The rosters were not always right in time: ")
	require.Contains(t, stdout.String(), "Logs are in "+tempDir(cmd))
	logs, err := filepath.Glob(filepath.Join(tempDir(cmd), "convergence-*", "gw-2.log"))
	require.NoError(t, err)
	require.Len(t, logs, 1)
}

func TestProgramHasNoTime(t *testing.T) {
	cmd, _, stderr := program(t, "-gateways", "2", "-supervisors", "4", "-timeout", "1ms")
	require.Equal(t, 1, status(t, cmd.Run()))
	require.Contains(t, stderr.String(), "-timeout of 1ms is over")
}

func TestShowRefusesABadCommandLine(t *testing.T) {
	var stdout, stderr bytes.Buffer
	require.Equal(t, 2, show([]string{"-gateways", "0"}, &stdout, &stderr))
	require.Equal(t, "convergence: -gateways is 0; at least 1 is needed\n", stderr.String())
	stderr.Reset()
	require.Equal(t, 2, show([]string{"-supervisors", "2000000000", "-hosts", "1"}, &stdout, &stderr))
	require.Contains(t, stderr.String(), "convergence: -hosts is 1; each would open 2000000200 files")
	stderr.Reset()
	require.Zero(t, show([]string{"-help"}, &stdout, &stderr))
	require.Contains(t, stderr.String(), "-supervisors")
	require.Empty(t, stdout.String())
}

func TestShowWithoutAPlaceForLogs(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	var stdout, stderr bytes.Buffer
	require.Equal(t, 1, show([]string{"-gateways", "1", "-supervisors", "1", "-hosts", "1"}, &stdout, &stderr))
	require.Contains(t, stderr.String(), "missing")
}

// A gateway that ends is not waited for.
func TestRoundWithoutAGateway(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	f, err := newFleet(config{gateways: 2, supervisors: 2, hosts: 1, rounds: 1, within: generous})
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.close(true) })
	require.NoError(t, f.startGateways(t.Context()))
	res, err := f.round(t.Context(), 0)
	require.NoError(t, err)
	require.True(t, res.OK, res.Why)

	require.NoError(t, f.gateways[1].Signal(syscall.SIGKILL))
	<-f.gateways[1].Done
	require.ErrorIs(t, f.ended(), errEnded)
	err = f.poll(t.Context(), "never", func() (bool, error) { return false, nil })
	require.ErrorIs(t, err, errEnded)
	require.ErrorContains(t, err, "gw-2 has ended")
	_, err = f.round(t.Context(), 1)
	require.ErrorContains(t, err, "gw-2")
}

func TestGatewayThatEndsAtOnce(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("EVENRING_PROPAGATION", "-1s")
	f, err := newFleet(config{gateways: 2, supervisors: 2, hosts: 1})
	require.NoError(t, err)
	err = f.startGateways(t.Context())
	require.ErrorContains(t, err, "gw-1 ended at once: exit status 2")
	require.ErrorContains(t, f.close(false), "gw-1: exit status 2")
	require.DirExists(t, f.dir, "the logs tell why")
}

var errGone = errors.New("gone")

// unread is an output that nobody reads any more.
type unread struct{}

func (unread) Write([]byte) (int, error) { return 0, errGone }

func TestPrinterThatNobodyReads(t *testing.T) {
	p := printer{people: new(bytes.Buffer), machine: json.NewEncoder(unread{})}
	require.ErrorIs(t, p.round(result{}), errGone)
	require.ErrorIs(t, p.summary(summary{}), errGone)
}
