// SPDX-License-Identifier: Apache-2.0

package redirectgrpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/forward"
	"github.com/evenring/evenring/redirect/redirectgrpc/evenringpb"
	"github.com/evenring/evenring/ring"
)

type answering struct {
	evenringpb.UnimplementedPeerServer
	answer func(context.Context, *evenringpb.Question) (*evenringpb.Answer, error)
}

func (a answering) Ask(ctx context.Context, q *evenringpb.Question) (*evenringpb.Answer, error) {
	return a.answer(ctx, q)
}

func yes(id ring.GatewayID) answering {
	return answering{answer: func(context.Context, *evenringpb.Question) (*evenringpb.Answer, error) {
		return answerToWire(placement.Answer{Gateway: id, Yes: true, State: placement.Ready}), nil
	}}
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

func peerServing(t *testing.T, addr string, p answering) (*counted, *grpc.Server) {
	l := &counted{Listener: listen(t, addr)}
	return l, serve(t, l, func(s *grpc.Server) { evenringpb.RegisterPeerServer(s, p) })
}

func plainPeers(t testing.TB) *Peers {
	p := &Peers{Credentials: insecure.NewCredentials()}
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
	heard := make(chan placement.Question, 1)
	want := placement.Answer{Gateway: "b", Yes: true, State: placement.Ready, Reports: []placement.Report{{Gateway: "b", Counts: placement.Counts{Attached: 4}}}}
	l, _ := peerServing(t, "127.0.0.1:0", answering{answer: func(_ context.Context, q *evenringpb.Question) (*evenringpb.Answer, error) {
		heard <- questionFromWire(q)
		a := answerToWire(want)
		a.ProtoReflect().SetUnknown(later()) // by a later version
		a.GetReports()[0].ProtoReflect().SetUnknown(later())
		return a, nil
	}})
	got, err := plainPeers(t).Ask(bounded(t), at("b", l.Addr().String()), someQuestion)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, someQuestion, receive(t, heard))
}

func TestConcurrentAsksShareAConnection(t *testing.T) {
	l, _ := peerServing(t, "127.0.0.1:0", yes("b"))
	p := plainPeers(t)
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			_, err := p.Ask(bounded(t), at("b", l.Addr().String()), someQuestion)
			require.NoError(t, err)
		})
	}
	group.Wait()
	require.EqualValues(t, 1, l.taken.Load())
}

// Ten asks of a target that refuses cost less than one that waits.
func TestRefusedAskFailsAtOnce(t *testing.T) {
	p := plainPeers(t)
	to := at("b", refusing(t))
	started := time.Now()
	for range 10 {
		ctx, cancel := context.WithTimeout(context.Background(), 250*time.Millisecond)
		_, err := p.Ask(ctx, to, someQuestion)
		cancel()
		require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
		require.ErrorContains(t, err, "b at")
	}
	require.Less(t, time.Since(started), 250*time.Millisecond)
}

func TestAskAnswersAgainAtOnce(t *testing.T) {
	p := plainPeers(t)
	l, server := peerServing(t, "127.0.0.1:0", yes("b"))
	to := at("b", l.Addr().String())
	_, err := p.Ask(bounded(t), to, someQuestion)
	require.NoError(t, err)

	server.Stop()
	for range 3 {
		_, err = p.Ask(bounded(t), to, someQuestion)
		require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
	}

	peerServing(t, l.Addr().String(), yes("b"))
	_, err = p.Ask(bounded(t), to, someQuestion)
	require.NoError(t, err, "no back-off stands between a gateway that is back and the next ask")
}

