// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

func TestParsePlan(t *testing.T) {
	for _, c := range []struct {
		text string
		want placement.Plan
	}{
		{"", nil},
		{" ; ;\n", nil},
		{
			"stop a b; start a;crash c ;join d; arrive 10; leave 3; leave 4 from a; settle; settle 5;",
			placement.Plan{
				placement.Stop{"a", "b"}, placement.Start{"a"}, placement.Crash{"c"}, placement.Join{"d"}, placement.Arrive{Count: 10},
				placement.Leave{Count: 3}, placement.Leave{Count: 4, From: "a"}, placement.Settle{}, placement.Settle{Budget: 5},
			},
		},
		{"stop\tstop\n from", placement.Plan{placement.Stop{"stop", "from"}}},
		{"leave 0 from from; arrive 007", placement.Plan{placement.Leave{From: "from"}, placement.Arrive{Count: 7}}},
		{`join "a; b" "" "c,d" "\"" "\n"; stop "e"`, placement.Plan{placement.Join{"a; b", "", "c,d", `"`, "\n"}, placement.Stop{"e"}}},
	} {
		plan, err := placement.ParsePlan(c.text)
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, plan, c.text)
	}
}

// An error names the step and the word.
func TestParsePlanErrors(t *testing.T) {
	for text, want := range map[string]string{
		"stop a; rest  a while; stop b": `placement: step 2 (rest a while): "rest" is no step; there are stop, start, crash, join, arrive, leave and settle`,
		"; stop":                        `placement: step 1 (stop): it names no gateway`,
		`"stop" a`:                      `placement: step 1 ("stop" a): "stop" is no step; there are stop, start, crash, join, arrive, leave and settle`,
		"arrive":                        `placement: step 1 (arrive): it lacks a number`,
		"arrive many":                   `placement: step 1 (arrive many): "many" is no number of supervisors`,
		"arrive -1":                     `placement: step 1 (arrive -1): "-1" is no number of supervisors`,
		"arrive +1":                     `placement: step 1 (arrive +1): "+1" is no number of supervisors`,
		`arrive "1"`:                    `placement: step 1 (arrive "1"): "1" is no number of supervisors`,
		"arrive 99999999999999999999":   `placement: step 1 (arrive 99999999999999999999): "99999999999999999999" is too large a number`,
		"arrive 1 a":                    `placement: step 1 (arrive 1 a): "a" is one word too many`,
		"leave":                         `placement: step 1 (leave): it lacks a number`,
		"leave 1 to a":                  `placement: step 1 (leave 1 to a): "to" stands where from should`,
		`leave 1 "from" a`:              `placement: step 1 (leave 1 "from" a): "from" stands where from should`,
		"leave 1 from":                  `placement: step 1 (leave 1 from): it names no gateway after from`,
		`leave 1 from ""`:               `placement: step 1 (leave 1 from ""): it names no gateway after from`,
		"leave 1 from a b":              `placement: step 1 (leave 1 from a b): "b" is one word too many`,
		"leave x from a":                `placement: step 1 (leave x from a): "x" is no number of supervisors`,
		"settle 0":                      `placement: step 1 (settle 0): a budget of 0 moves nobody; without one it makes as many moves as it takes`,
		"settle 1 2":                    `placement: step 1 (settle 1 2): "2" is one word too many`,
		"stop A, start A; arrive 1":     `placement: step 1 (stop A, start A): "A," has a comma in it; there are spaces between gateways, and semicolons between steps`,
		"stop a\x00b":                   "placement: step 1 (stop a\x00b): \"a\\x00b\" takes quotes around it",
		`stop a"b"`:                     `placement: step 1 (stop a"b"): a space is missing after "a"`,
		`stop "a"b`:                     `placement: step 1 (stop "a"b): a space is missing after "a"`,
		`stop b; stop "a; stop b`:       `placement: step 2 (stop "a; stop b): "a; stop b is no string in quotes`,
	} {
		plan, err := placement.ParsePlan(text)
		require.EqualError(t, err, want, text)
		require.Nil(t, plan)
	}
}

func TestPlanText(t *testing.T) {
	var plan struct{ Plan placement.Plan }
	require.NoError(t, json.Unmarshal([]byte(`{"Plan": "stop a;settle"}`), &plan))
	require.Equal(t, placement.Plan{placement.Stop{"a"}, placement.Settle{}}, plan.Plan)
	text, err := json.Marshal(plan)
	require.NoError(t, err)
	require.JSONEq(t, `{"Plan": "stop a; settle"}`, string(text))
	require.Error(t, json.Unmarshal([]byte(`{"Plan": "stop"}`), &plan))
	require.Len(t, plan.Plan, 2, "a fault changes nothing")
	text, err = json.Marshal(placement.Plan{placement.Stop{"a"}, placement.Leave{Count: 3}}[1])
	require.NoError(t, err)
	require.Equal(t, `"leave 3"`, string(text))
	require.Equal(t, `leave 3 from "a b"`, placement.Leave{Count: 3, From: "a b"}.String())
}

// FuzzParsePlan: no text panics, and the text of a plan is read as that plan.
func FuzzParsePlan(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		plan, err := placement.ParsePlan(text)
		if err != nil {
			require.Nil(t, plan)
			return
		}
		again, err := placement.ParsePlan(plan.String())
		require.NoError(t, err, "%q", plan.String())
		require.Equal(t, plan, again)
		for _, s := range plan {
			one, err := placement.ParsePlan(s.String())
			require.NoError(t, err)
			require.Equal(t, placement.Plan{s}, one)
		}
	})
}

// FuzzPlanText: whatever the gateways are called, a plan is read as what was written.
func FuzzPlanText(f *testing.F) {
	f.Fuzz(func(t *testing.T, a, b string, n int) {
		n = max(0, n)
		plan := placement.Plan{
			placement.Stop{ring.GatewayID(a)}, placement.Start{ring.GatewayID(a), ring.GatewayID(b)}, placement.Crash{ring.GatewayID(b), ring.GatewayID(a)}, placement.Join{ring.GatewayID(b)},
			placement.Arrive{Count: n}, placement.Leave{Count: n}, placement.Leave{Count: n, From: ring.GatewayID(a)}, placement.Settle{}, placement.Settle{Budget: n},
		}
		again, err := placement.ParsePlan(plan.String())
		require.NoError(t, err, "%q", plan.String())
		require.Equal(t, plan, again)
	})
}
