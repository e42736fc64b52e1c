// SPDX-License-Identifier: Apache-2.0

package redirectgrpc

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/redirectgrpc/evenringpb"
)

// ServerOptions returns what a gateway's gRPC server should be made with: it
// allows the probes of [Transport], and finds out about dead supervisors by
// itself: a connection on which nothing has come for 10 s is probed, and given
// up 5 s later.
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingAfter / 2, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingAfter, Timeout: pingTimeout}),
	}
}

// Register makes s serve gw: supervisors' and sessions' streams, other
// gateways' questions, and calls if cfg has Calls. It must come before s serves.
// Its error is that of [ServerConfig.Validate].
func Register(s grpc.ServiceRegistrar, gw *redirect.Gateway, cfg ServerConfig) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	cfg = cfg.resolved()
	evenringpb.RegisterGatewayServer(s, &gatewayServer{gw: gw, cfg: cfg})
	evenringpb.RegisterPeerServer(s, peerServer{gw: gw, calls: cfg.Calls})
	if cfg.Calls != nil {
		evenringpb.RegisterCallerServer(s, callerServer{gw: gw, cfg: *cfg.Calls})
	}
	return nil
}

type peerServer struct {
	evenringpb.UnimplementedPeerServer
	gw    *redirect.Gateway
	calls *CallConfig // nil: calls are not taken
}

func (p peerServer) Ask(_ context.Context, q *evenringpb.Question) (*evenringpb.Answer, error) {
	return answerToWire(p.gw.Asked(questionFromWire(q))), nil
}

type gatewayServer struct {
	evenringpb.UnimplementedGatewayServer
	gw  *redirect.Gateway
	cfg ServerConfig
}

func (g *gatewayServer) Attach(attach evenringpb.Gateway_AttachServer) error {
	ctx, cancel := context.WithCancel(attach.Context())
	defer cancel()
	s := newServerStream(ctx, attach, g.cfg.Serve != nil)
	go s.read()

	hello, err := s.greeting(g.cfg.HelloTimeout)
	if err != nil {
		return err
	}
	if g.cfg.Authorize != nil {
		if err := g.cfg.Authorize(ctx, hello); err != nil {
			return status.Error(codes.PermissionDenied, err.Error())
		}
	}
	verdict, attachment := g.gw.Admit(ctx, hello)
	if attachment != nil {
		defer func() { attachment.Leave(s.saidGoodbye()) }()
		attachment.Carry(s.carry)
	}
	if err := ctx.Err(); err != nil {
		return status.FromContextError(err).Err()
	}
	frame := &evenringpb.ServerFrame{Frame: &evenringpb.ServerFrame_Verdict{Verdict: verdictToWire(verdict)}}
	if err := attach.Send(frame); err != nil || attachment == nil {
		return err
	}
	go s.write(g.cfg.Heartbeat, attachment.Heartbeat)
	if g.cfg.Serve == nil {
		return g.follow(s, attachment, nil)
	}
	served, followed := make(chan struct{}), make(chan error, 1)
	go func() {
		defer cancel()
		followed <- g.follow(s, attachment, served)
	}()
	err = g.cfg.Serve(ctx, s)
	close(served)
	if end := <-followed; !errors.Is(end, errServed) {
		return end
	}
	return err
}

// errServed says that the application ended the stream.
var errServed = errors.New("served")

// follow passes notices on and returns how the stream is to end. served is
// closed when the application has returned; nil: there is none.
func (g *gatewayServer) follow(s *ServerStream, attachment *redirect.Attachment, served <-chan struct{}) error {
	notices, over := attachment.Notices(), s.over
	for {
		select {
		case n, more := <-notices:
			if !more {
				s.settle(g.cfg.Linger)
				return s.flush()
			}
			if !s.notify(n) {
				return status.Error(codes.ResourceExhausted, "the supervisor does not take its notices")
			}
		case <-served:
			s.settle(g.cfg.Linger)
			if err := s.flush(); err != nil {
				return err
			}
			return errServed
		case <-over:
			if s.err != nil || served == nil {
				return s.err
			}
			// The application may still answer what came before the goodbye,
			// until the supervisor hangs up.
			attachment.Leave(true)
			notices, over = nil, nil
		case <-s.written:
			return s.writeErr
		case <-s.ctx.Done():
			return status.FromContextError(s.ctx.Err()).Err()
		}
	}
}
