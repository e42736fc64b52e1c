// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// result is one step's outcome: one JSON line.
type result struct {
	Step        string         `json:"step"`
	Gateways    int            `json:"gateways"`
	Supervisors int            `json:"supervisors"`
	Sessions    int            `json:"sessions"`
	Served      map[string]int `json:"served"`
	Spread      int            `json:"spread"`
	Lost        int            `json:"lost"`
	Moved       int            `json:"moved"`
	MaxMoves    int            `json:"max_moves"`
	GapMSMax    float64        `json:"gap_ms_max"`
	GapMSP99    float64        `json:"gap_ms_p99"`
	Misplaced   int            `json:"misplaced_sessions"`
	Refused     int            `json:"refused"`
	OverCap     int            `json:"over_cap"`
	SettleMoves int            `json:"settle_moves,omitempty"` // of the supervisors that moved, those that -settle moved
	*Chaos                     // nil: another step
	*Echo                      // nil: nobody was asked
	Seconds     float64        `json:"seconds"`
	OK          bool           `json:"ok"`
	Why         string         `json:"why,omitempty"` // it did not hold, or why it is judged as it is
	aside       string         // for a person
}

// line is the result for a person.
func (r result) line() string {
	var served []string
	for _, id := range slices.SortedFunc(maps.Keys(r.Served), byNumber) {
		served = append(served, fmt.Sprintf("%s:%d", id, r.Served[id]))
	}
	verdict := "ok    "
	if !r.OK {
		verdict = "FAILED"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %-20s %5.1fs  spread %d  lost %d  moved %d (each at most %d)  gap %.0f ms  misplaced %d  %s",
		verdict, r.Step, r.Seconds, r.Spread, r.Lost, r.Moved, r.MaxMoves, r.GapMSMax, r.Misplaced, strings.Join(served, " "))
	if r.Echo != nil {
		b.WriteString("\n       " + r.Echo.line())
	}
	for _, more := range []string{r.Why, r.aside} {
		if more != "" {
			b.WriteString("\n       " + more)
		}
	}
	return b.String()
}

// byNumber orders gw-2 before gw-10.
func byNumber(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}
