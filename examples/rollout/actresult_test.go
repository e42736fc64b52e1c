// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

var killed = actResult{
	Act: 3, Kind: "kill-gateway", What: "gw-2 killed, gw-5 started", AttachedSeconds: 4.35, AgreedSeconds: 9, Moved: 15, MaxMoves: 1,
	GapMSMax: 4354.25, Spread: 15, Over: usage{2, 1}, Seconds: 9.12, OK: true,
}

// The keys and their order are the contract.
func TestActResultJSON(t *testing.T) {
	asked := killed
	asked.OK, asked.Why = false, "somebody moved 2 times; seed 7"
	asked.Echo = &Echo{Sent: 9, Failed: 1, Uncertain: 2, Twice: 3, MSP50: 1.5, MSP99: 2.5, MSMax: 3.5}
	const begins = `{"act":3,"kind":"kill-gateway","what":"gw-2 killed, gw-5 started","attached_s":4.35,"agreed_s":9,"moved":15,"max_moves":1,` +
		`"gap_ms_max":4354.25,"spread":15,"over":{"goroutines":2,"files":1},`
	for _, row := range []struct {
		res  actResult
		line string
	}{
		{killed, begins + `"seconds":9.12,"ok":true}`},
		{asked, begins + `"echo_sent":9,"echo_failed":1,"echo_uncertain":2,"echo_twice":3,"echo_ms_p50":1.5,"echo_ms_p99":2.5,"echo_ms_max":3.5,` +
			`"seconds":9.12,"ok":false,"why":"somebody moved 2 times; seed 7"}`},
	} {
		text, err := json.Marshal(row.res)
		require.NoError(t, err)
		require.Equal(t, row.line, string(text))
	}
}

func TestActResultLine(t *testing.T) {
	require.Equal(t, "ok     act 3   kill-gateway                         9.1s  attached 4.3s  agreed 9.0s  moved 15 (each at most 1)  gap 4354 ms  spread 15  open +2 goroutines +1 files\n"+
		"       gw-2 killed, gw-5 started", killed.line())
	failed := killed
	failed.OK, failed.Why, failed.Echo = false, "somebody moved 2 times; seed 7", &Echo{Sent: 9, Failed: 1, Uncertain: 2}
	require.Equal(t, "FAILED act 3   kill-gateway                         9.1s  attached 4.3s  agreed 9.0s  moved 15 (each at most 1)  gap 4354 ms  spread 15  open +2 goroutines +1 files"+
		"  requests 9 failed 1 uncertain 2 twice 0\n       gw-2 killed, gw-5 started\n       somebody moved 2 times; seed 7", failed.line())
}

func TestChaosAddsUp(t *testing.T) {
	c := Chaos{Seed: 7}
	c.add(killed)
	c.add(actResult{
		Act: 4, Kind: "refresh", AttachedSeconds: 1, AgreedSeconds: 11, Moved: 2, MaxMoves: 2, GapMSMax: 5, Over: usage{1, 3},
		Echo: &Echo{Sent: 3, Failed: 1},
	})
	res := result{Step: "chaos", Moved: 1, MaxMoves: 1, GapMSMax: 1, GapMSP99: 1, Echo: &Echo{Sent: 4}}
	c.amend(&res)
	require.Equal(t, 17, res.Moved)
	require.Equal(t, 2, res.MaxMoves)
	require.Equal(t, 4354.25, res.GapMSMax)
	require.Zero(t, res.GapMSP99)
	require.Equal(t, Echo{Sent: 7, Failed: 1}, *res.Echo)
	res = result{Step: "chaos", Served: map[string]int{}, OK: true, Chaos: res.Chaos}
	line := `{"step":"chaos","gateways":0,"supervisors":0,"sessions":0,"served":{},"spread":0,"lost":0,"moved":0,"max_moves":0,"gap_ms_max":0,` +
		`"gap_ms_p99":0,"misplaced_sessions":0,"refused":0,"over_cap":0,"seed":7,"acts":2,"acts_failed":[4],"acts_by_kind":{"kill-gateway":1,"refresh":1},"attached_s_max":4.35,"agreed_s_max":11,` +
		`"over_max":{"goroutines":2,"files":3},"growth":{"goroutines":0,"files":0},"seconds":0,"ok":true}`
	text, err := json.Marshal(res)
	require.NoError(t, err)
	require.Equal(t, line, string(text))
	require.Equal(t, "2 acts, 1 of them failed; attached after 4.3 s at most, agreed after 11.0 s; at most 2.0 goroutines and 3.0 files more open than explained, and for certain 0.0 goroutines and 0.0 files more with each act\n"+
		"       kill-gateway 1, refresh 1", c.line())
}
