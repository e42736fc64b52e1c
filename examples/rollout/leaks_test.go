// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/examples/internal/child"
)

func TestBill(t *testing.T) {
	few := []sample{{"gw-1", 1, 2, usage{30, 10}}, {"gw-2", 2, 3, usage{38, 13}}}
	many := []sample{{"gw-1", 1, 6, usage{62, 22}}, {"gw-2", 2, 5, usage{54, 19}}}
	hosts := []sample{{"host-edge-1", 3, 0, usage{40, 20}}}
	b, err := newBill(few, many, hosts)
	require.NoError(t, err)
	require.Equal(t, bill{gateway: usage{14, 4}, each: usage{8, 3}, hosts: map[string]usage{"host-edge-1": {40, 20}}}, b)

	slack := usage{5, 2}
	for _, row := range []struct {
		name string
		s    sample
		over usage
		want string // empty: it holds
	}{
		{"as it was", many[0], usage{0, 0}, ""},
		{"a new one that serves nobody", sample{"gw-3", 9, 0, usage{14, 4}}, usage{0, 0}, ""},
		{"without links", sample{"gw-3", 9, 0, usage{9, 2}}, usage{-5, -2}, ""},
		{"within the slack", sample{"gw-1", 1, 10, usage{99, 36}}, usage{5, 2}, ""},
		{"goroutines", sample{"gw-1", 1, 10, usage{100, 34}}, usage{6, 0}, "gw-1 has 100.0 goroutines and 34.0 files, 6.0 goroutines and 0.0 files more than what it holds explains"},
		{"files", sample{"gw-1", 1, 10, usage{94, 37}}, usage{0, 3}, "gw-1 has 94.0 goroutines and 37.0 files"},
		{"the streams have gone and what served them has not", sample{"gw-1", 1, 0, usage{62, 22}}, usage{48, 18}, "48.0 goroutines and 18.0 files more"},
		{"a host as it was, started again", sample{"host-edge-1", 8, 0, usage{40, 20}}, usage{0, 0}, ""},
		{"a host", sample{"host-edge-1", 3, 0, usage{46, 20}}, usage{6, 0}, "host-edge-1 has 46.0 goroutines"},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.over, b.over(row.s))
			why := b.judge([]sample{many[1], row.s}, slack)
			if row.want == "" {
				require.Empty(t, why)
				return
			}
			require.Len(t, why, 1)
			require.Contains(t, why[0], row.want)
		})
	}
}

func TestBillNeedsAnotherNumberOfSupervisors(t *testing.T) {
	same := []sample{{"gw-1", 1, 2, usage{30, 10}}}
	_, err := newBill(same, same, nil)
	require.ErrorContains(t, err, "0 supervisors more are not enough")
}

func TestBillKeepsAHistory(t *testing.T) {
	b, open := bill{gateway: usage{10, 5}}, make(history)
	require.Equal(t, usage{2, 0}, b.note([]sample{{"gw-1", 1, 0, usage{12, 4}}, {"gw-2", 1, 0, usage{11, 5}}}, open, true))
	require.Equal(t, usage{9, 9}, b.note([]sample{{"gw-1", 1, 0, usage{19, 14}}}, open, false))
	require.Equal(t, usage{0, 1}, b.note([]sample{{"gw-1", 1, 0, usage{9, 6}}, {"gw-2", 2, 0, usage{10, 5}}}, open, true))
	require.Equal(t, history{
		"gw-1/1": {3, []moment{{1, usage{2, -1}}, {3, usage{-1, 1}}}},
		"gw-2/1": {1, []moment{{1, usage{1, 0}}}},
		"gw-2/2": {1, []moment{{1, usage{0, 0}}}},
	}, open, "another process is another history")
}

func TestLower(t *testing.T) {
	before := []sample{{"gw-1", 1, 2, usage{30, 10}}, {"gw-2", 2, 3, usage{38, 13}}}
	require.True(t, lower(before, []sample{{"gw-1", 1, 2, usage{29, 11}}, {"gw-2", 2, 3, usage{39, 12}}}))
	require.Equal(t, []sample{{"gw-1", 1, 2, usage{29, 10}}, {"gw-2", 2, 3, usage{38, 12}}}, before)
	for name, now := range map[string][]sample{
		"one fewer":            before[:1],
		"serves more":          {before[0], {"gw-2", 2, 4, usage{}}},
		"another process":      {before[0], {"gw-2", 7, 3, usage{}}},
		"another one entirely": {before[0], {"gw-3", 2, 3, usage{}}},
	} {
		require.False(t, lower(before, now), name)
	}
	require.False(t, lower(nil, before))
}

