// SPDX-License-Identifier: Apache-2.0

package redirectws

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/carry"
	"github.com/evenring/evenring/redirect/forward"
	"github.com/evenring/evenring/ring"
)

var taking = gateOptions{calls: &CallConfig{}}

// complete makes the gateways know each other, and know that they are all.
func (f *fleet) complete(t testing.TB) {
	f.meet(t)
	var all []ring.GatewayID
	for id := range f.gates {
		all = append(all, id)
	}
	for _, g := range f.gates {
		g.Step(roster.Discovered{Gateways: all})
	}
	for _, g := range f.gates {
		eventually(t, func() bool { return g.Ready().Callers.OK && g.knows("stranger") == roster.Nobody })
	}
}

func (g *gate) knows(m ring.MemberID) roster.Where {
	route, _ := g.Route(m, "")
	return route.Where
}

// client is a caller at one gateway.
type client struct {
	*Caller
	addr string
}

func plainCaller(t testing.TB) *Caller {
	c := &Caller{Plaintext: true}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func caller(t testing.TB, addr string) client { return client{plainCaller(t), addr} }

func call(ctx context.Context, to client, m ring.MemberID, payload string) (string, error) {
	answer, err := to.Call(ctx, to.addr, redirect.Request{Member: m, Payload: []byte(payload)})
	return string(answer), err
}

// ended checks why a call failed.
func ended(t testing.TB, err error, want forward.Reason) {
	t.Helper()
	var failed *forward.Error
	require.ErrorAs(t, err, &failed)
	require.Equal(t, want, failed.Reason, "%v", err)
}

// told checks what a call was answered with.
func told(t testing.TB, err error, status int, message string) {
	t.Helper()
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, status, e.Status, "%v", err)
	require.Contains(t, e.Message, message)
}

// answeringAs answers with its name and what it was sent.
func answeringAs(name string) Transport {
	tr := plain
	tr.Serve = func(_ context.Context, request []byte) ([]byte, error) {
		return []byte(name + ": " + string(request)), nil
	}
	return tr
}

func hello(m ring.MemberID, g placement.Generation) redirect.Hello {
	return redirect.Hello{Member: m, Generation: g, Stay: true, CanRedirect: true}
}

// A gateway that hands over asks its callers to connect anew, with each answer.
func TestDrainingCallersConnectAnew(t *testing.T) {
	f := newFleet()
	a := f.start(t, "a", taking)
	f.complete(t)
	dial(t, answeringAs("s"), a.addr, hello("s", 1))
	closing := func() bool {
		request, err := http.NewRequestWithContext(inTime(t), http.MethodPost, "http://"+a.addr+CallPath, strings.NewReader(`{"member":"s"}`))
		require.NoError(t, err)
		request.Header.Set("Content-Type", "application/json")
		carrier := &http.Transport{}
		t.Cleanup(carrier.CloseIdleConnections)
		response, err := carrier.RoundTrip(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusOK, response.StatusCode)
		return response.Close
	}
	require.False(t, closing())
	_, err := a.StartDrain(func(redirect.Departure) {})
	require.NoError(t, err)
	require.True(t, closing())
	a.StopDrain()
	require.False(t, closing())
}

// A caller is told the status of what the member answers with, and of what turns it away, from here and over a hop.
func TestStatuses(t *testing.T) {
	f := newFleet()
	a, b := f.start(t, "a", taking), f.start(t, "b", taking)
	f.complete(t)
	tr := plain
	tr.Serve = func(_ context.Context, request []byte) ([]byte, error) {
		switch string(request[:5]) {
		case "denie":
			return nil, &Error{http.StatusForbidden, "not you"}
		case "plain":
			return nil, errors.New("broken")
		default:
			return append(request, 0), nil
		}
	}
	dial(t, tr, a.addr, hello("s", 1))
	eventually(t, func() bool { return b.knows("s") == roster.Elsewhere })
	longest := strings.Repeat("x", MaxCallBytes)
	for _, g := range []*gate{a, b} {
		c := caller(t, g.addr)
		_, err := call(inTime(t), c, "s", "denied")
		require.Equal(t, &Error{http.StatusForbidden, "not you"}, err)
		_, err = call(inTime(t), c, "s", "plain")
		require.Equal(t, &Error{http.StatusInternalServerError, "broken"}, err)
		require.Equal(t, "redirectws: 500 Internal Server Error: broken", err.Error())
		_, err = call(inTime(t), c, "", "hi")
		told(t, err, http.StatusBadRequest, "member")
	}
	_, err := call(inTime(t), caller(t, b.addr), "s", longest+"x")
	told(t, err, http.StatusRequestEntityTooLarge, "the request has")
	_, err = call(inTime(t), caller(t, b.addr), "s", longest)
	told(t, err, http.StatusRequestEntityTooLarge, "the answer has")
	_, err = a.Deliver(inTime(t), redirect.Request{Member: "s", Payload: []byte(longest + "x")})
	told(t, err, http.StatusRequestEntityTooLarge, "the request has")
}

