// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// rolled is the result that the contract shows.
var rolled = result{
	Step: "rolling", Gateways: 3, Supervisors: 12, Sessions: 24, Served: map[string]int{"gw-4": 4},
	Moved: 12, MaxMoves: 1, Seconds: 3.1, OK: true,
}

// The keys and their order are the contract.
func TestResultJSON(t *testing.T) {
	failed := rolled
	failed.OK, failed.Why = false, "the spread is 2, above 1"
	failed.Spread, failed.Lost, failed.GapMSMax, failed.GapMSP99 = 2, 3, 4.5, 0.25
	failed.Misplaced, failed.Refused, failed.OverCap = 5, 6, 7
	asked := rolled
	asked.Echo = &Echo{Sent: 9, Failed: 1, Uncertain: 2, Twice: 3, MSP50: 1.5, MSP99: 2.5, MSMax: 3.5}
	for _, row := range []struct {
		res  result
		line string
	}{
		{asked, `{"step":"rolling","gateways":3,"supervisors":12,"sessions":24,"served":{"gw-4":4},"spread":0,"lost":0,` +
			`"moved":12,"max_moves":1,"gap_ms_max":0,"gap_ms_p99":0,"misplaced_sessions":0,"refused":0,"over_cap":0,` +
			`"echo_sent":9,"echo_failed":1,"echo_uncertain":2,"echo_twice":3,"echo_ms_p50":1.5,"echo_ms_p99":2.5,"echo_ms_max":3.5,"seconds":3.1,"ok":true}`},
		{rolled, `{"step":"rolling","gateways":3,"supervisors":12,"sessions":24,"served":{"gw-4":4},"spread":0,"lost":0,` +
			`"moved":12,"max_moves":1,"gap_ms_max":0,"gap_ms_p99":0,"misplaced_sessions":0,"refused":0,"over_cap":0,"seconds":3.1,"ok":true}`},
		{failed, `{"step":"rolling","gateways":3,"supervisors":12,"sessions":24,"served":{"gw-4":4},"spread":2,"lost":3,` +
			`"moved":12,"max_moves":1,"gap_ms_max":4.5,"gap_ms_p99":0.25,"misplaced_sessions":5,"refused":6,"over_cap":7,"seconds":3.1,"ok":false,` +
			`"why":"the spread is 2, above 1"}`},
	} {
		text, err := json.Marshal(row.res)
		require.NoError(t, err)
		require.Equal(t, row.line, string(text))
	}
}

func TestResultLine(t *testing.T) {
	r := rolled
	r.Served = map[string]int{"gw-10": 3, "gw-9": 4, "gw-2": 0}
	require.Equal(t, "ok     rolling                3.1s  spread 0  lost 0  moved 12 (each at most 1)  gap 0 ms  misplaced 0  gw-2:0 gw-9:4 gw-10:3", r.line())

	r.Step, r.Seconds, r.OK, r.Why = "restart-supervisors", 75.26, false, "1 supervisors have no stream"
	r.Spread, r.Lost, r.GapMSMax, r.Misplaced = 1, 1, 3380.4, 2
	require.Equal(t, "FAILED restart-supervisors   75.3s  spread 1  lost 1  moved 12 (each at most 1)  gap 3380 ms  misplaced 2  gw-2:0 gw-9:4 gw-10:3\n"+
		"       1 supervisors have no stream", r.line())
}

func TestByNumber(t *testing.T) {
	ids := []string{"gw-10", "gw-9", "gw-1", "gw-11", "gw-2"}
	slices.SortFunc(ids, byNumber)
	require.Equal(t, []string{"gw-1", "gw-2", "gw-9", "gw-10", "gw-11"}, ids)
}
