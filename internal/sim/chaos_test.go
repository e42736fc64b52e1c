// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// number reads a variable of the environment.
func number(t testing.TB, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, name)
	return n
}

// each runs f for every seed from first on, in parallel, until one says stop.
func each(first, count uint64, f func(seed uint64) (stop bool)) {
	var next atomic.Uint64
	var stopped atomic.Bool
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for !stopped.Load() {
				n := next.Add(1) - 1
				if n >= count {
					return
				}
				if f(first + n) {
					stopped.Store(true)
				}
			}
		})
	}
	all.Wait()
}

// extra reads from the environment which kinds every run has, besides those that it draws.
func extra(t testing.TB) (m mix) {
	t.Helper()
	for name := range strings.FieldsSeq(os.Getenv("EVENRING_MIX")) {
		k := slices.Index(kindText[:], name)
		require.GreaterOrEqual(t, k, 0, "EVENRING_MIX: %q is none of %v", name, kindText)
		m |= mixOf(kind(k))
	}
	return m
}

// TestChaos plays random stories. EVENRING_SEEDS says how many, EVENRING_SEED
// which is the first, and, without the other, the only one; EVENRING_MIX names
// kinds that each of them is to have.
func TestChaos(t *testing.T) {
	first, otherwise := uint64(0), uint64(chaosSeeds)
	if os.Getenv("EVENRING_SEED") != "" {
		first, otherwise = number(t, "EVENRING_SEED", 0), 1
	}
	count := number(t, "EVENRING_SEEDS", otherwise)
	more := extra(t)
	var mu sync.Mutex
	var steps uint64
	var virtual, attached, agreed time.Duration
	var failed []uint64
	each(first, count, func(seed uint64) bool {
		f, r := play(seed, drawMix(seed)|more, Spoil{}, nil)
		mu.Lock()
		defer mu.Unlock()
		steps += r.steps
		virtual += r.Elapsed()
		attached, agreed = max(attached, r.attached), max(agreed, r.agreed)
		if f == nil {
			return false
		}
		failed = append(failed, seed)
		return len(failed) >= 10
	})
	t.Logf("%d seeds from %d on, %d steps, %v of the fleets' time; after the last fault and act everybody is attached within %v, and %v later every view agrees",
		count, first, steps, virtual.Round(time.Second), attached, agreed)
	slices.Sort(failed)
	for _, seed := range failed {
		t.Error(replay(seed, drawMix(seed)|more, Spoil{}))
	}
}

// replay plays a seed that fails again, looks for the fewest kinds that it
// fails with, and says how it comes to it.
func replay(seed uint64, m mix, spoil Spoil) string {
	f, _ := play(seed, m, spoil, nil)
	if f == nil {
		return fmt.Sprintf("seed %d does not fail again: not everything follows from the seed", seed)
	}
	for k := range kinds {
		if smaller := m.without(k); smaller != m {
			if g, _ := play(seed, smaller, spoil, nil); g != nil && g.Invariant == f.Invariant {
				m, f = smaller, g
			}
		}
	}
	const most = 60
	var lines []string
	_, r := play(seed, m, spoil, func(at time.Duration, who, what string) {
		line := fmt.Sprintf("  %12v %s %s", at, who, what)
		if slices.ContainsFunc(f.Who, func(name string) bool { return strings.Contains(line, name) }) || len(f.Who) == 0 || who == "world" {
			lines = append(lines, line)
		}
	})
	lines = lines[max(0, len(lines)-most):]
	set := ""
	if text := os.Getenv("EVENRING_MIX"); text != "" {
		set = fmt.Sprintf("EVENRING_MIX=%q ", text)
	}
	return fmt.Sprintf("seed %d, %d gateways, %d supervisors: %v\nfails with: %s\n%s\nreplay: %sEVENRING_SEED=%d go test ./internal/sim -run 'TestChaos$'",
		seed, len(r.ids), len(r.Supervisors), f, m, strings.Join(lines, "\n"), set, seed)
}

// One seed is one story.
func TestOneSeedOneRun(t *testing.T) {
	tell := func(seed uint64) (lines []string) {
		play(seed, drawMix(seed), Spoil{}, func(at time.Duration, who, what string) {
			lines = append(lines, fmt.Sprint(at, " ", who, " ", what))
		})
		return lines
	}
	const count = 30
	each(0, count, func(seed uint64) bool {
		if !slices.Equal(tell(seed), tell(seed)) {
			t.Errorf("seed %d: invariant %v: two runs differ", seed, Deterministic)
		}
		return t.Failed()
	})
	require.NotEqual(t, tell(1), tell(2), "another seed is another story")
}

// Seeds that have found something in the machines.
func TestKeptSeeds(t *testing.T) {
	for _, kept := range []struct {
		seed uint64
		mix  mix
	}{
		// A gateway that stood still took a yes for its settle long after the place had expired.
		{946, mixOf(loss, slow, late, lag, pause, settles, sessions)},
		// A gateway that died before discovery saw it, and whose last word was late, was known for ever to the only other one.
		{37858, mixOf(noAsks, slow, late, discovery, crash, drains, calls, sessions)},
		// A stream broke while the question was out where its supervisor was to go, which then was counted as if it were still there.
		{8974, mixOf(loss, twice, slow, late, lag, discovery, outage, clocks, cuts, severed, stop, pause, elder, freeze, breaks, supCrash, supStop, burst,
			scaleUp, drains, abort, rolling, surge, calls, sessions)},
		// A gateway that had stood still blamed another for the silence, and took its old words for new ones.
		{4787, mixOf(loss, twice, slow, late, lag, discovery, clocks, cuts, severed, crash, stop, elder, supStop, burst, scaleUp, drains, abort, sessions)},
	} {
		if f, _ := play(kept.seed, kept.mix, Spoil{}, nil); f != nil {
			t.Error(replay(kept.seed, kept.mix, Spoil{}))
		}
	}
}

// Where nothing goes wrong, a rollout with room elsewhere leaves nobody without
// a stream for a moment, and nobody behind.
func TestOrderlyRollouts(t *testing.T) {
	orderly := mixOf(noAsks, surge, burst, scaleUp, calls, sessions, clocks, lag)
	each(0, orderlySeeds, func(seed uint64) bool {
		f, r := play(seed, drawMix(seed)&orderly|mixOf(rolling), Spoil{}, nil)
		if f != nil {
			t.Error(replay(seed, r.mix, Spoil{}))
			return true
		}
		for _, s := range r.Supervisors {
			if s.Gap > 0 {
				t.Errorf("seed %d: %s is without a stream for %v", seed, s.Member, s.Gap)
			}
		}
		for _, g := range r.Gateways {
			if len(g.Report.Left) > 0 {
				t.Errorf("seed %d: %s leaves %v behind", seed, g.ID, g.Report.Left)
			}
		}
		return t.Failed()
	})
}