func TestCallAuthorize(t *testing.T) {
	f := newFleet()
	o := gateOptions{calls: &CallConfig{Authorize: func(ctx context.Context, r redirect.Request) error {
		if string(r.Payload) == "secret" && RequestFrom(ctx).URL.Path == CallPath {
			return errors.New("that is secret")
		}
		return nil
	}}}
	a, b := f.start(t, "a", o), f.start(t, "b", gateOptions{})
	f.complete(t)
	dial(t, answeringAs("s"), a.addr, hello("s", 1))
	dial(t, answeringAs("t"), b.addr, hello("t", 1))
	eventually(t, func() bool { return a.knows("t") == roster.Elsewhere && b.knows("s") == roster.Elsewhere })
	_, err := call(inTime(t), caller(t, a.addr), "s", "secret")
	told(t, err, http.StatusForbidden, "that is secret")
	answer, err := call(inTime(t), caller(t, a.addr), "s", "hi")
	require.NoError(t, err)
	require.Equal(t, "s: hi", answer)

	// Who takes no calls takes none from another gateway either.
	_, err = call(inTime(t), caller(t, b.addr), "t", "hi")
	told(t, err, http.StatusNotImplemented, "takes no calls")
	o.calls = &CallConfig{Forward: forward.Config{Patience: 1}}
	c := f.start(t, "c", o)
	f.complete(t)
	_, err = call(inTime(t), caller(t, c.addr), "t", "hi")
	ended(t, err, forward.Unreachable)
}

// A caller that says nothing of time does not wait for ever.
func TestCallTimeout(t *testing.T) {
	f := newFleet()
	a := f.start(t, "a", gateOptions{calls: &CallConfig{Timeout: 50 * time.Millisecond}})
	f.complete(t)
	tr := plain
	tr.Serve = func(ctx context.Context, _ []byte) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() }
	dial(t, tr, a.addr, hello("s", 1))
	_, err := call(t.Context(), caller(t, a.addr), "s", "hi")
	require.Error(t, err)
	require.ErrorContains(t, err, "deadline exceeded")
}

