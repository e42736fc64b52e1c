// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// parsePlan reads steps, with semicolons between them.
func parsePlan(text string) ([]placement.Step, error) {
	var plan []placement.Step
	for one := range strings.SplitSeq(text, ";") {
		words := strings.Fields(one)
		if len(words) == 0 {
			continue
		}
		step := parseStep(words[0], words[1:])
		if step == nil {
			return nil, fmt.Errorf("%q is no step; one is stop, start, crash or join GATEWAY..., arrive N, leave N [from GATEWAY], or settle [N]",
				strings.Join(words, " "))
		}
		plan = append(plan, step)
	}
	return plan, nil
}

// parseStep returns nil if it is none.
func parseStep(verb string, rest []string) placement.Step {
	var ids []ring.GatewayID
	for _, word := range rest {
		ids = append(ids, ring.GatewayID(word))
	}
	count, number := 0, false
	if len(rest) > 0 {
		n, err := strconv.Atoi(rest[0])
		count, number = n, err == nil && n >= 0
	}
	switch {
	case verb == "stop" && len(ids) > 0:
		return placement.Stop(ids)
	case verb == "start" && len(ids) > 0:
		return placement.Start(ids)
	case verb == "crash" && len(ids) > 0:
		return placement.Crash(ids)
	case verb == "join" && len(ids) > 0:
		return placement.Join(ids)
	case verb == "arrive" && number && len(rest) == 1:
		return placement.Arrive{Count: count}
	case verb == "leave" && number && len(rest) == 1:
		return placement.Leave{Count: count}
	case verb == "leave" && number && len(rest) == 3 && rest[1] == "from":
		return placement.Leave{Count: count, From: ids[2]}
	case verb == "settle" && len(rest) == 0:
		return placement.Settle{}
	case verb == "settle" && count > 0 && len(rest) == 1:
		return placement.Settle{Budget: count}
	default:
		return nil
	}
}