// lived is the life of a process that was looked at after each act.
func lived(looks ...usage) *life {
	l := &life{acts: len(looks)}
	for i, over := range looks {
		l.looks = append(l.looks, moment{i + 1, over})
	}
	return l
}

func TestGrowth(t *testing.T) {
	rises := func(by usage, noise ...float64) *life {
		looks := make([]usage, len(noise))
		for i, n := range noise {
			looks[i] = by.times(float64(i)).plus(usage{n, n})
		}
		return lived(looks...)
	}
	still := []float64{3, 3, 3, 3, 3, 3}
	noisy := []float64{0, 4, 1, 5, 0, 3, 1, 4, 0, 5, 1, 4}
	for _, row := range []struct {
		name        string
		open        history
		least, most usage
	}{
		{"nothing", nil, usage{}, usage{}},
		{"one look at each", history{"a": lived(usage{5, 5}), "b": lived(usage{9, 9})}, usage{}, usage{}},
		{"still, whatever they began with", history{"a": rises(usage{}, still...), "b": rises(usage{}, still[:3]...)}, usage{}, usage{}},
		{"one goroutine with each act", history{"a": rises(usage{1, 0}, still...), "b": rises(usage{1, 0}, -8, -8, -8)}, usage{1, 0}, usage{1, 0}},
		{"files", history{"a": rises(usage{0, 2}, still...)}, usage{0, 2}, usage{0, 2}},
		{"in one process of two", history{"a": rises(usage{2, 0}, noisy...), "b": rises(usage{}, noisy...)}, usage{0.3, 0}, usage{1, 0}},
		{"up and down", history{"a": rises(usage{}, noisy...)}, usage{}, usage{}},
		{"up and down, and up with each act", history{"a": rises(usage{1, 0}, noisy...)}, usage{0.3, 0}, usage{1, 0}},
		{"falls", history{"a": rises(usage{-2, -1}, still...)}, usage{}, usage{}},
		{"too few looks to tell", history{"a": rises(usage{1, 0}, still[:5]...)}, usage{}, usage{}},
		{"few looks in a long life", history{"a": {9, []moment{{2, usage{2, 0}}, {3, usage{3, 0}}, {4, usage{4, 0}}, {7, usage{7, 0}}, {8, usage{8, 0}}, {9, usage{9, 0}}}}}, usage{1, 0}, usage{1, 0}},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := row.open.growth()
			require.GreaterOrEqual(t, got.Goroutines, row.least.Goroutines-1e-6)
			require.GreaterOrEqual(t, got.Files, row.least.Files-1e-6)
			require.LessOrEqual(t, got.Goroutines, row.most.Goroutines+1e-6)
			require.LessOrEqual(t, got.Files, row.most.Files+1e-6)
		})
	}
}

func TestSamplesFaults(t *testing.T) {
	r := paper(config{}, "gw-1")
	r.gateways["gw-1"].Process = &child.Process{Name: "gw-1", Cmd: &exec.Cmd{Process: &os.Process{Pid: 7}}}
	r.gateways["gw-1"].ops = opsPage(t, http.StatusOK, metricsPage)
	_, _, err := r.samples(t.Context())
	require.ErrorContains(t, err, "gw-1: /metrics lacks process_open_fds")
	r.gateways["gw-1"].ops = opsPage(t, http.StatusOK, metricsPage+"# TYPE process_open_fds gauge\nprocess_open_fds 9\n")
	gateways, hosts, err := r.samples(t.Context())
	require.NoError(t, err)
	require.Equal(t, []sample{{"gw-1", 7, 4, usage{17, 9}}}, gateways)
	require.Empty(t, hosts)
	r.gateways["gw-1"].ops = opsPage(t, http.StatusInternalServerError, "")
	_, _, err = r.samples(t.Context())
	require.ErrorContains(t, err, "gw-1: ")
	http.DefaultClient.CloseIdleConnections()
}
