// SPDX-License-Identifier: Apache-2.0

package redirectgrpc

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/handoff"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/supervisor"
	"github.com/evenring/evenring/ring"
)

// S34, over real connections: supervisors are placed, come back after a refresh
// and move in a drain at gateways that require proofs. Each stay is granted,
// none is refused, and somebody else's proof is worth nothing.
func TestS34Proofs(t *testing.T) {
	f := newCallFleet(t)
	f.options.proofs = redirect.Proofs{Keys: [][]byte{[]byte("thirty-two bytes, or even more of them")}, Required: true}
	gates := []*gate{f.add(), f.add(), f.add()}
	homes := make(map[ring.MemberID]*supervisor.Homes)
	for i := range 9 {
		m := ring.MemberID(fmt.Sprint("m", i))
		homes[m] = f.run(m, new(supervisor.Homes), func(_ context.Context, request []byte) ([]byte, error) { return request, nil })
	}
	served := func(g *gate) int { return g.Stats().Served }
	verdicts := func(o redirect.Outcome, r redirect.Reason) (n uint64) {
		for _, g := range gates {
			n += g.Stats().Verdicts[o][r]
		}
		return n
	}
	for _, g := range gates {
		require.Equal(t, 3, served(g))
	}
	redirected := verdicts(redirect.Redirect, redirect.ReasonPlaced)
	require.Equal(t, redirected, verdicts(redirect.Accept, redirect.ReasonStay), "who was sent may stay")

	gates[0].EndAll(redirect.ReasonExpired)
	eventually(t, func() bool { return verdicts(redirect.Accept, redirect.ReasonStay) == redirected+3 })
	eventually(t, func() bool { return served(gates[0]) == 3 })

	f.withdraw(gates[0])
	report, err := handoff.Drain(bounded(t), gates[0].Gateway, quick, handoff.Hooks{})
	require.NoError(t, err)
	require.Len(t, report.Moved, 3)
	eventually(t, func() bool { return served(gates[1])+served(gates[2]) == 9 })
	require.Equal(t, redirected+6, verdicts(redirect.Accept, redirect.ReasonStay))
	require.Zero(t, verdicts(redirect.Refuse, redirect.ReasonBadProof))

	// A thief has seen what somebody was told.
	verdict, _, err := plain.Dial(bounded(t), gates[0].addr, redirect.Hello{Member: "honest", Generation: 1, CanRedirect: true})
	require.NoError(t, err)
	require.Equal(t, redirect.Redirect, verdict.Outcome)
	theft := redirect.Hello{Member: "thief", Generation: 1, CanRedirect: true, Stay: true, Hops: 1, Proof: verdict.Proof}
	refused, _, err := plain.Dial(bounded(t), verdict.Endpoint, theft)
	require.NoError(t, err)
	require.Equal(t, redirect.Refuse, refused.Outcome)
	require.Equal(t, redirect.ReasonBadProof, refused.Reason)
	theft.Member = "honest"
	require.NoError(t, dial(t, plain, verdict.Endpoint, theft).Close())
}

// A stream that outlives the proof of its accept is given another.
func TestProofsComeWithHeartbeats(t *testing.T) {
	f := newFleet()
	g := f.start(t, "gw", gateOptions{
		server: ServerConfig{Heartbeat: time.Millisecond},
		proofs: redirect.Proofs{Keys: [][]byte{[]byte("thirty-two bytes, or even more of them")}, Home: 10 * time.Millisecond},
	})
	f.meet(t)
	verdict, stream, err := plain.Dial(bounded(t), g.addr, someHello)
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
