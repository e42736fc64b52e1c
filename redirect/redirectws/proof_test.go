// SPDX-License-Identifier: Apache-2.0

package redirectws

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/redirect"
)

// A stream that outlives the proof of its accept is given another.
func TestProofsComeWithHeartbeats(t *testing.T) {
	f := newFleet()
	g := f.start(t, "gw", gateOptions{
		server: ServerConfig{Heartbeat: time.Millisecond},
		proofs: redirect.Proofs{Keys: [][]byte{[]byte("thirty-two bytes, or even more of them")}, Home: 10 * time.Millisecond},
	})
	f.meet(t)
	verdict, stream, err := plain.Dial(t.Context(), g.addr, someHello)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, stream.Close()) })
	require.NotEmpty(t, verdict.Proof)
	for renewed := 0; renewed < 3; {
		n, err := stream.Notice()
		require.NoError(t, err)
		require.Equal(t, redirect.NoticeHeartbeat, n.Kind)
		if len(n.Proof) > 0 {
			require.NotEqual(t, verdict.Proof, n.Proof)
			renewed++
		}
	}
}
