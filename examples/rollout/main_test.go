// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/evenring/evenring/examples/internal/child"
)

// programVariable makes the test binary the program itself.
const programVariable = "EVENRING_ROLLOUT_TEST_PROGRAM"

// The test binary is what the fleet's processes run: this program, in whatever role it is told.
func TestMain(m *testing.M) {
	if role := os.Getenv(child.RoleVariable); role != "" && role == os.Getenv(leakVariable) {
		leakWhenTold()
	}
	if os.Getenv(child.RoleVariable) != "" || os.Getenv(programVariable) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

// program is this program, run as a process of its own.
type program struct {
	*exec.Cmd
	temp  string   // its directory for temporary files
	alive *os.File // ends once neither it nor anything that it started lives
}

// newProgram prepares a run. Its standard input and output are the caller's to set.
func newProgram(t *testing.T, args ...string) *program {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	p := &program{Cmd: exec.Command(self, args...), temp: t.TempDir()}
	p.Env = append(os.Environ(), programVariable+"=1", "TMPDIR="+p.temp)
	return p
}

// start starts it. Whatever it leaves behind is found by a pipe that every
// descendant inherits: it ends with the last of them.
func (p *program) start(t *testing.T) {
	t.Helper()
	alive, inherited, err := os.Pipe()
	require.NoError(t, err)
	p.alive = alive
	p.ExtraFiles = []*os.File{inherited}
	require.NoError(t, p.Start())
	require.NoError(t, inherited.Close())
	t.Cleanup(func() {
		_ = p.Process.Kill()
		_ = p.Wait()
		_ = alive.Close()
	})
}

// end waits for it and returns the exit status. No descendant may be left.
func (p *program) end(t *testing.T) int {
	t.Helper()
	err := p.Wait()
	if exit := new(exec.ExitError); !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	require.NoError(t, p.alive.SetReadDeadline(time.Now().Add(patience)))
	_, err = p.alive.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "a process has outlived the program")
	return p.ProcessState.ExitCode()
}

// results reads what -json prints: one object a line, and nothing else.
func results(t *testing.T, stdout []byte) (all []result) {
	t.Helper()
	for line := range bytes.Lines(stdout) {
		var res result
		decoder := json.NewDecoder(bytes.NewReader(line))
		decoder.DisallowUnknownFields()
		require.NoError(t, decoder.Decode(&res), "%q", line)
		again, err := json.Marshal(res)
		require.NoError(t, err)
		require.Equal(t, string(again)+"\n", string(line))
		all = append(all, res)
	}
	return all
}

func TestProgram(t *testing.T) {
	p := newProgram(t, "-gateways", "2", "-supervisors", "2", "-json")
	var stdout, stderr bytes.Buffer
	p.Stdout, p.Stderr = &stdout, &stderr
	p.start(t)
	require.Zero(t, p.end(t), "%s%s", &stdout, &stderr)

	all := results(t, stdout.Bytes())
	require.Len(t, all, len(allSteps))
	for i, res := range all {
		require.Equal(t, allSteps[i], res.Step)
		require.True(t, res.OK, "%+v", res)
		require.Positive(t, res.Seconds, "%+v", res)
		require.LessOrEqual(t, res.Spread, 1, "%+v", res)
		require.Zero(t, res.Lost+res.Misplaced+res.Refused, "%+v", res)
		require.Equal(t, 2*res.Supervisors, res.Sessions, "%+v", res)
		require.Len(t, res.Served, res.Gateways, "%+v", res)
		served := 0
		for _, n := range res.Served {
			served += n
		}
		require.Equal(t, res.Supervisors, served, "%+v", res)
	}
	start, refresh, rolling, crash, up := all[0], all[2], all[3], all[4], all[5]
	require.Equal(t, map[string]int{"gw-1": 1, "gw-2": 1}, start.Served)
	require.Zero(t, refresh.Moved)
	require.Positive(t, refresh.GapMSMax)
	require.Equal(t, map[string]int{"gw-3": 1, "gw-4": 1}, rolling.Served)
	require.Equal(t, 2, rolling.Moved)
	require.Equal(t, 1, rolling.MaxMoves)
	require.Zero(t, rolling.GapMSMax)
	require.Equal(t, 1, crash.Gateways)
	require.Equal(t, 1, crash.Moved)
	require.Equal(t, 2, up.Gateways)
	require.Zero(t, up.Moved)
	require.Equal(t, 2, up.Served["gw-5"])

	require.True(t, strings.HasSuffix(stderr.String(), "\nEvery step held.\n"), "%s", &stderr)
	left, err := os.ReadDir(p.temp)
	require.NoError(t, err)
	require.Empty(t, left, "a good run keeps no logs")
}

