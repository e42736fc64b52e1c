// SPDX-License-Identifier: Apache-2.0

package redirect

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// SessionID names one child session of a supervisor. It is unique among that
// supervisor's sessions.
type SessionID string

// Hello is the first word on every stream: who dials, and how it wants to be
// treated. A field that a gateway does not know is ignored by it.
type Hello struct {
	Member     ring.MemberID        // who dials; for a session, its supervisor. Required.
	Session    SessionID            // set: this is a child session of Member, to be served where Member is
	Generation placement.Generation // of this attempt; required for a supervisor

	Stay        bool             // asks to be kept by the gateway it dials
	Hops        int              // redirects followed since the Service was dialled
	Cap         int              // the cap in the verdict that sent it here, so that a lagging view bounces nobody
	Avoid       []ring.GatewayID // gateways that it could not reach, or lost
	Full        []ring.GatewayID // gateways that found themselves full on the way
	CanRedirect bool             // follows redirects; an old client does not
	Answers     bool             // answers requests; see [Gateway.Deliver]
	Home        ring.GatewayID   // who last accepted it, for logs, and for whom a settle moves first: the roster is what counts; empty: nobody that it remembers
	Proof       []byte           // of the verdict or notice that it follows; see [Proofs]
}

// Validate reports every fault of the hello, each naming its field.
func (h Hello) Validate() error {
	var errs []error
	if h.Member == "" {
		errs = append(errs, errors.New("redirect: Hello.Member is empty"))
	}
	if !utf8.ValidString(string(h.Member)) {
		errs = append(errs, fmt.Errorf("redirect: Hello.Member is %q; it must be UTF-8", h.Member))
	}
	if !utf8.ValidString(string(h.Session)) {
		errs = append(errs, fmt.Errorf("redirect: Hello.Session is %q; it must be UTF-8", h.Session))
	}
	if h.Session == "" && h.Generation == 0 {
		errs = append(errs, errors.New("redirect: Hello.Generation is 0; start it from the clock"))
	}
	if h.Generation >= 1<<63 { // no clock says so before the year 2262, and nobody could raise his above it for ever
		errs = append(errs, fmt.Errorf("redirect: Hello.Generation is %d; it must be below 2^63", h.Generation))
	}
	if h.Hops < 0 {
		errs = append(errs, fmt.Errorf("redirect: Hello.Hops is %d; it cannot be below 0", h.Hops))
	}
	if h.Cap < 0 {
		errs = append(errs, fmt.Errorf("redirect: Hello.Cap is %d; it cannot be below 0", h.Cap))
	}
	return errors.Join(errs...)
}

// Outcome is what a gateway does with a hello.
type Outcome uint8

// The outcomes. The zero value is none of the three, so that the zero verdict admits nobody.
const (
	None     Outcome = iota
	Accept           // served here
	Redirect         // dial Gateway at Endpoint, staying
	Refuse           // come back after RetryAfter
)

var outcomeText = [...]string{"none", "accept", "redirect", "refuse"}

// String returns the outcome's stable text: metric label, log word and wire word in one.
func (o Outcome) String() string {
	if int(o) < len(outcomeText) {
		return outcomeText[o]
	}
	return outcomeText[None]
}

// Outcomes returns all outcomes but None, in order.
func Outcomes() []Outcome { return []Outcome{Accept, Redirect, Refuse} }

// ParseOutcome is the inverse of [Outcome.String]. A word that it does not
// know is None: it admits nobody, and fails nothing else.
func ParseOutcome(text string) Outcome {
	for _, o := range Outcomes() {
		if outcomeText[o] == text {
			return o
		}
	}
	return None
}

// Verdict is a gateway's answer to a hello. The zero verdict admits nobody.
type Verdict struct {
	Outcome Outcome
	Reason  Reason

	// The gateway that serves (Accept: the one that answers; Redirect: the one
	// to dial) and where it can be dialled directly. Endpoint may be empty in
	// an Accept: that gateway can only be reached through the Service.
	Gateway     ring.GatewayID
	Endpoint    string
	Incarnation placement.Incarnation

	Cap        int                  // the cap that was applied; the supervisor carries it along
	Full       []ring.GatewayID     // who found itself full on the way; the supervisor carries it along
	RetryAfter time.Duration        // Refuse: come back no sooner than this
	Generation placement.Generation // Refuse with ReasonStaleGeneration: raise yours above this one
	Proof      []byte               // Accept, Redirect: to be shown to that gateway when asking it to stay; empty: it makes none
}

// NoticeKind tells the notices apart.
type NoticeKind uint8

// The kinds of notice. A kind from a newer gateway is to be ignored.
const (
	NoticeNone      NoticeKind = iota
	NoticeMove                 // go to Gateway at Endpoint (or, without one, to the Service), then close this stream
	NoticeEnd                  // this stream ends now, for Reason
	NoticeHeartbeat            // still here; Gateway and Incarnation say who
)

var noticeText = [...]string{"none", "move", "end", "heartbeat"}

// String returns the kind's stable text.
func (k NoticeKind) String() string {
	if int(k) < len(noticeText) {
		return noticeText[k]
	}
	return noticeText[NoticeNone]
}

// ParseNoticeKind is the inverse of [NoticeKind.String]. A word that it does not
// know is NoticeNone, which is to be ignored.
func ParseNoticeKind(text string) NoticeKind {
	for _, k := range []NoticeKind{NoticeMove, NoticeEnd, NoticeHeartbeat} {
		if k.String() == text {
			return k
		}
	}
	return NoticeNone
}

// Notice is what a gateway says on a stream that it has accepted.
type Notice struct {
	Kind        NoticeKind
	Reason      Reason
	Gateway     ring.GatewayID
	Endpoint    string
	Incarnation placement.Incarnation
	Cap         int    // NoticeMove: the cap that was applied when the target was chosen
	Proof       []byte // NoticeMove: to be shown to the target; NoticeHeartbeat: to this gateway from now on; empty: the last one holds
}
