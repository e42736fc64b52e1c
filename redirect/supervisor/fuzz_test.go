// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// FuzzMachine turns bytes into events and holds the machine to what must hold
// whatever happens.
func FuzzMachine(f *testing.F) {
	f.Add([]byte{0})
	f.Add([]byte("\x00\x01\x00\x03\x00\x05\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		first, second := newWitness(t), newWitness(t)
		for i := 0; i+1 < len(data); i += 2 {
			op, arg := data[i], data[i+1]
			first.play(op, arg)
			second.play(op, arg)
			require.Equal(t, first.seen, second.seen, "same input, same output")
		}
		first.finish()
	})
}

// TestProperties plays random events, many of them fitting the state.
func TestProperties(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		w := newWitness(t)
		w.play(0, 0)
		for range 200 {
			w.play(byte(rnd.Uint32()), byte(rnd.Uint32()))
		}
		w.finish()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// witness plays events on a machine and keeps account of what it did.
type witness struct {
	t       *testing.T
	machine *Machine
	now     time.Time
	jitter  uint64
	seen    []Action // of the last step

	newest placement.Generation
	flying placement.Generation          // the dial in flight
	open   map[placement.Generation]bool // streams that were accepted and not closed
	ended  map[placement.Generation]bool // streams that ended at the other end
	dials  int                           // in a placement, without a pause
}

func newWitness(t *testing.T) *witness {
	w := &witness{
		t: t, now: epoch,
		open:  make(map[placement.Generation]bool),
		ended: make(map[placement.Generation]bool),
	}
	m, err := New(Config{Member: "s", Service: serviceAddr, Jitter: func() float64 {
		w.jitter = w.jitter*6364136223846793005 + 1442695040888963407
		return float64(w.jitter>>11) / (1 << 53)
	}})
	require.NoError(t, err)
	w.machine = m
	return w
}

// play carries out one operation; most of them concern the newest dial or stream.
func (w *witness) play(op, arg byte) {
	gateways := [...]ring.GatewayID{"A", "B", "C", "D", ""}
	gateway := gateways[int(arg>>3)%len(gateways)]
	endpoint := ""
	if gateway != "" && arg&1 == 0 {
		endpoint = "at-" + string(gateway)
	}
	incarnation := placement.Incarnation(arg >> 6)
	dial, stream := w.flying, w.machine.stream.generation
	if op >= 0xf0 { // a word about any attempt, in flight or not
		dial = placement.Generation(arg % 16)
		stream = dial
	}
	switch op % 16 {
	case 0:
		w.step(Start{})
	case 1, 2, 3:
		w.step(Answered{dial, redirect.Verdict{Outcome: redirect.Accept, Gateway: gateway, Endpoint: endpoint, Incarnation: incarnation}})
	case 4, 5:
		w.step(Answered{dial, redirect.Verdict{
			Outcome: redirect.Redirect, Gateway: gateway, Endpoint: endpoint, Incarnation: incarnation,
			Cap: int(arg) - 10, Full: []ring.GatewayID{gateway},
		}})
	case 6:
		w.step(Answered{dial, redirect.Verdict{
			Outcome: redirect.Refuse, Reason: redirect.Reason(arg % 20),
			RetryAfter: time.Duration(int64(arg)-5) << (arg % 56), Generation: placement.Generation(arg) << (arg % 64),
		}})
	case 7:
		w.step(Answered{dial, redirect.Verdict{Outcome: redirect.Outcome(arg)}})
	case 8, 9:
		w.step(Failed{Generation: dial})
	case 10:
		w.ended[stream] = true
		w.step(Lost{stream})
	case 11:
		w.step(Noticed{stream, redirect.Notice{Kind: redirect.NoticeMove, Gateway: gateway, Endpoint: endpoint, Incarnation: incarnation}})
	case 12:
		w.step(Noticed{stream, redirect.Notice{Kind: redirect.NoticeEnd, Reason: redirect.Reason(arg % 20)}})
	case 13:
		w.step(Noticed{stream, redirect.Notice{Kind: redirect.NoticeHeartbeat, Gateway: gateway, Incarnation: incarnation}})
	case 14:
		if arg == 255 {
			w.step(Stop{})
			return
		}
		w.now = w.now.Add(time.Duration(arg) * 20 * time.Millisecond)
		w.step(Tick{})
	case 15:
		w.tick()
	}
}

// tick lets time pass until the machine's deadline.
func (w *witness) tick() {
	if at, ok := w.machine.Deadline(); ok {
		if at.After(w.now) {
			w.now = at
		}
		w.step(Tick{})
	}
}

func (w *witness) step(event Event) {
	t, before := w.t, w.machine.State()
	switch event.(type) {
	case Answered, Failed: // goes on with the placement under way
	default:
		w.dials = 0
	}
	if e, ok := event.(Answered); ok && e.Verdict.Outcome == redirect.Accept && e.Generation != 0 && !w.ended[e.Generation] {
		w.open[e.Generation] = true
	}
	landed := w.landed(event)
	w.seen = w.machine.Step(w.now, event)
	for _, action := range w.seen {
		switch a := action.(type) {
		case Dial:
			require.Zero(t, w.flying, "two dials in flight")
			require.Greater(t, a.Hello.Generation, w.newest, "the generation rises with every dial")
			require.NoError(t, a.Hello.Validate())
			require.True(t, a.Hello.CanRedirect)
			require.LessOrEqual(t, len(a.Hello.Avoid), maxAvoided)
			require.LessOrEqual(t, a.Hello.Hops, 2)
			require.Positive(t, a.Timeout)
			require.NotEmpty(t, a.Addr)
			w.newest, w.flying = a.Hello.Generation, a.Hello.Generation
			w.dials++
			require.LessOrEqual(t, w.dials, 4, "dials without a pause")
		case Abandon:
			require.Equal(t, w.flying, a.Generation, "abandoned what is not in flight")
			w.flying = 0
		case Close:
			delete(w.open, a.Generation)
		case Adopt:
			require.Equal(t, landed, a.Generation, "adopted what was not asked for")
		}
	}
	if lost, ok := event.(Lost); ok {
		delete(w.open, lost.Generation)
	}
	after := w.machine.State()
	at, waits := w.machine.Deadline()
	if waits {
		_, due := event.(Tick)
		require.False(t, due && !at.After(w.now), "a deadline that a tick leaves in the past")
	}
	require.Equal(t, after == Dialing || after == Moving || after == Waiting, waits, after.String())
	if before == Stopped {
		require.Equal(t, Stopped, after)
	}
	require.False(t, before != Idle && after == Idle, "back to idle")
	current := w.machine.stream.generation
	for generation := range w.open {
		require.Equal(t, current, generation, "a stream that nobody has closed")
	}
}

// landed returns the generation of the dial in flight if event ends it.
func (w *witness) landed(event Event) placement.Generation {
	var generation placement.Generation
	switch e := event.(type) {
	case Answered:
		generation = e.Generation
	case Failed:
		generation = e.Generation
	}
	if generation == 0 || generation != w.flying {
		return 0
	}
	w.flying = 0
	return generation
}

// finish stops the input: timers alone must go on at a bounded rate, and Stop
// must leave nothing behind.
func (w *witness) finish() {
	begun, rounds := w.now, 0
	for ; rounds < 50; rounds++ {
		if _, ok := w.machine.Deadline(); !ok {
			break
		}
		w.tick()
	}
	// A dial that nobody answers takes its timeout, at least a second in the default config.
	require.GreaterOrEqual(w.t, w.now.Sub(begun), time.Duration(rounds/4)*time.Second/2)
	w.step(Stop{})
	require.Empty(w.t, w.open)
	require.Zero(w.t, w.flying)
}
