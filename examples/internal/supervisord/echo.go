// SPDX-License-Identifier: Apache-2.0

package supervisord

import (
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/redirectgrpc"
)

// answer sends every payload back where it came from, until the stream ends.
// This is where a program of your own does its work.
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