// What is known of a posted request that ends without a reply: nothing, once it has been sent.
func TestForwardIsCareful(t *testing.T) {
	for _, row := range []struct {
		name string
		code int
		want error
	}{
		{"of another version", http.StatusNotFound, forward.ErrNotSent},
		{"of another fleet", http.StatusForbidden, forward.ErrNotSent},
		{"it takes no calls", http.StatusNotImplemented, forward.ErrNotSent},
		{"unavailable", http.StatusServiceUnavailable, redirect.ErrUncertain},
		{"broken", http.StatusInternalServerError, redirect.ErrUncertain},
		{"out of time", http.StatusGatewayTimeout, redirect.ErrUncertain},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := listen(t, "127.0.0.1:0")
			serve(t, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				turnAway(w, row.code, "because")
			}))
			_, err := plainPeers(t).Forward(inTime(t), at("b", l.Addr().String()), redirect.Request{Member: "s"})
			require.ErrorIs(t, err, row.want)
			told(t, err, row.code, "because")
		})
	}
	posts := map[string]func(t *testing.T, addr string) error{
		"forward": func(t *testing.T, addr string) error {
			_, err := plainPeers(t).Forward(inTime(t), at("b", addr), redirect.Request{Member: "s"})
			return err
		},
		"call": func(t *testing.T, addr string) error {
			_, err := call(inTime(t), caller(t, addr), "s", "hi")
			return err
		},
	}
	for name, post := range posts {
		t.Run(name+" to one that answers in riddles", func(t *testing.T) {
			l := listen(t, "127.0.0.1:0")
			serve(t, l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"outcome":"sung"}`)) }))
			require.ErrorIs(t, post(t, l.Addr().String()), redirect.ErrUncertain)
		})
	}
	_, err := plainPeers(t).Forward(inTime(t), at("b", "127.0.0.1:1"), redirect.Request{Member: "\xff"})
	require.ErrorIs(t, err, forward.ErrNotSent)
	_, err = call(inTime(t), caller(t, "127.0.0.1:1"), "\xff", "hi")
	require.ErrorIs(t, err, forward.ErrNotSent)
}

// What is not answered when Linger is over is not said to be not executed.
func TestLinger(t *testing.T) {
	f := newFleet()
	a := f.start(t, "a", taking)
	f.complete(t)
	begun := make(chan struct{}, 1)
	tr := plain
	tr.Linger = time.Millisecond
	tr.Serve = func(ctx context.Context, _ []byte) ([]byte, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return nil, nil
	}
	stream := dial(t, tr, a.addr, hello("s", 1))
	results := make(chan error, 1)
	c := caller(t, a.addr)
	go func() { _, err := call(inTime(t), c, "s", "hi"); results <- err }()
	receiveFrom(t, begun)
	require.NoError(t, stream.Close())
	ended(t, receiveFrom(t, results), forward.Lost)

	tr.Linger = -1
	_, _, err := tr.Dial(inTime(t), a.addr, hello("s", 2))
	require.ErrorContains(t, err, "Transport.Linger is -1ns")
}

// A stream that the gateway ends is not kept for its answers for longer than Linger.
func TestServerLinger(t *testing.T) {
	f := newFleet()
	o := taking
	o.server.Linger = time.Millisecond
	a := f.start(t, "a", o)
	f.complete(t)
	begun, release := make(chan struct{}, 1), make(chan struct{})
	tr := plain
	tr.Serve = func(context.Context, []byte) ([]byte, error) {
		begun <- struct{}{}
		<-release
		return []byte("late"), nil
	}
	stream := dial(t, tr, a.addr, hello("s", 1))
	t.Cleanup(func() { close(release) })
	results := make(chan error, 1)
	c := caller(t, a.addr)
	go func() { _, err := call(inTime(t), c, "s", "hi"); results <- err }()
	receiveFrom(t, begun)
	a.EndAll(redirect.ReasonExpired)
	ended(t, receiveFrom(t, results), forward.Lost)
	notice, err := stream.Notice()
	require.NoError(t, err)
	require.Equal(t, redirect.NoticeEnd, notice.Kind)
	_, err = stream.Notice()
	require.Error(t, err)
}

// A peer of another version, or worse: what it says that is not known may mean that it was executed.
func TestReplies(t *testing.T) {
	for _, row := range []struct {
		answer []byte
		err    error
		want   error
	}{
		{[]byte("x"), nil, nil},
		{nil, redirect.ErrNotHere, redirect.ErrNotHere},
		{nil, fmt.Errorf("so: %w", redirect.ErrNotHere), redirect.ErrNotHere},
		{nil, redirect.ErrNotAnswering, redirect.ErrNotAnswering},
		{nil, redirect.ErrUncertain, redirect.ErrUncertain},
		{nil, &forward.Error{Reason: forward.Missed}, redirect.ErrNotHere},
		{nil, &forward.Error{Reason: forward.Away}, redirect.ErrNotHere},
		{nil, &forward.Error{Reason: forward.Lost}, redirect.ErrUncertain},
		{nil, &forward.Error{Reason: forward.Lost, Err: redirect.ErrNotHere}, redirect.ErrUncertain},
		{nil, &forward.Error{Reason: forward.Stopped, Err: context.Canceled}, redirect.ErrUncertain},
		{nil, &Error{410, "gone"}, &Error{410, "gone"}},
		{nil, fmt.Errorf("so: %w", &Error{410, "gone"}), &Error{410, "gone"}},
		{nil, &Error{200, "fine"}, &Error{500, "fine"}},
		{nil, context.DeadlineExceeded, &Error{504, "context deadline exceeded"}},
		{nil, carry.ErrTooMany, &Error{429, "1024 requests are being answered"}},
	} {
		var w replyWord
		recoded(t, replyToWire(row.answer, row.err), &w)
		answer, err := replyFromWire(&w)
		require.Equal(t, row.want, err, "%v", row.err)
		require.Equal(t, row.answer, answer)
	}
	for _, w := range []*replyWord{{}, {Outcome: "sung"}} {
		_, err := replyFromWire(w)
		require.ErrorIs(t, err, redirect.ErrUncertain)
	}
}

// Whatever a call ends with is known to the caller by the same name.
func TestCallReplies(t *testing.T) {
	req := redirect.Request{Member: "m", Session: "s"}
	statuses := map[forward.Reason]int{
		forward.Nobody: 404, forward.Incomplete: 503, forward.Away: 503, forward.Missed: 503, forward.Unreachable: 503,
		forward.Stopped: 504, forward.Lost: 502,
	}
	for _, r := range forward.Reasons() {
		if r == forward.None || r == forward.Done {
			continue
		}
		want := &forward.Error{Reason: r, Member: "m", Session: "s", Err: errors.New("so")}
		status, reply := callReply(nil, want)
		require.Equal(t, statuses[r], status, r)
		data, err := encode(reply)
		require.NoError(t, err)
		_, err = answerOf(req, status, data)
		require.Equal(t, want, err)
	}
}

func TestTooManyRequests(t *testing.T) {
	_, err := replyFromWire(replyToWire(nil, carry.ErrTooMany))
	told(t, err, http.StatusTooManyRequests, "being answered")
}
