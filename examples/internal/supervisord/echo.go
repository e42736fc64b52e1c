// SPDX-License-Identifier: Apache-2.0

package supervisord

import (
	"context"

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/redirectgrpc"
)

// echo answers a caller's request with itself, of supervisors and of sessions.
// This is where a program of your own does its work.
func echo(_ context.Context, request []byte) ([]byte, error) { return request, nil }

// answer sends every payload back where it came from, until the stream ends:
// that is for programs that want a conversation rather than requests.
func (m *member) answer(stream redirect.Stream) {
	payloads := stream.(*redirectgrpc.Stream)
	m.echoes.Go(func() {
		for {
			payload, err := payloads.Recv()
			if err != nil {
				return
			}
			if err := payloads.Send(payload); err != nil {
				return
			}
		}
	})
}
