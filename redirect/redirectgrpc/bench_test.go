// SPDX-License-Identifier: Apache-2.0

package redirectgrpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect"
)

// A stream from the dial to the goodbye, connection included.
func BenchmarkDial(b *testing.B) {
	g := alone(b, ServerConfig{})
	b.ReportAllocs()
	generation := placement.Generation(0)
	for b.Loop() {
		generation++
		_, stream, err := plain.Dial(b.Context(), g.addr, redirect.Hello{Member: "m", Generation: generation})
		require.NoError(b, err)
		require.NoError(b, stream.Close())
	}
}

func BenchmarkAsk(b *testing.B) {
	g := alone(b, ServerConfig{})
	p := &Peers{Credentials: insecure.NewCredentials()}
	defer p.Close()
	to := at("gw", g.addr)
	b.ReportAllocs()
	for b.Loop() {
		_, err := p.Ask(b.Context(), to, placement.Question{From: "a", Member: "m", Generation: 1, Limit: 1})
		require.NoError(b, err)
	}
}

// A request and its answer: at the gateway that has the supervisor, and one hop away.
func BenchmarkCall(b *testing.B) {
	f := newFleet()
	here, away := f.start(b, "a", taking), f.start(b, "b", taking)
	f.complete(b)
	dial(b, answeringAs("s"), here.addr, hello("s", 1))
	eventually(b, func() bool { return away.knows("s") == roster.Elsewhere })
	for name, at := range map[string]*gate{"hops=0": here, "hops=1": away} {
		b.Run(name, func(b *testing.B) {
			c := caller(b, at.addr)
			b.ReportAllocs()
			for b.Loop() {
				_, err := call(b.Context(), c, "s", "hi")
				require.NoError(b, err)
			}
		})
	}
}

// echo returns what it receives, until the goodbye.
func echo(_ context.Context, s *ServerStream) error {
	for {
		payload, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.Send(append([]byte(s.Hello().Member+": "), payload...)); err != nil {
			return err
		}
	}
}

// There and back.
func BenchmarkPayload(b *testing.B) {
	for _, size := range []int{64, 4096} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			g := alone(b, ServerConfig{Serve: echo})
			s := dial(b, plain, g.addr, someHello)
			payload := bytes.Repeat([]byte("x"), size)
			b.ReportAllocs()
			b.SetBytes(int64(2 * size))
			for b.Loop() {
				require.NoError(b, s.Send(payload))
				_, err := s.Recv()
				require.NoError(b, err)
			}
		})
	}
}
