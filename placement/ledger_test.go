// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

func TestLedger(t *testing.T) {
	now := time.Unix(100, 0)
	v := view(t, gateways(0, 0))
	promised := func(v *placement.View) int {
		g, ok := v.Gateway("A")
		require.True(t, ok)
		return g.Promised
	}
	var l placement.Ledger
	l.Promise("m1", "A", true, now.Add(time.Second))
	require.Zero(t, promised(v), "it counts nowhere yet")
	l.Bind(v)
	require.Equal(t, 1, promised(v))
	l.Promise("m2", "A", true, now.Add(time.Second))
	l.Promise("m2", "A", false, now.Add(2*time.Second))
	require.Equal(t, 2, promised(v), "the newer promise takes the place of the older")
	require.Equal(t, 2, l.Newcomers(), "and nobody counts it yet")

	counted := gateways(1)[0]
	counted.Sequence++
	v.Set(counted)
	l.Promise("m3", "A", false, now)
	require.Equal(t, 3, promised(v), "counts do not end a promise")
	require.Equal(t, 2, l.Newcomers())
	l.Promise("m4", "stranger", false, now.Add(time.Hour))

	next := view(t, []placement.Gateway{counted, gateways(0, 0)[1]})
	l.Bind(next)
	require.Equal(t, 3, promised(next), "a view for another ring")

	g, until, ok := l.Target("m1")
	require.True(t, ok)
	require.Equal(t, ring.GatewayID("A"), g)
	require.Equal(t, now.Add(time.Second), until)
	require.False(t, l.Expire("m1", now))
	require.True(t, l.Expire("m1", now.Add(time.Second)), "S13: a promise whose supervisor never comes expires")
	require.True(t, l.Settle("m2"))
	require.False(t, l.Settle("m2"))
	require.Equal(t, 1, promised(next))
	require.Zero(t, l.Newcomers())
	require.True(t, l.Expire("m3", now))
	require.True(t, l.Settle("m4"))
	require.Zero(t, promised(next))
	for _, m := range []ring.MemberID{"m1", "m2", "m3", "m4"} {
		_, _, ok := l.Target(m)
		require.False(t, ok)
	}
}
