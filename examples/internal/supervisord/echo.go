// SPDX-License-Identifier: Apache-2.0

package supervisord

import (
	"context"
	"strings"

	"github.com/evenring/evenring/examples/internal/report"
	"github.com/evenring/evenring/redirect"
)

// told is how many bytes of a request are reported.
const told = 32

// echo answers a caller's request with itself, of the supervisor and of its sessions.
// This is where a program of your own does its work.
func (m *member) echo(_ context.Context, request []byte) ([]byte, error) {
	start := request[:min(len(request), told)]
	m.report.Write(report.Event{Kind: report.Executed, Member: string(m.id), Request: strings.ToValidUTF8(string(start), "?")})
	return request, nil
}

// payloads is a stream's end for the application, over any transport.
type payloads interface {
	Recv() ([]byte, error)
	Send(payload []byte) error
}

// answer sends every payload back where it came from, until the stream ends:
// that is for programs that want a conversation rather than requests.
func (m *member) answer(stream redirect.Stream) {
	talk := stream.(payloads)
	m.echoes.Go(func() {
		for {
			payload, err := talk.Recv()
			if err != nil {
				return
			}
			if err := talk.Send(payload); err != nil {
				return
			}
		}
	})
}