func TestSilentAskEndsWithItsContext(t *testing.T) {
	silent := listen(t, "127.0.0.1:0")
	t.Cleanup(func() { _ = silent.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := plainPeers(t).Ask(ctx, at("b", silent.Addr().String()), someQuestion)
	require.Equal(t, codes.DeadlineExceeded, status.Code(err), "%v", err)
}

func TestLost(t *testing.T) {
	for code, want := range map[codes.Code]bool{
		codes.OK: false, codes.Unavailable: true, codes.DeadlineExceeded: true, codes.Canceled: false, codes.PermissionDenied: false,
	} {
		require.Equal(t, want, lost(status.Error(code, "")), code)
	}
}

func TestAnswerOfAnotherIsAnError(t *testing.T) {
	l, _ := peerServing(t, "127.0.0.1:0", yes("c"))
	_, err := plainPeers(t).Ask(bounded(t), at("b", l.Addr().String()), someQuestion)
	require.ErrorContains(t, err, "c answers there")
}

func TestAskNeedsAnEndpoint(t *testing.T) {
	_, err := plainPeers(t).Ask(bounded(t), at("b", ""), someQuestion)
	require.ErrorContains(t, err, "no endpoint")
}

func TestPeersNeedCredentials(t *testing.T) {
	var p Peers
	_, err := p.Ask(bounded(t), at("b", "127.0.0.1:1"), someQuestion)
	require.ErrorContains(t, err, "transport security")
	require.NoError(t, p.Close())
}

func TestPeersKeepWhatIsUsed(t *testing.T) {
	l, _ := peerServing(t, "127.0.0.1:0", yes("b"))
	p := plainPeers(t)
	b := peerKey{"b", l.Addr().String()}
	now := time.Now()
	busy, err := p.acquire(b, now)
	require.NoError(t, err)

	for i := range 5 { // others come by, for long enough
		other := peerKey{ring.GatewayID(fmt.Sprint("other", i)), "127.0.0.1:1"}
		now = now.Add(peerIdle)
		conn, err := p.acquire(other, now)
		require.NoError(t, err)
		p.release(other, conn, false)
		require.Len(t, p.conns, 2, "the busy one and the latest")
	}
	p.release(b, busy, false)
	again, err := p.acquire(b, now)
	require.NoError(t, err)
	require.Same(t, busy, again)
	p.release(b, again, true)
	require.NotContains(t, p.conns, b, "an ask failed over it")
}

func TestDroppedConnectionOutlivesItsAsks(t *testing.T) {
	l, _ := peerServing(t, "127.0.0.1:0", yes("b"))
	p := plainPeers(t)
	b := peerKey{"b", l.Addr().String()}
	first, err := p.acquire(b, time.Now())
	require.NoError(t, err)
	second, err := p.acquire(b, time.Now())
	require.NoError(t, err)
	require.Same(t, first, second)
	p.release(b, first, true)

	_, err = evenringpb.NewPeerClient(second).Ask(bounded(t), questionToWire(someQuestion))
	require.NoError(t, err, "the other ask goes on")
	p.release(b, second, true)
	_, err = evenringpb.NewPeerClient(second).Ask(bounded(t), questionToWire(someQuestion))
	require.Equal(t, codes.Canceled, status.Code(err), "closed with its last ask")
}

func TestPeersClose(t *testing.T) {
	asked, release := make(chan struct{}), make(chan struct{})
	l, _ := peerServing(t, "127.0.0.1:0", answering{answer: func(context.Context, *evenringpb.Question) (*evenringpb.Answer, error) {
		close(asked)
		<-release
		return nil, errors.New("too late")
	}})
	p := plainPeers(t)
	failed := make(chan error, 1)
	go func() { _, err := p.Ask(bounded(t), at("b", l.Addr().String()), someQuestion); failed <- err }()
	receive(t, asked)
	require.NoError(t, p.Close())
	require.Error(t, receive(t, failed))
	require.NoError(t, p.Close())
	_, err := p.Ask(bounded(t), at("b", l.Addr().String()), someQuestion)
	require.ErrorContains(t, err, "closed")
	_, err = p.Forward(bounded(t), at("b", l.Addr().String()), redirect.Request{Member: "s"})
	require.ErrorIs(t, err, forward.ErrNotSent)
	close(release)
}
