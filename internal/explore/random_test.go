// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDeepWalks goes where a walk through everything does not come: many
// actions far, each drawn at random, and then to the end with nothing more
// going wrong. EVENRING_SEEDS says how many.
func TestDeepWalks(t *testing.T) {
	const far = 80
	for _, of := range []shape{{2, 2}, {3, 2}} {
		for i, link := range []string{"asking", "no link"} {
			t.Run(fmt.Sprintf("%d on %d/%s", of.sups, of.gateways, link), func(t *testing.T) {
				t.Parallel()
				w := &walk{fleet: newFleet(of, i == 1, faults{}), settled: make(map[mark]bool)}
				root := w.attached()
				root.budget = budget{breaks: 3, parts: 2, crashes: 2, kills: 2, drains: 1}
				for seed := range uint64(seeds(t)) {
					if failure := w.stray(root, rand.New(rand.NewPCG(seed, 80)), far); failure != nil {
						t.Fatalf("seed %d: %s", seed, failure)
					}
				}
				require.Zero(t, w.mixed, "same input, same output")
			})
		}
	}
}

func seeds(t *testing.T) int {
	t.Helper()
	if text := os.Getenv("EVENRING_SEEDS"); text != "" {
		n, err := strconv.ParseUint(text, 10, 31)
		require.NoError(t, err, "EVENRING_SEEDS")
		return int(n)
	}
	if racing {
		return 10
	}
	return 300
}

// stray takes so many random actions, and then lets the fleet come to rest.
func (w *walk) stray(s *state, rnd *rand.Rand, far int) *failure {
	root := s
	var way []action
	fault := ""
	for len(way) < far && fault == "" {
		all := w.actions(s)
		a := all[rnd.IntN(len(all))]
		if !a.fair() && rnd.IntN(4) > 0 { // trouble is rarer than everything else
			continue
		}
		way = append(way, a)
		if s, fault = w.follow(s, a); fault == "" {
			fault = w.look(s)
		}
	}
	var lines []string
	if fault == "" {
		fault, lines = w.end(s, true)
	}
	if fault == "" {
		return nil
	}
	var trace []string
	for _, a := range way {
		var told []string
		root, told = w.tell(root, a)
		trace = append(trace, told...)
	}
	return &failure{fault, append(trace, lines...)}
}
