// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/metrics"
	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestContract: a change of a name, a unit or a label is a change for
// everybody's dashboards, and shows in a diff.
func TestContract(t *testing.T) {
	var out strings.Builder
	for _, d := range metrics.All() {
		fmt.Fprintf(&out, "%s %s [%s]\n    %s\n", d.Kind, d.Name, d.Unit, d.Help)
		for _, l := range d.Labels {
			fmt.Fprintf(&out, "    %s = %s\n", l.Name, strings.Join(l.Values, " | "))
		}
	}
	path := filepath.Join("testdata", "contract.txt")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(out.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), out.String())
}

func TestConventions(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range metrics.All() {
		require.Regexp(t, `^evenring_[a-z]+(_[a-z]+)*$`, d.Name)
		require.False(t, seen[d.Name], d.Name)
		seen[d.Name] = true
		require.Equal(t, d.Kind == metrics.Counter, strings.HasSuffix(d.Name, "_total"), d.Name)
		require.Equal(t, d.Unit == "s", strings.HasSuffix(d.Name, "_seconds"), d.Name)
		require.NotEmpty(t, d.Unit, d.Name)
		require.Regexp(t, `^[A-Z].*\.$`, d.Help, d.Name)
		for _, l := range d.Labels {
			require.Contains(t, []string{"reason", "outcome"}, l.Name, "no label may hold an ID")
			require.NotEmpty(t, l.Values)
			require.Len(t, slices.Compact(slices.Sorted(slices.Values(l.Values))), len(l.Values), "twice the same value")
		}
	}
}

// TestEverySeriesExistsAtZero: the series collected are those described, all
// combinations of label values, in that order.
func TestEverySeriesExistsAtZero(t *testing.T) {
	var want []string
	for _, d := range metrics.All() {
		want = append(want, combinations(d.Name, d.Labels)...)
	}
	for name, s := range map[string]redirect.Stats{"zero": {}, "new gateway": newGateway(t).Stats()} {
		var got []string
		for sample := range metrics.Collect(s, metrics.CallStats{}) {
			got = append(got, key(sample))
			if name == "zero" {
				require.Zero(t, sample.Value, key(sample))
			}
		}
		require.Equal(t, want, got, name)
	}
}

func combinations(name string, labels []metrics.Label) []string {
	all := []string{name}
	for _, l := range labels {
		var longer []string
		for _, prefix := range all {
			for _, v := range l.Values {
				longer = append(longer, prefix+" "+v)
			}
		}
		all = longer
	}
	return all
}

func key(s metrics.Sample) string { return strings.Join(append([]string{s.Name}, s.Labels...), " ") }

// S9: with an empty view nothing is divided by zero.
func TestS9(t *testing.T) {
	values := collect(newGateway(t).Stats())
	for series, v := range values {
		require.False(t, math.IsNaN(v) || math.IsInf(v, 0) || v < 0, "%s = %v", series, v)
	}
	require.Equal(t, 1., values["evenring_load_skew_ratio"])
	require.Equal(t, 0., values["evenring_supervisors_served"])
}

// TestEveryFigureIsRead: no field of the stats is forgotten, and each shows in
// one series alone.
func TestEveryFigureIsRead(t *testing.T) {
	zero := collect(redirect.Stats{})
	fields := reflect.TypeFor[redirect.Stats]()
	for i := range fields.NumField() {
		f := fields.Field(i)
		t.Run(f.Name, func(t *testing.T) {
			var s redirect.Stats
			want := 7.
			v := reflect.ValueOf(&s).Elem().Field(i)
			switch f.Type.Kind() {
			case reflect.Bool:
				v.SetBool(true)
				want = 1
			case reflect.Int:
				v.SetInt(7)
			case reflect.Int64:
				v.SetInt(int64(7 * time.Second))
			case reflect.Uint64:
				v.SetUint(7)
			case reflect.Float64:
				v.SetFloat(7)
			case reflect.Map:
				s.Placements = map[placement.Reason]uint64{placement.Overflow: 7}
				s.OverCap = map[redirect.Reason]uint64{redirect.ReasonStay: 7}
				s.Verdicts = map[redirect.Outcome]map[redirect.Reason]uint64{
					redirect.Refuse: {redirect.ReasonDraining: 7},
				}
				keep := v.Interface()
				s = redirect.Stats{}
				v.Set(reflect.ValueOf(keep))
			default:
				t.Fatalf("a %v", f.Type)
			}
			var changed []string
			for series, value := range collect(s) {
				if value != zero[series] {
					changed = append(changed, series)
					require.Equal(t, want, value, series)
				}
			}
			require.Len(t, changed, 1, "%v", changed)
		})
	}
}

