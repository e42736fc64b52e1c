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
	promises := func(v *placement.View) [2]int {
		g, ok := v.Gateway("A")
		require.True(t, ok)
		return [2]int{g.Promised, g.Pending}
	}
	var l placement.Ledger
	l.Promise("m1", "A", now.Add(time.Second))
	require.Equal(t, [2]int{0, 0}, promises(v), "it counts nowhere yet")
	l.Bind(v)
	require.Equal(t, [2]int{0, 1}, promises(v), "nobody knows what A had counted then")
	l.Promise("m2", "A", now.Add(2*time.Second))
	l.Promise("m2", "A", now.Add(2*time.Second))
	require.Equal(t, [2]int{1, 1}, promises(v), "the newer promise takes the place of the older")

	counted := gateways(1)[0]
	counted.Sequence++
	v.Set(counted)
	require.Equal(t, [2]int{0, 2}, promises(v), "it has counted since")
	v.Set(counted)
	l.Promise("m3", "A", now)
	require.Equal(t, [2]int{1, 2}, promises(v))
	l.Promise("m4", "stranger", now.Add(time.Hour))

	next := view(t, []placement.Gateway{counted, gateways(0, 0)[1]})
	l.Bind(next)
	require.Equal(t, [2]int{1, 2}, promises(next), "a view for another ring")

	g, ok := l.Target("m1")
	require.True(t, ok)
	require.Equal(t, ring.GatewayID("A"), g)
	require.False(t, l.Expire("m1", now))
	require.True(t, l.Expire("m1", now.Add(time.Second)), "S13: a promise whose supervisor never comes expires")
	require.True(t, l.Settle("m2"))
	require.False(t, l.Settle("m2"))
	require.Equal(t, [2]int{1, 0}, promises(next))
	require.True(t, l.Expire("m3", now))
	require.Equal(t, [2]int{0, 0}, promises(next))
	require.True(t, l.Settle("m4"))
	for m := range l.Members() {
		t.Errorf("%s is still promised", m)
	}
}
