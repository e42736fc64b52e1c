// SPDX-License-Identifier: Apache-2.0

package redirect

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/ring"
)

func TestGuests(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	settled := map[ring.MemberID]bool{}
	open := func(m ring.MemberID, _ time.Time) bool { return !settled[m] }

	var g guests
	g.arrive() // nobody was expected
	g.expect(0, at(1))
	require.Zero(t, g.total)
	g.expect(2, at(1))
	g.expect(2, at(2))
	g.promised("m1", at(3))
	g.expect(2, at(4))
	g.promised("m2", at(5))
	g.expect(2, at(6))
	require.Equal(t, 8, g.total)
	g.arrive()
	require.Equal(t, 7, g.total)

	settled["m2"] = true
	g.shown(at(5), open)
	require.Equal(t, 4, g.total, "what is older than every open promise is known by now")
	settled["m1"] = true
	g.shown(at(3), open)
	require.Equal(t, 2, g.total, "what is newer than all that has shown up is not")
	g.forget(at(5))
	require.Equal(t, 2, g.total)
	g.forget(at(6))
	require.Zero(t, g.total)
	require.Empty(t, g.promises)
}
