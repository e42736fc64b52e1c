// SPDX-License-Identifier: Apache-2.0

package redirectws

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/forward"
	"github.com/evenring/evenring/ring"
)

// answering is a gateway's end of the peer link, as a test wants it.
func answering(answer func(http.ResponseWriter, questionWord)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q questionWord
		if take(w, r, &q) {
			answer(w, q)
		}
	})
}

func yes(id ring.GatewayID) http.Handler {
	return answering(func(w http.ResponseWriter, _ questionWord) {
		data, err := encodeAnswer(placement.Answer{Gateway: id, Yes: true, State: placement.Ready})
		give(w, http.StatusOK, data, err)
	})
}

// counted counts the connections that were taken from it.
type counted struct {
	net.Listener
	taken atomic.Int32
}

func (c *counted) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.taken.Add(1)
	}
	return conn, err
}

func peerServing(t *testing.T, addr string, h http.Handler) (*counted, *server) {
	l := &counted{Listener: listen(t, addr)}
	return l, serve(t, l, h)
}

func plainPeers(t testing.TB) *Peers {
	p := &Peers{Plaintext: true}
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

func at(id ring.GatewayID, endpoint string) placement.Gateway {
	return placement.Gateway{ID: id, Endpoint: endpoint}
}

var someQuestion = placement.Question{From: "a", Member: "m", Generation: 3, Limit: 2, Insist: true, Reports: []placement.Report{
	{Gateway: "a", Counts: placement.Counts{Incarnation: 7, Sequence: 8, Attached: 1, Held: 2, Reserved: 3}},
}}

func TestAsk(t *testing.T) {
	questions := make(chan placement.Question, 1)
	want := placement.Answer{Gateway: "b", Yes: true, State: placement.Ready, Reports: []placement.Report{{Gateway: "b", Counts: placement.Counts{Attached: 4}}}}
	l, _ := peerServing(t, "127.0.0.1:0", answering(func(w http.ResponseWriter, q questionWord) {
		questions <- questionFromWire(&q)
		_, _ = w.Write([]byte(`{"gateway":"b","yes":true,"state":"ready","reports":[{"gateway":"b","counts":{"attached":"4","song":1},"song":2}],"song":3}`))
	}))
	got, err := plainPeers(t).Ask(inTime(t), at("b", l.Addr().String()), someQuestion)
	require.NoError(t, err)
	require.Equal(t, want, got, "by a later version")
	require.Equal(t, someQuestion, receiveFrom(t, questions))
}

func TestAsksShareConnections(t *testing.T) {
	l, _ := peerServing(t, "127.0.0.1:0", yes("b"))
	p := plainPeers(t)
	const rounds, atOnce = 10, 5
	for range rounds {
		var group sync.WaitGroup
		errs := make([]error, atOnce)
		for i := range atOnce {
			group.Go(func() { _, errs[i] = p.Ask(inTime(t), at("b", l.Addr().String()), someQuestion) })
		}
		group.Wait()
		require.NoError(t, errors.Join(errs...))
	}
	require.LessOrEqual(t, l.taken.Load(), int32(2*atOnce))
}

// A target that refuses costs an ask no time.
func TestRefusedAskFailsAtOnce(t *testing.T) {
	ctx := inTime(t)
	for range 10 {
		_, err := plainPeers(t).Ask(ctx, at("b", refusing(t)), someQuestion)
		require.ErrorContains(t, err, "b at")
		require.ErrorContains(t, err, "refused")
	}
	require.NoError(t, ctx.Err())
}

func TestAskAnswersAgainAtOnce(t *testing.T) {
	p := plainPeers(t)
	l, server := peerServing(t, "127.0.0.1:0", yes("b"))
	to := at("b", l.Addr().String())
	_, err := p.Ask(inTime(t), to, someQuestion)
	require.NoError(t, err)

	server.stop()
	for range 3 {
		_, err = p.Ask(inTime(t), to, someQuestion)
		require.Error(t, err)
	}

	peerServing(t, l.Addr().String(), yes("b"))
	_, err = p.Ask(inTime(t), to, someQuestion)
	require.NoError(t, err, "no back-off stands between a gateway that is back and the next ask")
}

func TestSilentAskEndsWithItsContext(t *testing.T) {
	silent := listen(t, "127.0.0.1:0")
	t.Cleanup(func() { _ = silent.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := plainPeers(t).Ask(ctx, at("b", silent.Addr().String()), someQuestion)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestAskFails(t *testing.T) {
	l, _ := peerServing(t, "127.0.0.1:0", yes("c"))
	_, err := plainPeers(t).Ask(inTime(t), at("b", l.Addr().String()), someQuestion)
	require.ErrorContains(t, err, "c answers there")

	_, err = plainPeers(t).Ask(inTime(t), at("b", ""), someQuestion)
	require.ErrorContains(t, err, "no endpoint")

	var insecure Peers
	_, err = insecure.Ask(inTime(t), at("b", "127.0.0.1:1"), someQuestion)
	require.ErrorContains(t, err, "set TLS, or Plaintext")
	require.NoError(t, insecure.Close())

	_, err = plainPeers(t).Ask(inTime(t), at("b", l.Addr().String()), placement.Question{Member: "\xff"})
	require.ErrorContains(t, err, "UTF-8")

	l, _ = peerServing(t, "127.0.0.1:0", answering(func(w http.ResponseWriter, _ questionWord) { _, _ = w.Write([]byte("sing")) }))
	_, err = plainPeers(t).Ask(inTime(t), at("b", l.Addr().String()), someQuestion)
	var syntax *json.SyntaxError
	require.ErrorAs(t, err, &syntax)

	l, _ = peerServing(t, "127.0.0.1:0", http.NotFoundHandler())
	_, err = plainPeers(t).Ask(inTime(t), at("b", l.Addr().String()), someQuestion)
	var told *Error
	require.ErrorAs(t, err, &told)
	require.Equal(t, http.StatusNotFound, told.Status)
}

func TestPeersClose(t *testing.T) {
	asked, release := make(chan struct{}), make(chan struct{})
	l, _ := peerServing(t, "127.0.0.1:0", answering(func(http.ResponseWriter, questionWord) {
		close(asked)
		<-release
	}))
	p := plainPeers(t)
	failed := make(chan error, 1)
	go func() { _, err := p.Ask(inTime(t), at("b", l.Addr().String()), someQuestion); failed <- err }()
	receiveFrom(t, asked)
	require.NoError(t, p.Close())
	require.ErrorContains(t, receiveFrom(t, failed), "closed")
	require.NoError(t, p.Close())
	_, err := p.Ask(inTime(t), at("b", l.Addr().String()), someQuestion)
	require.ErrorContains(t, err, "closed")
	_, err = p.Forward(inTime(t), at("b", l.Addr().String()), redirect.Request{Member: "s"})
	require.ErrorIs(t, err, forward.ErrNotSent)
	close(release)
}
