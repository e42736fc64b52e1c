// SPDX-License-Identifier: Apache-2.0

package supervisortest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// plainTransport is a transport of a line of JSON for each word, which may do one thing wrong.
type plainTransport struct {
	fault fault
	token func() string

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
	return &talk{Conn: conn, in: bufio.NewReaderSize(conn, 8<<10), fault: f}
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

// ping says nothing, now and then, until the conversation ends.
func (t *talk) ping(ctx context.Context, l line) {
	ticker := time.NewTicker(t.fault.keepalive() / 8)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if t.say(l) != nil {
				return
			}
		}
	}
}

// serve is the gateway's end.
func (f fault) serve(_ testing.TB, l net.Listener, g Gate) func() {
	var running sync.WaitGroup
	var mu sync.Mutex
	conns := make(map[net.Conn]bool)
	members := make(map[ring.MemberID]net.Conn)
	stop := func() {
		_ = l.Close()
		mu.Lock()
		for conn := range conns {
			_ = conn.Close()
		}
		mu.Unlock()
	}
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns[conn] = true
			mu.Unlock()
			running.Go(func() {
				defer conn.Close()
				member, err := f.attend(newTalk(conn, f), g, func(m ring.MemberID) {
					mu.Lock()
					defer mu.Unlock()
					members[m] = conn
				})
				mu.Lock()
				if newest := members[member]; f == endsTheMemberNotTheStream && newest != nil {
					_ = newest.Close()
				}
				mu.Unlock()
				if f == diesOfGarbage && member == "" && err != nil {
					stop()
				}
			})
		}
	})
	return func() { stop(); running.Wait() }
}

var errStranger = errors.New("no hello")

