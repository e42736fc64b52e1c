// SPDX-License-Identifier: Apache-2.0

package supervisortest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
)

// plainTransport is a transport of a line of JSON for each word, which may do one thing wrong.
type plainTransport struct {
	fault fault
	token func() string

	answer func(context.Context, []byte) ([]byte, error)

	mu     sync.Mutex
	kept   string
	latest *plainStream
	leaked []net.Conn
}

// fault is what a plain transport does wrong.
type fault int

const (
	none fault = iota
	losesTheCap
	roundsGenerations
	losesTheEndpoint
	losesRetryAfter
	streamWithEveryVerdict
	noStream
	ignoresTheContext
	leaksConnections
	tiesTheStreamToTheDial
	retriesTheRefused
	trustsGarbage
	diesOfGarbage
	closesWithoutGoodbye
	closeLeavesNoticeWaiting
	takesLossForGoodbye
	swapsNotices
	losesNotices
	endsTheMemberNotTheStream
	oneAtATime
	noKeepalive
	gatewayWithoutKeepalive
	otherIncarnation
	keepsTheToken
	asksNobody
	strict

	// Of the link to others.
	saysYesForOthers
	// Of proofs and sessions.
	losesProofs
	losesRenewals
	sessionsStay
	// Of payloads.
	swapsPayloads
	forgetsPayloadsAtGoodbye
	takesTheEndForALoss
	takesEveryEndForAGoodbye
	goodbyeIsALossToApplications
	waitsForTheDeaf
	// Of calls.
	losesReasons
	losesSessionsOfCalls
	losesErrors
	losesDeadlines
	neverCancels
	callsAgain
	neverCallsAgain
	doubtsTheUnsent
	trustsTheUncertain
	servesWhileClosing
	dropsAnswersAtClose
	dropsAnswersAtTheEnd
	breaksOnSize
	executesTwice
	stopsUnderCalls
)

// keepalive is long for the transport that is to pass, for a busy machine is late.
func (f fault) keepalive() time.Duration {
	if f == none {
		return 5 * time.Second
	}
	return time.Second
}

// line is every word there is.
type line struct {
	Hello   *redirect.Hello   `json:",omitempty"`
	Token   string            `json:",omitempty"`
	Verdict *redirect.Verdict `json:",omitempty"`
	Notice  *redirect.Notice  `json:",omitempty"`
	Word    string            `json:",omitempty"` // of the outcome or the kind
	Reason  string            `json:",omitempty"`
	Goodbye bool              `json:",omitempty"`
	Over    bool              `json:",omitempty"` // the gateway has ended the stream in good order
	Payload []byte            `json:",omitempty"`

	ID      uint64        `json:",omitempty"` // of a request on a stream
	Request *plainRequest `json:",omitempty"`
	Reply   *plainReply   `json:",omitempty"`
	Cancel  bool          `json:",omitempty"`

	Ask    *placement.Question `json:",omitempty"`
	Answer *placement.Answer   `json:",omitempty"`
}

func verdictLine(v redirect.Verdict) line {
	return line{Verdict: &v, Word: v.Outcome.String(), Reason: v.Reason.String()}
}

func noticeLine(n redirect.Notice) line {
	return line{Notice: &n, Word: n.Kind.String(), Reason: n.Reason.String()}
}

func (l line) verdict() redirect.Verdict {
	v := *l.Verdict
	v.Outcome, v.Reason = redirect.ParseOutcome(l.Word), redirect.ParseReason(l.Reason)
	return v
}

func (l line) notice() redirect.Notice {
	n := *l.Notice
	n.Kind, n.Reason = redirect.ParseNoticeKind(l.Word), redirect.ParseReason(l.Reason)
	return n
}

// talk is one end of a connection.
type talk struct {
	net.Conn
	in    *bufio.Reader
	fault fault
	mu    sync.Mutex
}

func newTalk(conn net.Conn, f fault) *talk {
	return &talk{Conn: conn, in: bufio.NewReaderSize(conn, longestLine), fault: f}
}

func (t *talk) say(l line) error {
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_, err = t.Write(append(data, '\n'))
	return err
}

func (t *talk) hear(patient bool) (l line, err error) {
	if !patient {
		if err := t.SetReadDeadline(time.Now().Add(t.fault.keepalive())); err != nil {
			return l, err
		}
	}
	data, err := t.in.ReadSlice('\n') // a line that is too long is an error
	if err != nil {
		return l, err
	}
	if t.fault == strict {
		var all map[string]any
		if err := json.Unmarshal(data, &all); err != nil || all["Sing"] != nil {
			return l, fmt.Errorf("strictly speaking: %q, %w", data, err)
		}
	}
	return l, json.Unmarshal(data, &l)
}

// longestLine is the bytes of one, and plainBytes of a payload that fits into it.
const (
	longestLine = 8 << 10
	plainBytes  = 4 << 10
)

// ping says something, now and then, until the conversation ends.
func (t *talk) ping(ctx context.Context, every time.Duration, say func() line) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if t.say(say()) != nil {
				return
			}
		}
	}
}

// later is a gateway of a later version.
func later(t testing.TB, l net.Listener) {
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = bufio.NewReader(conn).ReadSlice('\n')
			_, _ = io.WriteString(conn, `{"Sing":1}
{"Verdict":{"Sing":1},"Word":"accept","Reason":"whim"}
{"Notice":{"Sing":1},"Word":"sing"}
{"Notice":{"Sing":1},"Word":"move","Reason":"whim"}
{"Notice":{"Sing":1},"Word":"end","Reason":"stopped"}
`)
			_ = conn.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
		}
	})
	t.Cleanup(func() { _ = l.Close(); running.Wait() })
}

// laterHello is a supervisor of a later version.
func laterHello(t testing.TB, addr string, hello redirect.Hello) redirect.Outcome {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	data, err := json.Marshal(hello)
	if err != nil {
		t.Fatalf("%v", err)
	}
	_, _ = fmt.Fprintf(conn, "{\"Sing\":1}\n{\"Hello\":{\"Sing\":1,%s}\n", data[1:])
	answer, err := newTalk(conn, none).hear(true)
	if err != nil || answer.Verdict == nil {
		return redirect.None
	}
	return answer.verdict().Outcome
}

func (f fault) subject() Subject {
	return Subject{
		Serve: f.serve,
		Transport: func(t testing.TB, s Supervisor) redirect.Transport {
			p := &plainTransport{fault: f, token: s.Token, answer: s.Answer}
			t.Cleanup(func() {
				p.mu.Lock()
				defer p.mu.Unlock()
				for _, conn := range p.leaked {
					_ = conn.Close()
				}
			})
			return p
		},
		Peers:       func(testing.TB) Peers { return plainPeers{f} },
		Caller:      func(testing.TB) Caller { return plainPeers{f} },
		CallBytes:   plainBytes,
		Payloads:    true,
		Credentials: true,
		Keepalive:   f.keepalive(),
		Heartbeat:   f.keepalive() / 8,
		Later:       later,
		LaterHello:  laterHello,
	}
}
