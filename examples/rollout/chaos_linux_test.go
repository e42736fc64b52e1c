// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/examples/internal/child"
)

// shaken is a small fleet of real processes, ready to be struck.
func shaken(ctx context.Context, t *testing.T, cfg config) (*havoc, *bytes.Buffer) {
	t.Helper()
	cfg.gateways, cfg.supervisors, cfg.sessions, cfg.steps = chaosGateways, 6, 1, []string{"start", chaosStep}
	cfg.propagation, cfg.window, cfg.seed = 50*time.Millisecond, 200*time.Millisecond, 1
	f := testFleet(t, cfg)
	told := new(bytes.Buffer)
	r := &run{fleet: f, screen: newScreen(told, f.board), stdout: io.Discard}
	require.NoError(t, r.start(ctx))
	if cfg.echo > 0 {
		f.startEchoes()
	}
	h := newHavoc(r, kinds)
	require.NoError(t, h.learn(ctx))
	return h, told
}

// forced is an act of that kind.
func forced(t *testing.T, number int, name string, victims, hosts []int) act {
	t.Helper()
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
	require.NotEqual(t, -1, i, name)
	return act{kind: kinds[i], number: number, victims: victims, hosts: hosts, lasts: kinds[i].least, share: 0.5, sameName: number%2 == 0}
}

// A few acts of each sort, on real processes.
func TestChaosHolds(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*patience)
	defer cancel()
	h, told := shaken(ctx, t, config{echo: 2})
	for i, a := range []struct {
		kind    string
		victims []int
		hosts   []int
	}{
		{"refresh", nil, nil},
		{"cut-all", nil, nil},
		{"service-swallows", nil, nil},
		{"pause-gateway-briefly", []int{1}, nil},
		{"pause-hosts-briefly", nil, []int{0, 1}},
		{"stop-hosts", nil, []int{2}},
		{"drain-after-replacement", []int{2}, nil},
		{"settle", nil, nil},
		{"kill-everything", []int{0, 1, 2}, []int{0, 1, 2, 3, 4, 5}},
	} {
		require.NoError(t, h.strike(ctx, forced(t, i+1, a.kind, a.victims, a.hosts)), "%s", told)
	}
	require.NoError(t, h.forgetGhosts(ctx))
	require.Empty(t, h.judgeAll(), "%s", told)
	require.Equal(t, 9, h.sum.Acts)
	require.NotContains(t, told.String(), "FAILED")
	require.Contains(t, told.String(), "ok     act 4   pause-gateway-briefly")
}

// A gateway that leaks one goroutine with each act is found out, long before it has more open than may
// come and go.
func TestChaosFindsALeak(t *testing.T) {
	t.Setenv(leakVariable, "gateway")
	ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
	defer cancel()
	h, told := shaken(ctx, t, config{})
	leak := func(s os.Signal) kind {
		return kind{name: "planted", do: func(h *havoc, _ context.Context, _ act) error {
			var errs []error
			for _, id := range h.ids() {
				errs = append(errs, h.gateways[id].Signal(s))
			}
			return errors.Join(errs...)
		}}
	}
	for i := range 9 {
		require.NoError(t, h.strike(ctx, act{number: i + 1, kind: leak(syscall.SIGUSR1)}), "%s", told)
	}
	require.Empty(t, h.sum.ActsFailed, "%s", told)
	why := h.judgeAll()
	require.Len(t, why, 1, "%s", told)
	require.Regexp(t, `^with each act gateways have at least [01]\.\d goroutines and 0\.\d files more open$`, why[0])

	h.tidyFor = time.Second
	require.NoError(t, h.strike(ctx, act{number: 10, kind: leak(syscall.SIGUSR2)}), "%s", told)
	require.Equal(t, []int{10}, h.sum.ActsFailed, "a large one is found at once")
	require.Regexp(t, `gw-1 has .* more than what it holds explains`, told.String())
}

// A process that is paused ends with the fleet all the same.
func TestFleetClosesWhatIsPaused(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	f := testFleet(t, quick())
	_, err := f.startGateways(ctx, 2)
	require.NoError(t, err)
	require.NoError(t, f.startSupervisors(2))
	settled := func() bool { f := f.board.read(); return f.lost+f.missing+f.misplaced == 0 }
	require.NoError(t, f.poll(ctx, "not all are served", settled))
	h := &havoc{run: &run{fleet: f}}
	_, err = h.stopNow(f.ids(), f.hosts)
	require.NoError(t, err)
	require.Empty(t, f.seed(), "nobody can be joined at one that is paused")
	all := f.all()
	require.NoError(t, f.close(false))
	for _, p := range all {
		require.NoError(t, ended(t, p), p.Name)
	}
}

