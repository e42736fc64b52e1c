// SPDX-License-Identifier: Apache-2.0

package rostertest

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/evenring/evenring/ring"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A network within the process passes, in real time.
func TestRun(t *testing.T) {
	Run(t, func(testing.TB) Join { return new(memory).join })
}

// short is the patience with broken transports: some rosters go on asking for
// whole records until it has run out.
const short = 10 * heartbeat

// recorder is a test that may fail.
type recorder struct {
	testing.TB
	mu     sync.Mutex
	told   []string
	failed bool
	tidy   []func()
}

func (r *recorder) Helper()          {}
func (r *recorder) Cleanup(f func()) { r.tidy = append(r.tidy, f) }

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told, r.failed = append(r.told, fmt.Sprintf(format, args...)), true
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) FailNow() {
	r.mu.Lock()
	r.failed = true
	r.mu.Unlock()
	runtime.Goexit()
}

// examine returns what one trial says of a network. Time is not real.
func examine(t *testing.T, tr trial, network *memory, patience time.Duration) (told []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{TB: t}
		var examiner sync.WaitGroup
		examiner.Go(func() { tr.run(newExam(r, network.join, patience)) })
		examiner.Wait()
		for _, f := range slices.Backward(r.tidy) {
			f()
		}
		require.Equal(t, r.failed, len(r.told) > 0, "who fails says why")
		told = r.told
	})
	return told
}

// lossy loses messages, as a transport may.
func lossy() *memory {
	rng := rand.New(rand.NewPCG(1, 2))
	return &memory{spoil: func(_, to ring.GatewayID, message []byte) (ring.GatewayID, []byte) {
		if rng.Float64() < 0.2 {
			return "", nil
		}
		return to, message
	}}
}

func TestWhatTransportsMayDo(t *testing.T) {
	for _, tr := range trials {
		t.Run(tr.name, func(t *testing.T) {
			require.Empty(t, examine(t, tr, new(memory), short), "the time that broken ones get is enough")
			require.Empty(t, examine(t, tr, lossy(), 10*short))
		})
	}
}

// Every broken transport is found out, by the trials named, with the words given.
func TestBrokenTransports(t *testing.T) {
	spoilt := func(spoil func(from, to ring.GatewayID, b []byte) (ring.GatewayID, []byte)) func() *memory {
		return func() *memory { return &memory{spoil: spoil} }
	}
	faulty := func(f fault) func() *memory { return func() *memory { return &memory{fault: f} } }
	whenever := func(bad bool, to ring.GatewayID) ring.GatewayID {
		if bad {
			return ""
		}
		return to
	}
	for _, row := range []struct {
		name    string
		network func() *memory
		trials  []string
		want    string
	}{
		{"drops all to one peer", spoilt(func(_, to ring.GatewayID, b []byte) (ring.GatewayID, []byte) {
			return whenever(to == "gw-2", to), b
		}), []string{"messages arrive", "calm", "loss", "partition and heal", "restart under the same ID", "large record"}, "gw-2"},
		{"drops all from one peer", spoilt(func(from, to ring.GatewayID, b []byte) (ring.GatewayID, []byte) {
			return whenever(from == "gw-1", to), b
		}), []string{"messages arrive", "calm", "large record"}, "gw-1"},
		{"drops all between two peers", spoilt(func(from, to ring.GatewayID, b []byte) (ring.GatewayID, []byte) {
			return whenever(from == "gw-1" && to == "gw-2", to), b
		}), []string{"messages arrive", "calm"}, "gw-2"},
		{"truncates", spoilt(func(_, to ring.GatewayID, b []byte) (ring.GatewayID, []byte) {
			return to, b[:min(len(b), 1024)]
		}), []string{"messages arrive", "large record"}, ""},
		{"takes no more than 64 KiB", spoilt(func(_, to ring.GatewayID, b []byte) (ring.GatewayID, []byte) {
			return whenever(len(b) > 64<<10, to), b
		}), []string{"messages arrive", "large record"}, ""},
		{"misroutes", spoilt(func(_, to ring.GatewayID, b []byte) (ring.GatewayID, []byte) {
			if to == "gw-0" {
				to = "gw-1"
			}
			return to, b
		}), []string{"messages arrive", "calm"}, "gw-1 was given"},
		{"swaps two bytes", spoilt(func(_, to ring.GatewayID, b []byte) (ring.GatewayID, []byte) {
			if n := len(b) / 2; len(b) > 200 {
				b[n], b[n+1] = b[n+1]^1, b[n]
			}
			return to, b
		}), []string{"messages arrive", "large record"}, ""},
		{"sends to all what is for all, itself included", faulty(echo), []string{"messages arrive", "calm"}, "its own"},
		{"sends to one what is for all", faulty(onlyFirst), []string{"messages arrive"}, "sent to all"},
		{"names another sender", faulty(misnames), []string{"messages arrive", "calm"}, "as one of"},
		{"goes on when it is stopped", faulty(afterlife), []string{"messages arrive", "restart under the same ID"}, "after its transport had been stopped"},
		{"cannot send out of Step", faulty(notFromStep), []string{"messages arrive"}, "sent out of Step"},
		{"says of the living that they have left", faulty(farewell), []string{"calm"}, "does not know"},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, name := range row.trials {
				i := slices.IndexFunc(trials, func(tr trial) bool { return tr.name == name })
				require.GreaterOrEqual(t, i, 0, name)
				told := examine(t, trials[i], row.network(), short)
				require.NotEmpty(t, told, "%s does not find it out", name)
				require.Contains(t, strings.Join(told, "\n"), row.want, name)
			}
		})
	}
}
