// SPDX-License-Identifier: Apache-2.0

package redirectws_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/redirectws"
)

// A gateway that answers every payload, and a supervisor that sends one.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	// The gateway.
	peers := &redirectws.Peers{Plaintext: true}
	defer peers.Close()
	gateway, err := redirect.NewGateway(redirect.Config{Gateway: "gw-0", Incarnation: 1, Peers: peers}, redirect.Hooks{})
	if err != nil {
		log.Fatal(err)
	}
	go gateway.Run(ctx, nil)
	handler, err := redirectws.NewHandler(gateway, redirectws.ServerConfig{
		Serve: func(_ context.Context, s *redirectws.ServerStream) error {
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
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()

	// The supervisor.
	transport := redirectws.Transport{Plaintext: true, Payloads: 16}
	verdict, stream, err := transport.Dial(ctx, listener.Addr().String(), redirect.Hello{Member: "sup-1", Generation: 1, CanRedirect: true})
	if err != nil {
		log.Fatal(err)
	}
	defer stream.Close()
	fmt.Println(verdict.Outcome, verdict.Gateway)

	payloads := stream.(*redirectws.Stream)
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
	peers := &redirectws.Peers{Plaintext: true}
	defer peers.Close()
	gateway, err := redirect.NewGateway(redirect.Config{Gateway: "gw-0", Incarnation: 1, Peers: peers}, redirect.Hooks{})
	if err != nil {
		log.Fatal(err)
	}
	go gateway.Run(ctx, nil)
	handler, err := redirectws.NewHandler(gateway, redirectws.ServerConfig{Calls: &redirectws.CallConfig{Peers: peers}})
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()

	// The supervisor.
	transport := redirectws.Transport{
		Plaintext: true,
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
	caller := &redirectws.Caller{Plaintext: true}
	defer caller.Close()
	answer, err := caller.Call(ctx, listener.Addr().String(), redirect.Request{Member: "sup-1", Payload: []byte("caller")})
	fmt.Println(string(answer), err)

	// Output: hello caller <nil>
}

// Gateways have certificates of their own authority, and nobody else may ask, or forward.
func ExampleHandler() {
	gateway, err := redirect.NewGateway(redirect.Config{Gateway: "gw-0", Incarnation: 1}, redirect.Hooks{})
	if err != nil {
		log.Fatal(err)
	}
	handler, err := redirectws.NewHandler(gateway, redirectws.ServerConfig{Calls: &redirectws.CallConfig{}})
	if err != nil {
		log.Fatal(err)
	}
	guarded := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case redirectws.AskPath, redirectws.ForwardPath:
			if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
				http.Error(w, "gateways only", http.StatusForbidden)
				return
			}
		}
		handler.ServeHTTP(w, r)
	})
	_ = http.Server{Handler: guarded, ReadHeaderTimeout: 10 * time.Second}
	// Output:
}
