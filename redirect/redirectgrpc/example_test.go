// SPDX-License-Identifier: Apache-2.0

package redirectgrpc_test

import (
	"context"
	"fmt"
	"log"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/redirectgrpc"
)

// A gateway that answers every payload, and a supervisor that sends one.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	// The gateway.
	peers := &redirectgrpc.Peers{Credentials: insecure.NewCredentials()}
	defer peers.Close()
	gateway, err := redirect.NewGateway(redirect.Config{Gateway: "gw-0", Incarnation: 1, Peers: peers}, redirect.Hooks{})
	if err != nil {
		log.Fatal(err)
	}
	go gateway.Run(ctx, nil)
	server := grpc.NewServer(redirectgrpc.ServerOptions()...)
	err = redirectgrpc.Register(server, gateway, redirectgrpc.ServerConfig{
		Serve: func(_ context.Context, s *redirectgrpc.ServerStream) error {
			for {
				payload, err := s.Recv()
				if err != nil {
					return err
				}
				if err := s.Send(append([]byte("hello "), payload...)); err != nil {
					return err
				}
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()

	// The supervisor.
	transport := redirectgrpc.Transport{Credentials: insecure.NewCredentials(), Payloads: 16}
	verdict, stream, err := transport.Dial(ctx, listener.Addr().String(), redirect.Hello{Member: "sup-1", Generation: 1, CanRedirect: true})
	if err != nil {
		log.Fatal(err)
	}
	defer stream.Close()
	fmt.Println(verdict.Outcome, verdict.Gateway)

	payloads := stream.(*redirectgrpc.Stream)
	if err := payloads.Send([]byte("sup-1")); err != nil {
		log.Fatal(err)
	}
	reply, err := payloads.Recv()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(reply))

	// Output:
	// accept gw-0
	// hello sup-1
}

// A caller asks a supervisor through a gateway. Any gateway will do.
func ExampleCaller() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	// The gateway.
	peers := &redirectgrpc.Peers{Credentials: insecure.NewCredentials()}
	defer peers.Close()
	gateway, err := redirect.NewGateway(redirect.Config{Gateway: "gw-0", Incarnation: 1, Peers: peers}, redirect.Hooks{})
	if err != nil {
		log.Fatal(err)
	}
	go gateway.Run(ctx, nil)
	server := grpc.NewServer(redirectgrpc.ServerOptions()...)
	err = redirectgrpc.Register(server, gateway, redirectgrpc.ServerConfig{Calls: &redirectgrpc.CallConfig{Peers: peers}})
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()

	// The supervisor.
	transport := redirectgrpc.Transport{
		Credentials: insecure.NewCredentials(),
		Serve: func(_ context.Context, request []byte) ([]byte, error) {
			return append([]byte("hello "), request...), nil
		},
	}
	_, stream, err := transport.Dial(ctx, listener.Addr().String(), redirect.Hello{Member: "sup-1", Generation: 1, CanRedirect: true})
	if err != nil {
		log.Fatal(err)
	}
	defer stream.Close()

	// The caller.
	caller := &redirectgrpc.Caller{Credentials: insecure.NewCredentials()}
	defer caller.Close()
	answer, err := caller.Call(ctx, listener.Addr().String(), redirect.Request{Member: "sup-1", Payload: []byte("caller")})
	fmt.Println(string(answer), err)

	// Output: hello caller <nil>
}
