// SPDX-License-Identifier: Apache-2.0

package redirectgrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/redirectgrpc/evenringpb"
)

const (
	pingAfter   = 10 * time.Second // of silence, the least that gRPC allows a client
	pingTimeout = 5 * time.Second
)

// Transport dials gateways; it is a [redirect.Transport] whose streams are of
// type [*Stream]. It may be copied and used concurrently.
//
// Every stream has a connection of its own. A balancer that picks per
// connection therefore picks per stream, and a stream that has ended leaves
// nothing behind. A dial connects once: an address that refuses is an error at
// once, without gRPC's own retrying.
//
// A connection on which nothing has come for 10 s is probed, and given up 5 s
// later. The server must allow that: see [ServerOptions].
type Transport struct {
	// Service is the one address that may be a gRPC target with a scheme, such as
	// "dns:///gateways:443" or "unix:///run/gateway.sock". Any other that is
	// dialled comes from a gateway's word, and must be "host:port". Empty: that is so for all.
	Service string

	// Credentials secure the connection. nil: as Options say, and if they say
	// nothing, every dial fails. Plaintext is
	// [google.golang.org/grpc/credentials/insecure].
	Credentials credentials.TransportCredentials

	// Options are for every connection. They come after the transport's own, so they win.
	Options []grpc.DialOption

	// Payloads is how many payloads are kept for [Stream.Recv]. 0: what the
	// gateway's application sends is thrown away.
	Payloads int

	// Serve answers the requests that callers make of the supervisor, or of the
	// session, at any gateway. It is called in a goroutine of its own for each, up
	// to 1024 at once on one stream. Its error reaches the caller with the status
	// that it carries, Unknown for one that carries none. The context
	// has the caller's deadline, ends when nobody waits for the answer any more and
	// when the stream has ended, and carries the values of the dial's context.
	// Serve must return soon after that. An answer may have [MaxCallBytes]. nil:
	// requests are turned away, and the caller is told at once.
	Serve func(ctx context.Context, request []byte) ([]byte, error)

	// Linger is how long [Stream.Close] waits for requests that Serve works on. 0: 10 s.
	Linger time.Duration
}

var _ redirect.Transport = Transport{}

// Dial opens a stream to addr, says hello and waits for the verdict, as
// [redirect.Transport] has it. addr is "host:port", with a name or a literal
// address, or [Transport.Service]. Anything else is an error, and nothing is
// dialled: no word of a gateway's chooses a resolver, or anything but the host
// that [Transport.Credentials] must find there. A proxy in the environment is
// used, as gRPC does. The values of ctx, outgoing metadata among them, reach the stream.
func (t Transport) Dial(ctx context.Context, addr string, hello redirect.Hello) (redirect.Verdict, redirect.Stream, error) {
	verdict, stream, err := t.dial(ctx, addr, hello)
	if err != nil {
		if ctx.Err() != nil && !errors.Is(err, context.Cause(ctx)) {
			err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		return redirect.Verdict{}, nil, fmt.Errorf("redirectgrpc: dial %s: %w", addr, err)
	}
	if stream == nil {
		return verdict, nil, nil
	}
	return verdict, stream, nil
}

func (t Transport) dial(ctx context.Context, addr string, hello redirect.Hello) (_ redirect.Verdict, _ *Stream, err error) {
	if t.Payloads < 0 {
		return redirect.Verdict{}, nil, fmt.Errorf("Transport.Payloads is %d; it cannot be below 0", t.Payloads)
	}
	if t.Linger < 0 {
		return redirect.Verdict{}, nil, fmt.Errorf("Transport.Linger is %v; it cannot be below 0", t.Linger)
	}
	if addr != t.Service {
		if err := redirect.CheckEndpoint(addr); err != nil {
			return redirect.Verdict{}, nil, err
		}
	}
	hello.Answers = t.Serve != nil
	link := &connWatch{gone: make(chan struct{})}
	options := append(dialOptions(t.Credentials),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingAfter, Timeout: pingTimeout}),
		grpc.WithStatsHandler(link),
	)
	conn, err := grpc.NewClient(target(addr), append(options, t.Options...)...)
	if err != nil {
		return redirect.Verdict{}, nil, err
	}

	// ctx ends the attempt; the stream outlives it.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	untie := context.AfterFunc(ctx, end)
	accepted := false
	defer func() {
		if !accepted {
			end()
			_ = conn.Close()
		}
	}()

	attach, err := evenringpb.NewGatewayClient(conn).Attach(life)
	if err != nil {
		return redirect.Verdict{}, nil, err
	}
	verdict, err := greet(attach, hello)
	if err != nil {
		return redirect.Verdict{}, nil, err
	}
	if !untie() {
		return redirect.Verdict{}, nil, context.Cause(ctx)
	}
	if verdict.Outcome != redirect.Accept {
		return verdict, nil, nil
	}
	accepted = true
	return verdict, t.newStream(conn, attach, end, link.arm()), nil
}

// greet says hello and waits for the verdict. Whatever else comes before it is passed over.
func greet(attach evenringpb.Gateway_AttachClient, hello redirect.Hello) (redirect.Verdict, error) {
	frame := &evenringpb.ClientFrame{Frame: &evenringpb.ClientFrame_Hello{Hello: helloToWire(hello)}}
	// io.EOF says only that the stream has ended; Recv says why.
	if err := attach.Send(frame); err != nil && !errors.Is(err, io.EOF) {
		return redirect.Verdict{}, err
	}
	for {
		frame, err := attach.Recv()
		if errors.Is(err, io.EOF) {
			return redirect.Verdict{}, fmt.Errorf("the stream ended without a verdict: %w", io.ErrUnexpectedEOF)
		}
		if err != nil {
			return redirect.Verdict{}, err
		}
		if verdict := frame.GetVerdict(); verdict != nil {
			return verdictFromWire(verdict), nil
		}
	}
}

func dialOptions(secure credentials.TransportCredentials) []grpc.DialOption {
	if secure == nil {
		return nil
	}
	return []grpc.DialOption{grpc.WithTransportCredentials(secure)}
}

// target keeps gRPC from resolving an address itself: the dialler does it, once
// and at once, and literal addresses need no resolving.
func target(addr string) string {
	if strings.Contains(addr, "://") || strings.HasPrefix(addr, "unix:") {
		return addr
	}
	return "passthrough:///" + addr
}
