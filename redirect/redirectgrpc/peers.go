// SPDX-License-Identifier: Apache-2.0

package redirectgrpc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/forward"
	"github.com/evenring/evenring/redirect/redirectgrpc/evenringpb"
	"github.com/evenring/evenring/ring"
)

// peerIdle is how long a connection that nobody asks over is kept.
const peerIdle = 5 * time.Minute

// Peers asks other gateways to keep a place, and forwards calls to them; it is a
// [redirect.Peers] and a [forward.Peers]. It keeps one connection per gateway and endpoint, and dials it when it is first asked
// over. A connection over which an ask failed is given up, so that the next
// ask finds out anew: a target that refuses connections is an error at once,
// and one that is back answers at once. One that was not used for five minutes
// is given up too.
//
// Its fields must not be changed after the first Ask. It must not be copied
// after that, and may be used concurrently.
type Peers struct {
	// Credentials secure the connections. nil: as Options say, and if they say
	// nothing, every ask fails.
	Credentials credentials.TransportCredentials

	// Options are for every connection. They come after the link's own, so they win.
	Options []grpc.DialOption

	mu     sync.Mutex
	conns  map[peerKey]*peerConn
	closed bool
}

var (
	_ redirect.Peers = (*Peers)(nil)
	_ forward.Peers  = (*Peers)(nil)
)

var errNoEndpoint = errors.New("it has no endpoint")

// A gateway that comes back at another address is another peer, and so is
// another gateway at the same address.
type peerKey struct {
	gateway  ring.GatewayID
	endpoint string
}

type peerConn struct {
	*grpc.ClientConn
	asks     int // and forwarded calls, going on
	lastUsed time.Time
	dropped  bool // closes with its last ask
}

// Ask puts the question to the gateway at to.Endpoint, "host:port". It dials that
// endpoint directly: no proxy is used. An answer by anybody but to.ID is an error, for
// addresses are used again. After Close it fails.
func (p *Peers) Ask(ctx context.Context, to placement.Gateway, q placement.Question) (placement.Answer, error) {
	answer, err := p.ask(ctx, peerKey{to.ID, to.Endpoint}, q)
	if err != nil {
		return placement.Answer{}, fmt.Errorf("redirectgrpc: ask %s at %q: %w", to.ID, to.Endpoint, err)
	}
	return answer, nil
}

func (p *Peers) ask(ctx context.Context, to peerKey, q placement.Question) (placement.Answer, error) {
	if to.endpoint == "" {
		return placement.Answer{}, errNoEndpoint
	}
	conn, err := p.acquire(to, time.Now())
	if err != nil {
		return placement.Answer{}, err
	}
	reply, err := evenringpb.NewPeerClient(conn).Ask(ctx, questionToWire(q))
	p.release(to, conn, lost(err))
	if err != nil {
		return placement.Answer{}, err
	}
	answer := answerFromWire(reply)
	if answer.Gateway != to.gateway {
		return placement.Answer{}, fmt.Errorf("%s answers there", answer.Gateway)
	}
	return answer, nil
}

// Forward hands a request to the gateway at to.Endpoint and returns what came
// of it, as [forward.Peers] has it. An error of gRPC's own is
// [forward.ErrNotSent] if nothing of the request can have been taken there, and
// [redirect.ErrUncertain] otherwise.
func (p *Peers) Forward(ctx context.Context, to placement.Gateway, req redirect.Request) ([]byte, error) {
	key := peerKey{to.ID, to.Endpoint}
	fail := func(kind, err error) error {
		return fmt.Errorf("redirectgrpc: forward to %s at %q: %w: %w", to.ID, to.Endpoint, kind, err)
	}
	if to.Endpoint == "" {
		return nil, fail(forward.ErrNotSent, errNoEndpoint)
	}
	conn, err := p.acquire(key, time.Now())
	if err != nil {
		return nil, fail(forward.ErrNotSent, err)
	}
	watched, sent := watchSent(ctx)
	reply, err := evenringpb.NewPeerClient(conn).Forward(watched, requestToWire(req))
	p.release(key, conn, status.Code(err) == codes.Unavailable)
	switch {
	case err == nil:
		return replyFromWire(reply)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case !sent.Load() || refused(err):
		return nil, fail(forward.ErrNotSent, err)
	default:
		return nil, fail(redirect.ErrUncertain, err)
	}
}

// refused reports whether a gateway has turned a request away before it looked at it.
func refused(err error) bool {
	code := status.Code(err)
	return code == codes.Unimplemented || code == codes.PermissionDenied || code == codes.Unauthenticated
}

// Close closes every connection; asks that are going on fail. It returns nil,
// and may be called more than once.
func (p *Peers) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, conn := range p.conns {
		_ = conn.Close() // fails only if it was closed before
	}
	p.conns = nil
	return nil
}

func (p *Peers) acquire(to peerKey, now time.Time) (*peerConn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errors.New("the peer link is closed")
	}
	conn := p.conns[to]
	if conn == nil {
		if err := redirect.CheckEndpoint(to.endpoint); err != nil {
			return nil, err
		}
		client, err := grpc.NewClient(target(to.endpoint), slices.Concat(dialOptions(p.Credentials), linkOptions, peerOptions, p.Options)...)
		if err != nil {
			return nil, err
		}
		conn = &peerConn{ClientConn: client}
		if p.conns == nil {
			p.conns = make(map[peerKey]*peerConn)
		}
		p.conns[to] = conn
	}
	conn.asks++
	conn.lastUsed = now
	p.dropIdle(now)
	return conn, nil
}

var peerOptions = []grpc.DialOption{grpc.WithNoProxy()}

// linkOptions are for connections over which calls go.
var linkOptions = []grpc.DialOption{
	grpc.WithStatsHandler(sentWatch{}),
	grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingAfter, Timeout: pingTimeout}),
	grpc.WithIdleTimeout(peerIdle),
	grpc.WithConnectParams(grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
		MinConnectTimeout: time.Second,
	}),
}

func (p *Peers) release(to peerKey, conn *peerConn, lost bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	conn.asks--
	if lost && p.conns[to] == conn {
		p.drop(to, conn)
	} else if conn.dropped && conn.asks == 0 {
		_ = conn.Close()
	}
}

func (p *Peers) dropIdle(now time.Time) {
	for to, conn := range p.conns {
		if conn.asks == 0 && now.Sub(conn.lastUsed) >= peerIdle {
			p.drop(to, conn)
		}
	}
}

func (p *Peers) drop(to peerKey, conn *peerConn) {
	delete(p.conns, to)
	conn.dropped = true
	if conn.asks == 0 {
		_ = conn.Close()
	}
}

// lost reports whether an ask failed for its connection. A caller that gave up
// says nothing about it.
func lost(err error) bool {
	code := status.Code(err)
	return code == codes.Unavailable || code == codes.DeadlineExceeded
}
