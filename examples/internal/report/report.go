// SPDX-License-Identifier: Apache-2.0

// Package report is what the example processes tell whoever started them: one
// JSON object a line on standard output. Figures about a fleet come from
// these lines, from what each process itself has seen.
package report

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
)

// Kind tells the events apart.
type Kind string

// The kinds of event.
const (
	Listening Kind = "listening" // a gateway serves: Listen, Endpoint, Gossip, Ops
	Ready     Kind = "ready"     // a gateway knows its peers, and supervisors may dial it
	Draining  Kind = "draining"  // a gateway hands over
	Drained   Kind = "drained"   // a gateway has handed over: Moved, Closed, Left
	Attached  Kind = "attached"  // a supervisor was accepted: Member, Gateway, GapMS
	Lost      Kind = "lost"      // a supervisor has no stream any more: Member
	Verdict   Kind = "verdict"   // a supervisor got a verdict: Member, Outcome, Reason, Gateway
	Session   Kind = "session"   // a session was accepted, or has lost its stream: Member, Session, Gateway, AtHome
	Executed  Kind = "executed"  // a supervisor, or a session of it, has begun to execute a request: Member, Request
)

// Event is one line.
type Event struct {
	Kind Kind      `json:"event"`
	At   time.Time `json:"at"`

	Gateway  string `json:"gateway,omitempty"`  // which; a session that has no stream: none
	Listen   string `json:"listen,omitempty"`   // where it listens
	Endpoint string `json:"endpoint,omitempty"` // where others dial it
	Gossip   string `json:"gossip,omitempty"`
	Ops      string `json:"ops,omitempty"`
	Moved    int    `json:"moved,omitempty"`
	Closed   int    `json:"closed,omitempty"`
	Left     int    `json:"left,omitempty"`

	Member  string  `json:"member,omitempty"`
	Session string  `json:"session,omitempty"`
	Outcome string  `json:"outcome,omitempty"`
	Reason  string  `json:"reason,omitempty"`
	GapMS   float64 `json:"gap_ms,omitempty"` // without an accepted stream, before this one; 0 for a member's first
	AtHome  bool    `json:"at_home,omitempty"`
	Request string  `json:"request,omitempty"` // how it begins
}

// Writer writes events. It is safe for concurrent use; a nil Writer writes nothing.
type Writer struct {
	mu  sync.Mutex
	enc *json.Encoder
}

// NewWriter returns a Writer to w.
func NewWriter(w io.Writer) *Writer { return &Writer{enc: json.NewEncoder(w)} }

// Write writes one event, with the time of now if it has none.
func (w *Writer) Write(e Event) {
	if w == nil {
		return
	}
	if e.At.IsZero() {
		e.At = time.Now()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.enc.Encode(e) // a reader that has gone is no reason to stop
}

// Read calls f for every event in r, until r ends. A line that is no event is an error that quotes it.
func Read(r io.Reader, f func(Event)) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		var e Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("report: %q: %w", lines.Text(), err)
		}
		f(e)
	}
	return lines.Err()
}