// However the program ends, its children do not outlive it.
func TestProgramKilledTakesItsFleetAlong(t *testing.T) {
	p := newProgram(t, "-gateways", "2", "-supervisors", "2", "-json", "-steps", "rolling")
	stdout, err := p.StdoutPipe()
	require.NoError(t, err)
	p.start(t)
	line, err := bufio.NewReader(stdout).ReadBytes('\n') // everything runs
	require.NoError(t, err)
	require.True(t, results(t, line)[0].OK)
	require.NoError(t, p.alive.SetReadDeadline(time.Now()))
	_, err = p.alive.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)

	require.NoError(t, p.Process.Kill())
	require.Equal(t, -1, p.end(t))
}

func TestProgramToldToStop(t *testing.T) {
	p := newProgram(t, "-gateways", "2", "-supervisors", "2", "-steps", "rolling,crash")
	stdout, err := p.StdoutPipe()
	require.NoError(t, err)
	var stderr bytes.Buffer
	p.Stderr = &stderr
	p.start(t)
	lines := bufio.NewReader(stdout)
	for line := ""; !strings.HasPrefix(line, "ok     start"); {
		line, err = lines.ReadString('\n')
		require.NoError(t, err)
	}
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	rest, err := io.ReadAll(lines)
	require.NoError(t, err)
	require.Equal(t, 1, p.end(t))
	require.NotContains(t, string(rest), "ok     ")
	require.Regexp(t, `not run, for terminated signal received: (rolling, )?crash\n`, string(rest)) // it may have come between two steps
	require.Contains(t, string(rest), "\n2 of 3 steps did not hold.\nLogs are in "+p.temp)
	require.Empty(t, stderr.String(), "all ended well")
}

// showed is what a run within the test has printed.
type showed struct {
	stdout, stderr bytes.Buffer
	temp           string
}

// showHere runs the steps within the test and returns the exit status.
func showHere(t *testing.T, args ...string) (*showed, int) {
	t.Helper()
	s := &showed{temp: t.TempDir()}
	t.Setenv("TMPDIR", s.temp)
	status := show(args, &s.stdout, &s.stderr)
	return s, status
}

func TestShowWithoutSurge(t *testing.T) {
	s, status := showHere(t, "-gateways", "2", "-supervisors", "4", "-sessions", "1", "-surge=false", "-steps", "rolling", "-propagation", "50ms", "-window", "200ms")
	require.Zero(t, status, "%s%s", &s.stdout, &s.stderr)
	require.Empty(t, s.stderr.String())
	require.Regexp(t, `^2 gateways, 4 supervisors with 1 sessions each, the Service at 127\.0\.0\.1:\d+, seed \d+
ok     start  .*  spread 0  .*  gw-1:2 gw-2:2
ok     rolling  .*  spread 4  .*  gap 0 ms  misplaced 0  gw-3:4 gw-4:0
       without surge .* the last one to join stays empty \(spread 4\), and some moved 2 times
Every step held\.
$`, s.stdout.String())
}

func TestShowFails(t *testing.T) {
	s, status := showHere(t, "-gateways", "2", "-supervisors", "2", "-steps", "rolling", "-timeout", "300ms", "-json")
	require.Equal(t, 1, status)
	all := results(t, s.stdout.Bytes())
	require.Len(t, all, 1)
	require.Equal(t, "start", all[0].Step)
	require.False(t, all[0].OK)
	require.Contains(t, all[0].Why, "-timeout of 300ms is over")

	text := s.stderr.String()
	require.Contains(t, text, "FAILED start")
	require.Contains(t, text, "not run, for -timeout of 300ms is over: rolling\n")
	require.Contains(t, text, "2 of 2 steps did not hold.\n")
	require.Contains(t, text, "== gw-1.log\n")
	require.Regexp(t, `\nLogs are in `+s.temp+`/rollout-\d+\n$`, text)
	logs, err := filepath.Glob(filepath.Join(s.temp, "rollout-*", "gw-1.log"))
	require.NoError(t, err)
	require.Len(t, logs, 1)
}

// failing is an output that nobody reads any more.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("nobody reads") }

func TestShowFailsIfItCannotTell(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var stderr bytes.Buffer
	require.Equal(t, 1, show([]string{"-gateways", "1", "-supervisors", "1", "-json", "-steps", "rolling"}, failing{}, &stderr))
	require.Contains(t, stderr.String(), "rollout: nobody reads\n")
	require.Contains(t, stderr.String(), "2 of 2 steps did not hold.\n")
}

func TestShowWithoutAPlaceForLogs(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	var stdout, stderr bytes.Buffer
	require.Equal(t, 1, show(nil, &stdout, &stderr))
	require.Empty(t, stdout.String())
	require.Contains(t, stderr.String(), "missing")
}

func TestShowRefusesABadCommandLine(t *testing.T) {
	s, status := showHere(t, "-gateways", "0")
	require.Equal(t, 2, status)
	require.Empty(t, s.stdout.String())
	require.Equal(t, "rollout: -gateways is 0; at least 1 is needed\n", s.stderr.String())

	s, status = showHere(t, "-help")
	require.Zero(t, status)
	require.Empty(t, s.stdout.String())
	require.Contains(t, s.stderr.String(), "-supervisors")
}
