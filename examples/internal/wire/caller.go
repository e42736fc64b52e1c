// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/redirectgrpc/evenringpb"
	"github.com/evenring/evenring/redirect/redirectws"
)

// Caller makes requests of supervisors and sessions. It keeps connections, and
// may be used concurrently.
type Caller interface {
	// Call returns the member's answer; ctx bounds it. [MayBeExecuted] reads the error.
	Call(ctx context.Context, req redirect.Request) ([]byte, error)
	// Close ends every connection, and what is under way.
	Close() error
}

// NewCaller returns a caller at a gateway, or at the Service in front of all.
// secure may be nil: plaintext. patient waits for a connection as long as a call may
// last: over gRPC, one that cannot be had fails the call otherwise.
func NewCaller(kind Kind, addr string, secure *tls.Config, patient bool) (Caller, error) {
	if kind == WebSocket {
		return &webCaller{redirectws.Caller{TLS: secure, Plaintext: secure == nil}, addr}, nil
	}
	creds := insecure.NewCredentials()
	if secure != nil {
		creds = credentials.NewTLS(secure)
	}
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(creds), grpc.WithDefaultCallOptions(grpc.WaitForReady(patient)))
	if err != nil {
		return nil, fmt.Errorf("%q: %w", addr, err)
	}
	return grpcCaller{conn}, nil
}

type webCaller struct {
	redirectws.Caller
	addr string
}

func (c *webCaller) Call(ctx context.Context, req redirect.Request) ([]byte, error) {
	return c.Caller.Call(ctx, c.addr, req)
}

type grpcCaller struct{ *grpc.ClientConn }

func (c grpcCaller) Call(ctx context.Context, req redirect.Request) ([]byte, error) {
	reply, err := evenringpb.NewCallerClient(c.ClientConn).Call(ctx, &evenringpb.CallRequest{
		Member: string(req.Member), Session: string(req.Session), Payload: req.Payload, Idempotent: req.Idempotent,
	})
	return reply.GetPayload(), err
}

// MayBeExecuted reports whether a request may have been executed, of which a
// [Caller] has returned err. Over gRPC, what a gateway says and what is said when the
// connection to it has broken is the same Unavailable; it is taken for the latter.
func MayBeExecuted(err error) bool {
	s, ok := status.FromError(err)
	if !ok {
		return errors.Is(err, redirect.ErrUncertain)
	}
	switch s.Code() {
	case codes.NotFound, codes.Unimplemented, codes.InvalidArgument, codes.PermissionDenied, codes.Unauthenticated, codes.ResourceExhausted:
		return false
	default:
		return err != nil
	}
}