// TestLabelsFindTheirFigures: reasons do not get mixed up on the way.
func TestLabelsFindTheirFigures(t *testing.T) {
	values := collect(redirect.Stats{
		Placements: map[placement.Reason]uint64{placement.Owner: 1, placement.Full: 2},
		Verdicts: map[redirect.Outcome]map[redirect.Reason]uint64{
			redirect.Accept:   {redirect.ReasonStay: 3, redirect.ReasonLocal: 4},
			redirect.Redirect: {redirect.ReasonPlaced: 5},
		},
		OverCap:          map[redirect.Reason]uint64{redirect.ReasonFull: 6},
		RedirectsExpired: 7, HandoffsLeftBehind: 8, HandoffsMoved: 9,
	})
	for series, want := range map[string]float64{
		"evenring_placements_total owner":          1,
		"evenring_placements_total full":           2,
		"evenring_verdicts_total accept stay":      3,
		"evenring_verdicts_total accept local":     4,
		"evenring_verdicts_total redirect placed":  5,
		"evenring_over_cap_admissions_total full":  6,
		"evenring_redirects_ended_total expired":   7,
		"evenring_handoffs_total left-behind":      8,
		"evenring_handoffs_total moved":            9,
		"evenring_handoffs_total closed":           0,
		"evenring_verdicts_total redirect refused": 0,
	} {
		require.Equal(t, want, values[series], series)
	}
}

func TestCollectMayBeLeftAndRepeated(t *testing.T) {
	seq := metrics.Collect(redirect.Stats{}, metrics.CallStats{})
	total := len(slices.Collect(seq))
	for stop := range total {
		n := 0
		for range seq {
			if n == stop {
				break
			}
			n++
		}
		require.Equal(t, stop, n)
	}
	require.Len(t, slices.Collect(seq), total)
}

func TestDescriptionsAreTheCallers(t *testing.T) {
	want := metrics.All()
	got := metrics.All()
	for i := range got {
		got[i].Name = "spoilt"
		for j := range got[i].Labels {
			got[i].Labels[j].Name = "spoilt"
			got[i].Labels[j].Values[0] = "spoilt"
		}
	}
	require.Equal(t, want, metrics.All())
}

func TestKindText(t *testing.T) {
	require.Equal(t, "gauge counter kind(9)", fmt.Sprint(metrics.Gauge, metrics.Counter, metrics.Kind(9)))
}

func newGateway(t testing.TB) *redirect.Gateway {
	gw, err := redirect.NewGateway(redirect.Config{Gateway: "gw-1", Incarnation: 1}, redirect.Hooks{})
	require.NoError(t, err)
	return gw
}

func collect(s redirect.Stats) map[string]float64 { return collectAll(s, metrics.CallStats{}) }

func collectAll(s redirect.Stats, calls metrics.CallStats) map[string]float64 {
	values := map[string]float64{}
	for sample := range metrics.Collect(s, calls) {
		values[key(sample)] = sample.Value
	}
	return values
}

func BenchmarkCollect(b *testing.B) {
	s := newGateway(b).Stats()
	b.ReportAllocs()
	for b.Loop() {
		for range metrics.Collect(s, metrics.CallStats{}) {
		}
	}
}