func (f fault) attend(t *talk, g Gate, attached func(ring.MemberID)) (ring.MemberID, error) {
	var first line
	for first.Hello == nil {
		var err error
		if first, err = t.hear(true); err != nil {
			return "", errStranger
		}
	}
	hello := *first.Hello
	if g.Authorize != nil && f != asksNobody {
		if err := g.Authorize(first.Token); err != nil {
			return hello.Member, err
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	v, a := g.Gateway.Admit(ctx, hello)
	if a == nil {
		return hello.Member, t.say(verdictLine(v))
	}
	attached(hello.Member)
	clean := false
	defer func() { a.Leave(clean || f == takesLossForGoodbye) }()
	if err := t.say(verdictLine(v)); err != nil {
		return hello.Member, err
	}
	beat := redirect.Notice{Kind: redirect.NoticeHeartbeat, Gateway: g.Gateway.ID(), Incarnation: g.Gateway.Incarnation()}
	if f == otherIncarnation {
		beat.Incarnation++
	}
	var talking sync.WaitGroup
	defer talking.Wait()
	defer t.Close()
	talking.Go(func() { t.ping(ctx, noticeLine(beat)) })
	talking.Go(func() { defer cancel(); clean = f.listen(t) })
	var held *redirect.Notice
	for {
		select {
		case n, more := <-a.Notices():
			switch {
			case !more:
				return hello.Member, nil
			case f == losesNotices:
				continue
			case f == swapsNotices && held == nil && n.Kind == redirect.NoticeMove:
				held = &n
				continue
			}
			if err := t.say(noticeLine(n)); err != nil {
				return hello.Member, err
			}
			if held != nil {
				_ = t.say(noticeLine(*held))
				held = nil
			}
		case <-ctx.Done():
			talking.Wait() // for clean
			return hello.Member, nil
		}
	}
}

// listen returns whether it ended with a goodbye.
func (f fault) listen(t *talk) bool {
	for {
		l, err := t.hear(f == gatewayWithoutKeepalive)
		if err != nil {
			return false
		}
		if l.Goodbye {
			return true
		}
	}
}

// Dial implements [redirect.Transport].
func (p *plainTransport) Dial(ctx context.Context, addr string, hello redirect.Hello) (redirect.Verdict, redirect.Stream, error) {
	if p.fault == ignoresTheContext {
		ctx = context.WithoutCancel(ctx)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		if p.fault == retriesTheRefused {
			<-ctx.Done()
		}
		return redirect.Verdict{}, nil, err
	}
	t := newTalk(conn, p.fault)
	verdict, err := p.greet(ctx, t, hello)
	if p.fault == trustsGarbage && err != nil && ctx.Err() == nil {
		verdict, err = redirect.Verdict{Outcome: redirect.Refuse}, nil
	}
	if err != nil || verdict.Outcome != redirect.Accept && p.fault != streamWithEveryVerdict || p.fault == noStream {
		if p.fault == leaksConnections {
			p.mu.Lock()
			p.leaked = append(p.leaked, conn)
			p.mu.Unlock()
		} else {
			_ = conn.Close()
		}
		return verdict, nil, err
	}
	s := &plainStream{talk: t, closed: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if p.fault == tiesTheStreamToTheDial {
		s.ctx, s.cancel = context.WithCancel(ctx)
		context.AfterFunc(s.ctx, func() { _ = conn.Close() })
	}
	go s.ping(s.ctx, line{})
	if p.fault == oneAtATime {
		p.mu.Lock()
		if p.latest != nil {
			_ = p.latest.Close()
		}
		p.latest = s
		p.mu.Unlock()
	}
	return verdict, s, nil
}

func (p *plainTransport) greet(ctx context.Context, t *talk, hello redirect.Hello) (redirect.Verdict, error) {
	if p.fault == ignoresTheContext {
		_ = t.SetReadDeadline(time.Now().Add(3 * short))
	} else {
		stop := context.AfterFunc(ctx, func() { _ = t.SetReadDeadline(time.Unix(1, 0)) })
		defer stop()
	}
	switch p.fault {
	case losesTheCap:
		hello.Cap = 0
	case roundsGenerations:
		hello.Generation = hello.Generation / 10 * 10
	}
	p.mu.Lock()
	if p.kept == "" || p.fault != keepsTheToken {
		p.kept = p.token()
	}
	token := p.kept
	p.mu.Unlock()
	if err := t.say(line{Hello: &hello, Token: token}); err != nil {
		return redirect.Verdict{}, err
	}
	for {
		l, err := t.hear(true)
		if err != nil {
			return redirect.Verdict{}, err
		}
		if l.Verdict == nil {
			continue
		}
		v := l.verdict()
		switch p.fault {
		case losesTheEndpoint:
			v.Endpoint = ""
		case losesRetryAfter:
			v.RetryAfter = 0
		}
		return v, nil
	}
}

// plainStream is an accepted stream.
type plainStream struct {
	*talk
	ctx    context.Context
	cancel context.CancelFunc
	once   sync.Once
	closed chan struct{}
}

func (s *plainStream) Notice() (redirect.Notice, error) {
	for {
		l, err := s.hear(s.fault == noKeepalive)
		if err != nil {
			s.cancel()
			if s.fault == closeLeavesNoticeWaiting {
				select {
				case <-s.closed:
					// As if it had not been told; the test must end all the same.
					<-time.After(3 * short)
				default:
				}
			}
			return redirect.Notice{}, err
		}
		if l.Notice != nil {
			if n := l.notice(); n.Kind != redirect.NoticeNone {
				return n, nil
			}
		}
	}
}

func (s *plainStream) Close() error {
	s.once.Do(func() {
		if s.fault != closesWithoutGoodbye {
			_ = s.say(line{Goodbye: true})
		}
		s.cancel()
		close(s.closed)
		_ = s.Conn.Close()
	})
	return nil
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
		Transport: func(t testing.TB, token func() string) redirect.Transport {
			p := &plainTransport{fault: f, token: token}
			t.Cleanup(func() {
				for _, conn := range p.leaked {
					_ = conn.Close()
				}
			})
			return p
		},
		Credentials: true,
		Keepalive:   f.keepalive(),
		Heartbeat:   f.keepalive() / 8,
		Later:       later,
		LaterHello:  laterHello,
	}
}
