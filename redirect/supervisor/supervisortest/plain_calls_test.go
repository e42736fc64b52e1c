// SPDX-License-Identifier: Apache-2.0

package supervisortest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/forward"
	"github.com/evenring/evenring/ring"
)

var errTooLong = fmt.Errorf("that is more than %d bytes", plainBytes)

// plainRequest is one, on a stream or to a gateway.
type plainRequest struct {
	Member     ring.MemberID      `json:",omitempty"`
	Session    redirect.SessionID `json:",omitempty"`
	Payload    []byte             `json:",omitempty"`
	Idempotent bool               `json:",omitempty"`
	Forwarded  bool               `json:",omitempty"`
	Left       time.Duration      `json:",omitempty"` // 0: for ever
}

func (f fault) left(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok || f == losesDeadlines {
		return 0
	}
	return max(time.Until(deadline), 1)
}

func (r *plainRequest) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.Left == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, r.Left)
}

// plainReply is what became of one. Word is empty for an answer, the name of an
// error, or the text of a [forward.Reason].
type plainReply struct {
	Word    string `json:",omitempty"`
	Text    string `json:",omitempty"`
	Payload []byte `json:",omitempty"`
}

const ownError = "error"

// verdicts are the errors that have names, the most careful first.
var verdicts = []struct {
	word string
	err  error
}{
	{"uncertain", redirect.ErrUncertain},
	{"not here", redirect.ErrNotHere},
	{"not answering", redirect.ErrNotAnswering},
}

func (f fault) reply(answer []byte, err error) *plainReply {
	if err == nil {
		return &plainReply{Payload: answer}
	}
	if f == losesErrors {
		return &plainReply{}
	}
	for _, v := range verdicts {
		if errors.Is(err, v.err) {
			return &plainReply{Word: v.word}
		}
	}
	text := err.Error()
	if f != breaksOnSize {
		text = text[:min(len(text), 100)]
	}
	return &plainReply{Word: ownError, Text: text}
}

func (r *plainReply) read() ([]byte, error) {
	if r.Word == "" {
		return r.Payload, nil
	}
	for _, v := range verdicts {
		if v.word == r.Word {
			return nil, v.err
		}
	}
	return nil, errors.New(r.Text)
}

// called answers a caller, or another gateway.
func (f fault) called(t *talk, g Gate, r plainRequest) error {
	ctx, cancel := r.bounded(context.Background())
	defer cancel()
	go func() { // until whoever waits hangs up
		_, _ = t.hear(true)
		if f != neverCancels {
			cancel()
		}
	}()
	switch {
	case g.Calls == nil:
		return t.say(line{Reply: f.reply(nil, errors.New("no calls here"))})
	case r.Member == "":
		return t.say(line{Reply: f.reply(nil, errors.New("whom?"))})
	}
	cfg, peers := g.Calls.Forward, g.Calls.Peers
	cfg.Forwarded = r.Forwarded
	if r.Forwarded {
		peers = nil
	}
	req := redirect.Request{Member: r.Member, Session: r.Session, Payload: r.Payload, Idempotent: r.Idempotent && f != neverCallsAgain}
	if f == losesSessionsOfCalls {
		req.Session = ""
	}
	answer, err := forward.Call(ctx, cfg, g.Gateway, peers, req, forward.Hooks{})
	var failed *forward.Error
	if !r.Forwarded && errors.As(err, &failed) && f != losesErrors {
		reason := failed.Reason
		if f == losesReasons && reason == forward.Incomplete {
			reason = forward.Nobody
		}
		return t.say(line{Reply: &plainReply{Word: reason.String()}})
	}
	return t.say(line{Reply: f.reply(answer, err)})
}

// plainPeers is a link to other gateways, and a caller too. Each word has a connection of its own.
type plainPeers struct{ fault fault }

// exchange says one line and returns the next. sent: the first has gone out.
func (p plainPeers) exchange(ctx context.Context, addr string, say line) (heard line, sent bool, err error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return heard, false, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	t := newTalk(conn, p.fault)
	if err := t.say(say); err != nil {
		return heard, true, err
	}
	heard, err = t.hear(true)
	return heard, true, err
}

// Ask implements [redirect.Peers].
func (p plainPeers) Ask(ctx context.Context, to placement.Gateway, q placement.Question) (placement.Answer, error) {
	if p.fault == saysYesForOthers {
		return placement.Answer{Gateway: to.ID, Yes: true, State: placement.Ready}, nil
	}
	heard, _, err := p.exchange(ctx, to.Endpoint, line{Ask: &q})
	if err == nil && heard.Answer == nil {
		err = errors.New("no answer")
	}
	if err != nil {
		return placement.Answer{}, err
	}
	return *heard.Answer, nil
}

// post makes a request of a gateway, and returns what it says; nil: the error says what became of it.
func (p plainPeers) post(ctx context.Context, addr string, req redirect.Request, forwarded bool) (*plainReply, error) {
	if len(req.Payload) > plainBytes {
		return nil, errTooLong
	}
	heard, sent, err := p.exchange(ctx, addr, line{Request: &plainRequest{
		Member: req.Member, Session: req.Session, Payload: req.Payload, Idempotent: req.Idempotent, Forwarded: forwarded, Left: p.fault.left(ctx),
	}})
	switch {
	case err == nil && heard.Reply != nil:
		return heard.Reply, nil
	case ctx.Err() != nil && sent:
		return nil, ctx.Err()
	case sent && p.fault != trustsTheUncertain, p.fault == doubtsTheUnsent:
		return nil, fmt.Errorf("%w: %w", redirect.ErrUncertain, err)
	default:
		return nil, fmt.Errorf("%w: %w", forward.ErrNotSent, err)
	}
}

// Forward implements [forward.Peers].
func (p plainPeers) Forward(ctx context.Context, to placement.Gateway, req redirect.Request) ([]byte, error) {
	reply, err := p.post(ctx, to.Endpoint, req, true)
	if err != nil {
		return nil, err
	}
	return reply.read()
}

// Call implements [Caller].
func (p plainPeers) Call(ctx context.Context, addr string, req redirect.Request) ([]byte, error) {
	reply, err := p.post(ctx, addr, req, false)
	if err != nil && ctx.Err() != nil {
		return nil, &forward.Error{Reason: forward.Stopped, Member: req.Member, Session: req.Session, Err: ctx.Err()}
	}
	if err != nil {
		return nil, err
	}
	for _, r := range forward.Reasons() {
		if r.String() == reply.Word {
			return nil, &forward.Error{Reason: r, Member: req.Member, Session: req.Session}
		}
	}
	return reply.read()
}
