// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/ring"
)

// FuzzMachine turns bytes into events and holds the machine to what must hold
// whatever happens.
func FuzzMachine(f *testing.F) {
	f.Add([]byte{0, 0, 8, 1, 3})
	f.Add([]byte{1, 0, 9, 1, 0, 3, 1, 2})
	f.Add([]byte{2, 0, 200, 4, 4, 4})
	f.Fuzz(func(t *testing.T, data []byte) { play(t, data) })
}

func TestProperties(t *testing.T) {
	for seed := range uint64(5000) {
		rng := rand.New(rand.NewPCG(seed, 11))
		data := make([]byte, 2+rng.IntN(40))
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		if play(t, data); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// play plays events, two bytes each after the first, which is the request's kind.
func play(t *testing.T, data []byte) {
	if len(data) == 0 {
		return
	}
	cfg := Config{Self: "A", Forwarded: data[0]&1 != 0, Idempotent: data[0]&2 != 0}
	w := &witness{t: t, cfg: cfg, now: epoch, machine: machineOf(t, cfg), twin: machineOf(t, cfg)}
	for i := 1; i+1 < len(data); i += 2 {
		w.play(data[i], data[i+1])
	}
	w.finish()
}

// witness keeps account of what a machine did.
type witness struct {
	t             *testing.T
	cfg           Config
	now           time.Time
	machine, twin *Machine

	sends    []Send
	outcomes []Outcome
	finished bool
}

func (w *witness) play(op, arg byte) {
	switch op % 8 {
	case 0:
		w.step(Begin{routeOf(arg)})
	case 1, 2:
		w.step(Routed{routeOf(arg)})
	case 3, 4:
		w.step(Answered{len(w.sends), Outcome(arg % 6)})
	case 5:
		w.step(Answered{int(arg) % 4, Outcome(arg % 6)})
	case 6:
		w.now = w.now.Add(time.Duration(arg) * 10 * time.Millisecond)
		w.step(Tick{})
	case 7:
		if arg > 250 {
			w.step(Stop{})
		}
	}
}

// routeOf is up to two holders, or none.
func routeOf(arg byte) roster.Route {
	if arg < 16 {
		return roster.Route{Where: roster.Where(arg % 2)}
	}
	holder := func(b byte) roster.Holder {
		h := roster.Holder{Generation: placement.Generation(b >> 2 & 1), Expected: b&3 == 3}
		h.ID = ring.GatewayID("AABC"[b&3])
		if b&8 == 0 {
			h.Endpoint = "at " + string(h.ID)
		}
		return h
	}
	return roster.Route{Where: roster.Elsewhere, Holders: []roster.Holder{holder(arg), holder(arg >> 4)}}
}

func (w *witness) step(event Event) {
	t, before := w.t, w.machine.State()
	if e, ok := event.(Answered); ok && before == Sending && e.Attempt == len(w.sends) {
		w.outcomes = append(w.outcomes, e.Outcome)
	}
	actions := w.machine.Step(w.now, event)
	require.Equal(t, actions, w.twin.Step(w.now, event), "same input, same output")
	require.LessOrEqual(t, len(actions), 1)
	for _, action := range actions {
		require.False(t, w.finished, "something after the end")
		switch a := action.(type) {
		case Send:
			w.sent(a)
		case Finish:
			w.finished = true
			require.Equal(t, a.Reason, w.machine.Reason())
			w.ended(a.Reason)
		}
	}
	after := w.machine.State()
	require.Equal(t, w.finished, after == Over)
	require.Equal(t, !w.finished, w.machine.Reason() == None)
	at, waits := w.machine.Deadline()
	require.Equal(t, after == Waiting, waits)
	if _, tick := event.(Tick); tick && waits {
		require.True(t, at.After(w.now), "a deadline that a tick leaves in the past")
	}
}

func (w *witness) sent(a Send) {
	t := w.t
	require.LessOrEqual(t, a.Attempt, 2, "a third gateway")
	require.Equal(t, len(w.sends)+1, a.Attempt)
	require.Len(t, w.outcomes, len(w.sends), "two at once")
	for i, o := range w.outcomes {
		require.NotEqual(t, Replied, o, "answered twice")
		if o != NotHere && o != NotSent {
			require.True(t, w.cfg.Idempotent, "sent again after %v", o)
		}
		was := w.sends[i].To
		require.False(t, was.ID == a.To.ID && was.Generation == a.To.Generation, "the same stream twice")
	}
	if a.To.ID == w.cfg.Self {
		require.False(t, a.To.Expected)
	} else {
		require.False(t, w.cfg.Forwarded, "a second hop")
		require.NotEmpty(t, a.To.Endpoint)
	}
	w.sends = append(w.sends, a)
}

// ended holds the reason against what happened: nothing that may have been executed is called not executed.
func (w *witness) ended(reason Reason) {
	unsure, replied := false, false
	for _, o := range w.outcomes {
		replied = replied || o == Replied
		unsure = unsure || o != Replied && o != NotHere && o != NotSent
	}
	switch {
	case reason == Stopped:
	case replied:
		require.Equal(w.t, Done, reason)
	case unsure:
		require.Equal(w.t, Lost, reason)
	default:
		require.Contains(w.t, []Reason{Nobody, Incomplete, Away, Missed, Unreachable}, reason)
	}
}

// finish stops the input: a machine that waits ends by its timer alone.
func (w *witness) finish() {
	for range 3 {
		at, waits := w.machine.Deadline()
		if !waits {
			break
		}
		w.now = at
		w.step(Tick{})
	}
	require.NotEqual(w.t, Waiting, w.machine.State())
	w.step(Stop{})
	require.True(w.t, w.finished)
}