// However a pause ends, whoever was paused goes on.
func TestPauseEndsWithItsContext(t *testing.T) {
	f := testFleet(t, quick())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	g, err := f.startGateway(ctx)
	require.NoError(t, err)
	errTold := errors.New("told to stop")
	over, stop := context.WithCancelCause(t.Context())
	stop(errTold)
	h := &havoc{run: &run{fleet: f}}
	require.ErrorIs(t, h.pause(over, f.ids(), nil, time.Hour), errTold)
	require.False(t, g.paused)
	require.NoError(t, f.stopGateway(ctx, g.id))
}

func TestStopAtOnceSaysWhoDidNotEndWell(t *testing.T) {
	f := testFleet(t, quick())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	g, err := f.startGateway(ctx)
	require.NoError(t, err)
	require.Empty(t, f.ended())
	require.NoError(t, g.Signal(syscall.SIGSTOP))
	require.EqualError(t, stopAtOnce([]*child.Process{g.Process}, 200*time.Millisecond), "gw-1 did not end within 200ms")
	require.Equal(t, []string{"gw-1 has ended, and nobody told it to: signal: killed"}, f.ended())
	clear(f.gateways)
}

// If a process ends that nobody told to, there is no act after that, and no long wait.
func TestChaosStopsIfAProcessEnds(t *testing.T) {
	f := testFleet(t, quick())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	g, err := f.startGateway(ctx)
	require.NoError(t, err)
	told := new(bytes.Buffer)
	h := newHavoc(&run{fleet: f, screen: newScreen(told, f.board)}, kinds)
	err = h.strike(ctx, act{number: 1, kind: kind{name: "planted", do: func(*havoc, context.Context, act) error {
		g.Kill()
		return nil
	}}})
	require.ErrorContains(t, err, "no act can follow act 1: gw-1 has ended, and nobody told it to")
	require.Contains(t, told.String(), "FAILED act 1   planted")
	require.Contains(t, told.String(), "seed 0")
	clear(f.gateways)
}

// seedFor returns a seed whose first act, with that many gateways and hosts, is of that kind.
func seedFor(t *testing.T, name string, gateways, hosts int) string {
	t.Helper()
	for seed := range uint64(10_000) {
		if seed > 0 && newPlan(seed, kinds, gateways, hosts).next().name == name {
			return strconv.FormatUint(seed, 10)
		}
	}
	require.FailNow(t, "no seed begins with "+name)
	return ""
}

// The program goes through an act of the seed's choice, and says so in JSON.
func TestProgramChaos(t *testing.T) {
	p := newProgram(t, "-gateways", "3", "-supervisors", "4", "-sessions", "1", "-steps", "chaos", "-for", "1ms", "-seed", seedFor(t, "refresh", 3, 4), "-json")
	var stdout, stderr bytes.Buffer
	p.Stdout, p.Stderr = &stdout, &stderr
	p.start(t)
	require.Zero(t, p.end(t), "%s%s", &stdout, &stderr)
	lines := strings.SplitAfter(stdout.String(), "\n")
	require.Len(t, lines, 4, "the first step, an act, the step, and the end")
	var act actResult
	require.NoError(t, json.Unmarshal([]byte(lines[1]), &act))
	require.Equal(t, 1, act.Act)
	require.Equal(t, "refresh", act.Kind)
	require.True(t, act.OK)
	step := results(t, []byte(lines[2]))[0]
	require.Equal(t, chaosStep, step.Step)
	require.True(t, step.OK)
	require.Equal(t, 1, step.Acts)
	require.Equal(t, map[string]int{"refresh": 1}, step.Kinds)
	require.Contains(t, stderr.String(), "ok     act 1   refresh ")
}

// Told to stop while gateways are paused, it leaves nothing behind.
func TestProgramChaosToldToStop(t *testing.T) {
	p := newProgram(t, "-gateways", "3", "-supervisors", "4", "-sessions", "0", "-steps", "chaos", "-seed", seedFor(t, "pause-two-gateways-until-forgotten", 3, 4))
	var stdout, stderr bytes.Buffer
	p.Stdout, p.Stderr = &stdout, &stderr
	p.start(t)
	eventually(t, func() bool { return pausedChildren(t, p.Process.Pid) == 2 })
	require.NoError(t, p.Process.Signal(os.Interrupt))
	require.Equal(t, 1, p.end(t))
	require.Contains(t, stdout.String(), "FAILED act 1   pause-two-gateways-until-forgotten")
	require.Contains(t, stdout.String(), "interrupt")
	require.Empty(t, stderr.String(), "all ended well")
}

// pausedChildren counts the children of a process that are stopped.
func pausedChildren(t *testing.T, parent int) int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	n := 0
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		_, after, _ := strings.Cut(string(text), ") ")
		if strings.HasPrefix(after, fmt.Sprintf("T %d ", parent)) {
			n++
		}
	}
	return n
}
