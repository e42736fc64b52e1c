// SPDX-License-Identifier: Apache-2.0

package gatewayd

import (
	"crypto/tls"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/evenring/evenring/redirect/redirectgrpc"
)

// grpcServer serves over gRPC.
type grpcServer struct{ *grpc.Server }

func (p *process) newGRPCServer(cfg redirectgrpc.ServerConfig) (server, error) {
	s := grpc.NewServer(append(redirectgrpc.ServerOptions(),
		grpc.Creds(transportCredentials(p.server)), grpc.WaitForHandlers(true))...)
	return grpcServer{s}, redirectgrpc.Register(s, p.gateway, cfg)
}

func transportCredentials(cfg *tls.Config) credentials.TransportCredentials {
	if cfg == nil {
		return insecure.NewCredentials()
	}
	return credentials.NewTLS(cfg)
}

func (s grpcServer) serve(l net.Listener) error { return s.Serve(l) }

func (s grpcServer) shutdown(patience time.Duration) {
	hard := time.AfterFunc(patience, s.Stop)
	defer hard.Stop()
	s.GracefulStop()
}

func (s grpcServer) stop() { s.Stop() }
