// SPDX-License-Identifier: Apache-2.0

package redirect_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
)

// A stream lives for days, and its gateway is started anew: whoever shows the
// last proof that it was given stays, and one with the first has had it for too long.
func TestProofsAreRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		proofs := redirect.Proofs{Keys: [][]byte{key(1)}, Required: true}
		g, err := redirect.NewGateway(redirect.Config{Gateway: "A", Incarnation: 1, Endpoint: "at-A", Proofs: proofs}, redirect.Hooks{})
		require.NoError(t, err)
		v, at := g.Admit(t.Context(), redirect.Hello{Member: "m", Generation: 1, CanRedirect: true})
		require.NotNil(t, at)
		_, child := g.Admit(t.Context(), redirect.Hello{Member: "m", Session: "c"})
		require.NotNil(t, child)

		last, renewed := v.Proof, 0
		const days = 10
		for range days * 24 * 6 {
			pass(10 * time.Minute)
			n := at.Heartbeat()
			require.Equal(t, redirect.NoticeHeartbeat, n.Kind)
			require.Equal(t, g.ID(), n.Gateway)
			require.Equal(t, g.Incarnation(), n.Incarnation)
			if len(n.Proof) > 0 {
				last = n.Proof
				renewed++
			}
			require.Empty(t, child.Heartbeat().Proof, "a session needs none")
		}
		require.Equal(t, days*3, renewed)

		again := newProving(t, "A", proofs, false)
		again.now = time.Now()
		again.peer("B", placement.Ready, 1, 0)
		again.hello("other") // and so B is where there is room
		require.Equal(t, redirect.ReasonStay, again.hello("m", stay, showing(last)).Verdict.Reason)
		require.NotEqual(t, redirect.ReasonStay, again.hello("n", stay, showing(last)).Verdict.Reason, "it is the proof of another")

		older := newProving(t, "A", proofs, false)
		older.now = time.Now()
		require.NotEqual(t, redirect.ReasonStay, older.hello("m", stay, showing(v.Proof)).Verdict.Reason)
	})
}

func TestNoKeysNothingToRenew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := redirect.NewGateway(redirect.Config{Gateway: "A", Incarnation: 1}, redirect.Hooks{})
		require.NoError(t, err)
		_, at := g.Admit(t.Context(), redirect.Hello{Member: "m", Generation: 1})
		require.NotNil(t, at)
		pass(100 * time.Hour)
		require.Equal(t, redirect.Notice{Kind: redirect.NoticeHeartbeat, Gateway: "A", Incarnation: 1}, at.Heartbeat())
	})
}
